"""What no policy can beat: the asymptotic lower bound, and strategies that know the answer."""
