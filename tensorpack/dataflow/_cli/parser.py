"""The command lines that `python -m tensorpack.dataflow` understands, and their help."""

import argparse
from typing import Any, Callable, List, Union

import numpy as np

from .bench import bench
from .convert import convert
from .formats import known_formats
from .show import show
from .source import InputOptions

__all__ = ["PROGRAM", "make_parser"]

PROGRAM = "python -m tensorpack.dataflow"
_FLOW = (
    "module:name or path/to/file.py:name, the name of a DataFlow, or of a function without "
    "arguments that returns one. The module is run, as by any import: name only one that you trust"
)


def _show(args: Any, write: Callable[[str], None]) -> int:
    return show(args, _input_options(args), write)


def _convert(args: Any, write: Callable[[str], None]) -> int:
    return convert(args, _input_options(args), write)


def _input_options(args: Any) -> InputOptions:
    return InputOptions(args.allow_pickle, args.paths, args.dtypes, not args.no_header)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; what it makes of a command line has `run`, which takes that and a
    function that prints, and returns the exit code.
    """
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Measures dataflows, and shows and converts files of datapoints.",
        epilog="Exit codes: 0 done, 1 an error or a damaged file, 2 a wrong command line, 130 "
        "Ctrl-C. The result goes to standard output, log and progress to standard error.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (_add_bench, _add_show, _add_convert):
        added = add(commands)
        added.add_argument(
            "--traceback", action="store_true", help="with an error, show where it comes from"
        )
    return parser


def _add_bench(commands: Any) -> argparse.ArgumentParser:
    text = "measure how fast a flow gives its datapoints, and say what is slow"
    parser = commands.add_parser(
        "bench",
        help=text,
        description=f"{text[0].upper()}{text[1:]}. Takes datapoints until --size or --seconds is "
        "reached, in as many passes as that takes.",
    )
    parser.set_defaults(run=bench)
    parser.add_argument("flow", metavar="FLOW", type=_flow, help=_FLOW)
    _add_limits(parser)
    parser.add_argument(
        "--processes",
        type=_number(1),
        metavar="N",
        help="run the flow in N processes, by MultiProcessRunnerZMQ",
    )
    parser.add_argument(
        "--stages",
        action="store_true",
        help="measure each flow that FLOW is made from as well, and say which one is the slowest",
    )
    return parser


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size",
        type=_number(1),
        default=5000,
        metavar="N",
        help="datapoints to measure, at most; a pass that ends earlier is begun again "
        "(%(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=_number(0, float),
        default=10.0,
        metavar="S",
        help="time to measure, at most, of all stages together (%(default)s)",
    )
    parser.add_argument(
        "--warmup",
        type=_number(0),
        default=1,
        metavar="N",
        help="datapoints to take first, which do not count; with 0, the time that processes and "
        "files take to open counts, too (%(default)s)",
    )


def _add_show(commands: Any) -> argparse.ArgumentParser:
    text = "show what a file of datapoints is and what is in it"
    parser = commands.add_parser(
        "show",
        help=text,
        description=f"{text[0].upper()}{text[1:]}. Known are {known_formats()}; what a file holds "
        "counts, and its name where that says nothing.",
    )
    parser.set_defaults(run=_show)
    parser.add_argument("file", metavar="FILE", help="the file, or the folder of an LMDB database")
    parser.add_argument(
        "--num",
        type=_number(0),
        default=1,
        metavar="N",
        help="how many datapoints to show (%(default)s)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="read the whole file, list what is damaged, and exit with 1 if there is any",
    )
    _add_input_options(parser)
    return parser


def _add_convert(commands: Any) -> argparse.ArgumentParser:
    text = "write the datapoints of a file in another format"
    parser = commands.add_parser(
        "convert",
        help=text,
        description=f"{text[0].upper()}{text[1:]}, in the order of the file. The suffix of OUT is "
        "its format: .lmdb .tfrecord .npz .h5.",
    )
    parser.set_defaults(run=_convert)
    parser.add_argument("input", metavar="IN", help="the file, or the folder of an LMDB database")
    parser.add_argument("output", metavar="OUT", help="the new file")
    parser.add_argument(
        "--force", action="store_true", help="replace OUT if it exists, as soon as the new is whole"
    )
    parser.add_argument(
        "--max-errors",
        type=_number(0),
        default=0,
        metavar="N",
        help="leave out up to N damaged records, and say which (%(default)s)",
    )
    _add_input_options(parser)
    return parser


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-pickle",
        action="store_true",
        help="read LMDB files of old tensorpack whose values are pickles; plain data is taken out "
        "of them, but give it only for files that you trust",
    )
    parser.add_argument(
        "--paths",
        type=_names,
        metavar="NAME,...",
        help="the datasets of an HDF5 file, in the order of the components (all, sorted by name)",
    )
    parser.add_argument(
        "--dtypes",
        type=_dtypes,
        metavar="DTYPE,...",
        help="of the columns of a CSV file, one for each or one for all, such as str or float32 "
        "(str)",
    )
    parser.add_argument(
        "--no-header", action="store_true", help="a CSV file has no names in its first line"
    )


def _flow(text: str) -> str:
    source, _, name = text.rpartition(":")
    if not source or not name:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no flow: give module:name or path/to/file.py:name"
        )
    return text


def _number(least: int, kind: Callable[[str], Any] = int) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not number >= least:  # NaN is neither less nor more
            raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {least}")
        return number

    return convert


def _names(text: str) -> List[str]:
    names = text.split(",")
    if "" in names or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of names with commas between them")
    return names


def _dtypes(text: str) -> Union[str, List[str]]:
    names = text.split(",")
    for name in names:
        try:
            kind = "U" if name == "str" else np.dtype(name).kind if name else ""
        except TypeError:
            kind = ""
        if kind not in ("U", "b", "i", "u", "f") or (kind == "U" and name != "str"):
            raise argparse.ArgumentTypeError(
                f"{name!r} is no dtype of a column: str, bool, int64, uint8, float32 and the like"
            )
    return names[0] if len(names) == 1 else names
