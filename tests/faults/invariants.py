"""What must hold after every run, whatever happened to it.

I3, it ends in time; I4, it leaves nothing behind; I5, the exit code is true and one root cause is
told; I6, the statistics only go forward. Checkpoints that are there can be loaded, and all
numbers in them are finite.
"""

import glob
import json
import re

import numpy as np

from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.harness import NEVER

__all__ = ["check", "check_statistics"]

_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("direct cause of the following", "another exception occurred")


def check(case, output, code, took, log, around):
    """Raises AssertionError if one of the invariants does not hold.

    Args:
      case: a `test_matrix.Case`.
      output: all that the process printed.
      code: its exit code.
      took: seconds that its end took.
      log: its log directory, a path.
      around: the `Surroundings` from before it ran.
    """
    assert took < case.within, f"took {took:.1f} s:\n{output}"
    left = around.leftovers()
    assert not left, f"left behind {left}:\n{output}"
    check_truth(case, output, code)
    check_statistics(log)
    for index in glob.glob(str(log / "model-*.index")):
        variables = load_checkpoint_vars(index[: -len(".index")])
        assert variables and all(_is_finite(each) for each in variables.values()), variables


def _is_finite(value):
    return value.dtype.kind != "f" or np.isfinite(value).all()


def check_truth(case, output, code):
    """Checks the exit code and what was said."""
    assert code == case.code, f"exit code {code}:\n{output}"
    reports = output.count(_TRACEBACK) - sum(output.count(each) for each in _CHAINED)
    assert reports == (1 if case.error else 0), output
    if case.error:
        assert re.search(f"^(?:{case.error})", output, re.MULTILINE), output
    never = set(NEVER) - {"Traceback"} - set(case.tolerates)
    assert not [word for word in never if word in output], output
    assert "LEFT BEHIND" not in output
    missing = [each for each in case.says if each not in output]
    assert not missing, f"never said {missing}:\n{output}"
    wrong = [each for each in case.never if each in output]
    assert not wrong, f"said {wrong}:\n{output}"


def check_statistics(log):
    """Checks that epochs and steps of `stats.json`, if there is one, only go up."""
    path = log / "stats.json"
    if not path.exists():
        return
    epochs = json.loads(path.read_text())
    for key in ("epoch_num", "global_step"):
        values = [epoch[key] for epoch in epochs]
        assert values == sorted(set(values)), (key, values)
