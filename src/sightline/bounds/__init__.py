"""Lower bounds on regret, observability of games, and oracle strategies."""
