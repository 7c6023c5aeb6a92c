"""Prints the function calls of a program, to find out where it is."""

import sys
from types import FrameType
from typing import Any


def enable_call_trace() -> None:
    """Prints each call of a Python function in this thread from here on, with its caller.

    A line has the name of the function, its place, and the caller's. `sys.settrace(None)` ends it.
    """

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code, caller = frame.f_code, frame.f_back
        if event == "call" and caller is not None:
            origin = f"{caller.f_code.co_filename}:{caller.f_lineno}"
            place = f"{code.co_filename}:{frame.f_lineno}"
            sys.stdout.write(f"Call to `{code.co_name}` on line {place} from {origin}\n")

    sys.settrace(trace)
