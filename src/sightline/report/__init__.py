"""Running experiments, and what is made of their results: data, summaries, figures, pages."""
