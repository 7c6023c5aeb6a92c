"""Finds out early that a scalar for which a callback waits will never have a value."""

from typing import Any

from .base import Callback, CallbackFactory, innermost
from .graph import ProcessTensors


def check_measured(waiting: Callback, name: str) -> None:
    """Raises a RuntimeError if a scalar has no value when all callbacks had their turn.

    It may come later from a callback that has not been triggered yet, or from a callback or a
    trainer of a class that is not the library's.
    """
    trainer, callbacks = waiting.trainer, waiting.trainer.all_callbacks
    if not callbacks or not _is_ours(trainer.__class__) or any(map(_may_report, callbacks)):
        return
    try:
        trainer.monitors.latest_record(name)
    except KeyError as error:
        waiting.was_triggered = False  # at the end of the run it has nothing to add
        raise RuntimeError(
            f"{waiting} waits for a scalar that nothing in this run measures. {error.args[0]}"
        ) from None


def _may_report(callback: Any) -> bool:
    """Whether a callback may put scalars that it has not put before."""
    inner = innermost(callback)
    if not (_is_ours(type(callback)) and _is_ours(type(inner))) or type(inner) is Callback:
        return True
    of_functions = isinstance(inner, (CallbackFactory, ProcessTensors))
    return of_functions or (inner.puts_scalars and not inner.was_triggered)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "tensorpack"
