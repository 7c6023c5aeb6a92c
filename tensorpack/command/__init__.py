"""The program `tensorpack`, which is also `python -m tensorpack`; nothing imports it.

A subcommand is one file here and one row of `program.SUBCOMMANDS`. The file has

- `HELP`: one line for `tensorpack --help`, which begins with a small letter and ends without a dot;
- `add_arguments(parser)`: adds the arguments to an `argparse.ArgumentParser`, and may set its
  `description` (by default `HELP`);
- `run(args)`: prints the result; returns 1 if it found a problem, else None. A wrong argument or
  file is a ValueError or OSError that says what it got, what was needed, the next move.

`tensorpack --help` imports every such file, so they import numpy, TensorFlow and the other packages
of this library inside their functions.
"""
