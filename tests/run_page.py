"""Runs a program as a script; what `tests/zygote.py` runs for the programs of the pages."""

import os
import runpy
import sys

__all__ = ["main"]


def main(path):
    """Runs a Python file in the folder where it lies, as `python FILE` does."""
    os.chdir(os.path.dirname(path))
    sys.path.insert(0, os.path.dirname(path))
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
