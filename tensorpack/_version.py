"""The version of the package; imports nothing, so build tools can read it."""

__version__ = "0.12.0.dev0"
