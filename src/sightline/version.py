"""Version of the package, in a separate module that every package can import."""

__version__ = "0.1.0"
