"""Dashboard pages, rendered on the server: escaped, and complete without scripts."""
