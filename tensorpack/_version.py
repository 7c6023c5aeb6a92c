"""The version of the package; imports nothing, so build tools can read it."""

__version__ = "1.0.0"
