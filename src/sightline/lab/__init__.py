"""Repetition: experiments as specifications, their replications on any executor, and the store."""
