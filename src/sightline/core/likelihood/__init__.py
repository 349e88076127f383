"""How rewards are distributed around their means: laws of clicks and counts."""
