"""Live sessions: ask for the next option, tell its reward; their files, options and effects."""
