"""Gaussian posterior: draws, cells of best arms, and Bayesian information gains."""
