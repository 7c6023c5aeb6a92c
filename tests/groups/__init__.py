"""Groups of real processes that train together, and what becomes of them when some fail."""
