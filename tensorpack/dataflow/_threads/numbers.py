"""Numbers that flows with threads are given, or find for themselves."""

__all__ = ["BUFFER_BYTES"]

BUFFER_BYTES = 256 * 2**20  # how much memory waiting datapoints take unless told otherwise
