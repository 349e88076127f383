"""Simulations: one run of a policy on a problem, to any horizon."""
