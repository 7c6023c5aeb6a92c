"""Runs a script for TensorFlow 1: `python -m tensorpack.tf1 script.py args...`.

On TensorFlow 2, `import tensorflow` gives the version 1 interface in this process and in those that
`multiprocessing` starts from it. Everything else is as with `python script.py args...`.
"""

import argparse
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from . import ABSENT, FOLDER


def main() -> None:
    """Runs the script that the command line names.

    Raises:
      SystemExit: with code 2 where there is no such script, 0 after `--help`, and what the script
        itself raises. Any other error of the script is raised after it was printed.
    """
    parser = _make_parser()
    script = parser.parse_args(sys.argv[1:2]).script
    try:
        source = Path(script).read_bytes()
    except OSError as error:
        parser.error(f"can't open file {script!r}: [Errno {error.errno}] {error.strerror}")
    del sys.argv[0]
    _enter_folders(script)
    # What Python gives a script; `__file__` is an absolute path since 3.9.
    path = os.path.abspath(script) if sys.version_info >= (3, 9) else script
    names = {"__file__": path, "__cached__": None, "__builtins__": sys.modules["builtins"]}
    module = sys.modules["__main__"] = ModuleType("__main__")
    vars(module).update(names, __loader__=SourceFileLoader("__main__", path))
    try:
        # Of this function's own __future__ imports the script gets none.
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except SystemExit:
        raise
    except BaseException as error:
        _print_without_this_file(error)
        raise


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorpack.tf1",
        usage="%(prog)s [-h] SCRIPT [ARG ...]",
        description="Runs a script for TensorFlow 1, unchanged. On TensorFlow 2, 'import "
        "tensorflow' gives it the version 1 interface, with tf.layers by tf-keras and "
        "tf.contrib.{layers,slim,framework,rnn} by tf-slim; what is gone raises an error that "
        "names a replacement. On TensorFlow 1 the script simply runs.",
        epilog="pip install tf-keras tf-slim installs both; beside tensorflow-cpu, add --no-deps. "
        "docs/migration.md says how to make this program unnecessary.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="its path; its arguments follow as usual")
    return parser


def _enter_folders(script: str) -> None:
    """Puts the script's folder first on `sys.path`, and ours after it and at the end.

    Nothing is replaced where Python itself adds no folder (`-I`, `-P`).
    """
    adds_none = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    if not adds_none:
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    sys.path.insert(0 if adds_none else 1, FOLDER)
    sys.path.append(ABSENT)


def _print_without_this_file(error: BaseException) -> None:
    """Prints an error of the script as Python does, without the frames that called the script.

    The interpreter then ends on the error, but prints nothing more.
    """
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    sys.excepthook(type(error), error, error.__traceback__)
    sys.excepthook = lambda *_: None


if __name__ == "__main__":
    main()
