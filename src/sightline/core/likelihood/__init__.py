"""How rewards are distributed around their means: likelihoods of clicks and counts."""
