"""Reads `run.json` of a log directory: who ran what, where, and how it ended.

A run that is stopped and resumed has several *attempts*, one for each process (or trainer) that
worked on it. docs/runs.md describes the fields; `train/record.py` writes them.
"""

import json
import os
from datetime import datetime, timezone
from typing import Any, Dict, Optional

FILENAME = "run.json"
LOST = "lost"  # the result of an attempt whose process crashed or was killed


def utc_now() -> str:
    """Returns the time as `2026-01-31T12:00:00Z`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_record(directory: str) -> Optional[Dict[str, Any]]:
    """Returns the record in a directory, with a list of dictionaries as its "attempts", or None.

    Raises:
      ValueError: the file is damaged, or not a record.
      OSError: it cannot be read.
    """
    path = os.path.join(directory, FILENAME)
    try:
        with open(path, "rb") as file:
            record = json.load(file)
        return {**record, "attempts": [dict(attempt) for attempt in record["attempts"]]}
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{path} is damaged, or not the record of a run: {error!r}.") from error
