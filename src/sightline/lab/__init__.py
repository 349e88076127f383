"""Repetition: many runs of one policy on one problem."""
