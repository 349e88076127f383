"""Experiments: their specification, their replications on any executor, and the store."""
