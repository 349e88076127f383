"""What IDS weighs: gap estimates, information gains, and the ratio of the two."""
