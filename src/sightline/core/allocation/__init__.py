"""How to divide pulls among arms: designs, optimal allocations, sampling proportions."""
