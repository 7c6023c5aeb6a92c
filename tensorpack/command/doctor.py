"""`tensorpack doctor`: tells in a line each what works here, what does not, and the next move."""

import argparse
import importlib.util
import os
import sys
from typing import Any, Iterator, List

from tensorpack._version import __version__

from . import _doctor_checks as checks
from ._codes import FINE, PROBLEM, number
from ._texts import json_text, printable

__all__ = ["HELP", "add_arguments", "run"]

HELP = "check this machine: packages, TensorFlow, GPUs, memory, folders, a short training"
_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Checks what a training needs, one line each: ok, warning or problem, and the next move. "
        "Exit code 1 if there is a problem."
    )
    add = parser.add_argument
    text = "where runs are to write (%(default)s); nothing is left there"
    add("--logdir", default="train_log", metavar="DIR", help=text)
    seconds = number("of seconds above 0", lambda value: 0 < value <= 3600)
    add("--seconds", type=seconds, default=_SECONDS, metavar="S", help="of training (%(default)g)")
    add("--no-training", action="store_true", help="do not train, only import TensorFlow")
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    """Prints the findings as they are made; returns the exit code."""
    found: List[checks.Finding] = []
    for finding in _findings(args):
        found.append(finding)
        if not args.json:
            advice = f". {finding.advice}" if finding.advice else ""
            text = printable(f"{finding.level:8} {finding.topic:14} {finding.text}{advice}")
            args.write(text)
    levels = [each.level for each in found]
    problems, warnings = levels.count(checks.PROBLEM), levels.count(checks.WARNING)
    if args.json:
        facts = {"problems": problems, "warnings": warnings}
        args.write(json_text({**facts, "findings": [each._asdict() for each in found]}))
    else:
        args.write(f"\n{problems} problems, {warnings} warnings.")
    return PROBLEM if problems else FINE


def _findings(args: Any) -> Iterator[checks.Finding]:
    from . import _doctor_games as games
    from . import _doctor_tensorflow as tensorflow

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield checks.Finding(checks.OK, "tensorpack", f"{__version__} ({package})")
    packages = checks.installed_packages(sys.path)
    yield from checks.check_python(tuple(sys.version_info[:3]), packages)
    yield from checks.check_environment(os.environ, packages)
    yield from checks.check_machine(checks.look_at_machine())
    yield from checks.check_folder("log folder", args.logdir, checks.PROBLEM)
    dataset = os.environ.get("TENSORPACK_DATASET") or os.path.expanduser("~/tensorpack_data")
    yield from checks.check_folder("data folder", dataset, checks.WARNING)
    yield from checks.check_optional(packages)
    yield from games.check_games(packages)
    yield from checks.check_tensorflow_packages(packages)
    if importlib.util.find_spec("tensorflow") is not None:
        yield from tensorflow.check_tensorflow(0.0 if args.no_training else args.seconds)
