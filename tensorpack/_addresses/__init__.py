"""Old names of modules, in folders that the packages add to their `__path__`.

Each file only imports the names that scripts expect at that address.
"""
