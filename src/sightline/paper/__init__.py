"""The paper, reproduced: one file per figure and table, and its claims as data."""
