"""The only places where time passes: simulated at once, or live by ask and tell."""
