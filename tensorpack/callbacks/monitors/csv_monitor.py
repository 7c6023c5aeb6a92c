"""Writes the scalars of every epoch to `stats.csv`."""

import csv
import io
import math
from typing import Any, Dict, List

from .epoch_table import RESERVED, EpochTable, Loaded


class CSVMonitor(EpochTable):
    """Keeps `stats.csv` in `logdir`, the log directory by default: a line for each epoch, a column
    for each scalar.

    The columns are `epoch_num`, `global_step`, and the names in the order in which they first came.
    The values are the last ones put in that epoch; a cell is empty where the scalar had none, or
    one that is NaN or infinite. Names, resumed runs and damaged files are treated as in
    `EpochTable`::

        TrainConfig(..., monitors=DEFAULT_MONITORS() + [CSVMonitor()])
        pandas.read_csv("train_log/mnist/stats.csv").plot("epoch_num", "cost")
    """

    FILENAME = "stats.csv"

    @staticmethod
    def encode(epochs: List[Dict[str, Any]]) -> str:
        columns = list(dict.fromkeys([*RESERVED, *(name for each in epochs for name in each)]))
        text = io.StringIO()
        table = csv.DictWriter(text, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(epochs)
        return text.getvalue()

    @staticmethod
    def decode(text: str) -> Loaded:
        lines, _, cut = text.rpartition("\n")
        table = csv.reader(io.StringIO(lines, newline=""), strict=True)
        epochs: List[Dict[str, Any]] = []
        try:
            columns = next(table, [])
            complete = columns[: len(RESERVED)] == list(RESERVED) and not cut
            for cells in table:
                epochs.append(_epoch(columns, cells))
        except (ValueError, csv.Error):
            complete = False
        non_finite = sum(value is None for each in epochs for value in each.values())
        return Loaded(epochs, complete, non_finite)


def _epoch(columns: List[str], cells: List[str]) -> Dict[str, Any]:
    if columns[: len(RESERVED)] != list(RESERVED) or len(cells) != len(columns):
        raise ValueError(f"expected the columns {columns}, got {cells}")
    epoch: Dict[str, Any] = {}
    for name, cell in zip(columns, cells):
        if name in RESERVED:
            epoch[name] = int(cell)
        elif cell:
            value = float(cell)
            epoch[name] = value if math.isfinite(value) else None
    return epoch
