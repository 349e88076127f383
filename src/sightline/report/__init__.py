"""Summaries and pictures of runs."""
