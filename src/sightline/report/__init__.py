"""Runs of experiments and their results: data, summaries, figures and pages."""
