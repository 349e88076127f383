"""Information-directed sampling: Algorithm 1 and its family, and the Bayesian form."""
