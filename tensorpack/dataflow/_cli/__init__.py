"""The program `python -m tensorpack.dataflow`: see `__main__`."""
