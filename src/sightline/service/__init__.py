"""The service: experiments over HTTP, kept in a database; it needs ``sightline[service]``.

The client needs the standard library only.
"""
