"""Does what `python ...` does; `tests/zygote.py` runs it for the programs of the pages."""

import os
import runpy
import sys

__all__ = ["main"]


def main(folder, *words):
    """Runs `python WORDS...` in a folder: a file, or a module behind `-m`, and its arguments."""
    os.chdir(folder)
    sys.path.insert(0, folder)
    if words[0] == "-m":
        sys.argv = list(words[1:])
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
