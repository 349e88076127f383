"""How sure is sure enough: coefficients beta and the rounds until which evidence outlasts them."""
