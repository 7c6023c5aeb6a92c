"""Old names of modules, in folders that the packages add to their `__path__`.

Each has the names that scripts expect at that address. One with nothing but a docstring has those
of its package, or of the module that it calls `_home`, see `tensorpack._old_modules`.
"""
