"""Pages of the service: made by the server, escaped, and whole without scripts."""
