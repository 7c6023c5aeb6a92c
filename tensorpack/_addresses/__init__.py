"""Old names of modules, in folders that the packages add to their `__path__`.

Those that have nothing of their own are in a table, see `tensorpack._old_modules`.
"""
