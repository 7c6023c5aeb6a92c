"""Keeps the time reports of a run in its log directory, for programs and for the page about it."""

import json
import os
from typing import Any, Dict

from tensorpack.utils.untrusted import open_regular

from ._diagnosis import Figures

FILENAME = "time_reports.jsonl"
_PRECISION = 4  # digits behind the point


def append_report(directory: str, figures: Figures, where: Dict[str, Any]) -> None:
    """Adds a line to the file: an object with the figures, `stepping`, and what is in `where`."""
    fields = {**where, **figures._asdict(), "stepping": figures.stepping}
    rounded = {k: round(v, _PRECISION) if isinstance(v, float) else v for k, v in fields.items()}
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with os.fdopen(open_regular(os.path.join(directory, FILENAME), flags), "ab") as file:
        file.write(json.dumps(rounded).encode("ascii") + b"\n")
