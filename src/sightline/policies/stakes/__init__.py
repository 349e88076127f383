"""Stakes, the default policy for practice, in its two forms."""
