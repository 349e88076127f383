"""Compiled formulas of estimates: arrays and named tuples only, nothing here knows theta*."""
