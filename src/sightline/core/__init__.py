"""Compiled formulas of estimates, grouped by noun.  Nothing here knows the true parameter."""
