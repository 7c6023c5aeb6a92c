"""The program `tensorpack`, which is also `python -m tensorpack`; nothing imports it.

A subcommand is one file here and one row of `program.SUBCOMMANDS`. The file has

- `HELP`: one line for `tensorpack --help`, which begins with a small letter and ends without a dot;
- `add_arguments(parser)`: adds the arguments to an `argparse.ArgumentParser`, and may set its
  `description` (by default `HELP`) and its `epilog`;
- `run(args)`: does the work and returns the exit code, see `_common`. The result goes to
  `args.write(text)`, a line or several without the last newline; logs and progress go to standard
  error, where the program also sends what is written to `sys.stdout`. A wrong argument or file
  raises `_common.CommandError` with one line: what it got, what was needed, the next move.

`tensorpack --help` imports every such file, so they import numpy, TensorFlow and the other packages
of this library inside their functions.
"""
