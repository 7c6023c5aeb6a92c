"""What modules of older versions had of their own; and modules that the root had.

The others, and where they look for what is here, are in a table, see `tensorpack._old_modules`.
"""
