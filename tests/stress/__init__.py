"""Signals, kill -9, full disks and forks, in small; in full: benchmarks/survival.py."""
