"""Vectors, triangular factors and dense systems in plain loops: no names of bandits here."""
