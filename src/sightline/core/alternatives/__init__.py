"""Parameters under which another arm would be best: half-spaces, cells, polytopes."""
