"""Writes the scalars of every epoch to `stats.json`."""

import json
import math
from contextlib import suppress
from typing import Any, Dict, List, Optional

from tensorpack.runs.statistics import FILENAME, parse_epochs

from .epoch_table import RESERVED, EpochTable, Loaded


class JSONWriter(EpochTable):
    """Keeps `stats.json` in `logdir`, the log directory by default: a list with one object for each
    epoch, such as ::

        {"epoch_num": 1, "global_step": 25000, "cost": 0.001137, "learning_rate": 0.001}

    The values are the last ones put in that epoch; NaN and infinite ones, which JSON does not have,
    are written as `null`. Names, resumed runs and damaged files are treated as in `EpochTable`. To
    make a table of it: `pandas.read_json("stats.json")`.
    """

    FILENAME = FILENAME

    def __init__(self, logdir: Optional[str] = None) -> None:
        super().__init__(logdir)
        self._texts: List[str] = []  # of the epochs, of which only the last one still changes

    def _text(self) -> str:
        del self._texts[len(self._epochs) - 1 :]
        self._texts += [self.encode([each])[1:-1] for each in self._epochs[len(self._texts) :]]
        return f"[{', '.join(self._texts)}]"

    @staticmethod
    def load_existing_json(dir: Optional[str] = None) -> Optional[List[Dict[str, Any]]]:
        """Returns the epochs in the file of a directory, the log directory by default, the complete
        ones if it is truncated, with None for NaN; None if there is no file.
        """
        loaded = JSONWriter.load(dir)
        return None if loaded is None else loaded.epochs

    @staticmethod
    def load_existing_epoch_number(dir: Optional[str] = None) -> Optional[int]:
        """Returns the number of the last epoch in the file, or None if there is none."""
        epochs = JSONWriter.load_existing_json(dir)
        return int(epochs[-1]["epoch_num"]) if epochs else None

    @staticmethod
    def encode(epochs: List[Dict[str, Any]]) -> str:
        return json.dumps(epochs, allow_nan=False)

    @staticmethod
    def decode(text: str) -> Loaded:
        non_finite: List[str] = []

        def number(text: str) -> Optional[float]:
            value = float(text)
            if math.isfinite(value):
                return value
            non_finite.append(text)
            return None

        decoder = json.JSONDecoder(parse_float=number, parse_constant=number)
        epochs: List[Dict[str, Any]] = []
        with suppress(ValueError):
            epochs.extend(parse_epochs(text, decoder, RESERVED))
            return Loaded(epochs, text.rstrip().endswith("]"), len(non_finite))
        return Loaded(epochs, False, len(non_finite))
