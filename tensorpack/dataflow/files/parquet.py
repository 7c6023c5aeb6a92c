"""Parquet files: columns in groups of rows, of which each row is a datapoint. Needs pyarrow 14."""

from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.optional import require

from ..base import DataFlow
from . import records
from .records import DamagedFile, PathLike, RecordFile, RecordsFlow, Writing

_GROUP_ROWS = 4096  # that are written
_Names = Optional[Sequence[str]]


class ParquetData(RecordsFlow):
    """Yields a list of the values in each row: numpy scalars, text, bytes, arrays of one axis.

    What is missing is None. Arrays are read-only: copy what you want to change. Groups are read
    when they are needed; with `shuffle` a process keeps all that it has read, else the last one.
    """

    def __init__(
        self, path: PathLike, columns: _Names = None, shuffle: bool = True, max_errors: int = 0
    ) -> None:
        """
        Args:
          path, shuffle: the file, and whether each pass has its own order.
          columns: names of columns, in the order to yield them; None for all.
          max_errors: how many rows of damaged groups a pass skips, see `RecordsFlow`.
        """
        super().__init__(_Rows(path, columns, shuffle), shuffle, max_errors)


class _Rows(RecordFile):
    def __init__(self, path: PathLike, columns: _Names, keeps: bool) -> None:
        super().__init__(path)
        self._args = columns, keeps
        self._groups: Dict[int, List[Any]] = {}  # the columns of each group that is kept
        known, about = self.handle.schema_arrow.names, self.handle.metadata
        self.keys: List[str] = list(known if columns is None else columns)
        if not set(self.keys) <= set(known):
            raise KeyError(f"{self.path} has the columns {known}, but {self.keys} are asked for.")
        sizes = (about.row_group(group).num_rows for group in range(about.num_row_groups))
        self._begins = [0, *accumulate(sizes)]

    def open(self) -> Any:
        parquet = require("pyarrow.parquet")
        try:
            return parquet.ParquetFile(self.path, page_checksum_verification=True)
        except (OSError, ValueError) as error:
            raise DamagedFile(f"{self.path} is not a whole Parquet file: {error}") from error

    def __len__(self) -> int:
        return self._begins[-1]

    def read(self, index: int) -> List[Any]:
        group = bisect_right(self._begins, index) - 1
        columns = self._groups.get(group)
        if columns is None:
            try:
                table = self.handle.read_row_group(group, self.keys)
            except (OSError, ValueError) as error:
                raise self.damaged(index, f"its group {group} cannot be read: {error}") from error
            columns = [_values(table.column(name)) for name in self.keys]
            self._groups = {**(self._groups if self._args[1] else {}), group: columns}
        return [column[index - self._begins[group]] for column in columns]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path, *self._args)


def _values(column: Any) -> Any:
    """Returns a column as an array, or as a list where an array would lose something."""
    types = require("pyarrow").types
    of_lists = types.is_list, types.is_large_list, types.is_fixed_size_list
    has_lists = any(is_one(column.type) for is_one in of_lists)
    if not types.is_primitive(column.type.value_type if has_lists else column.type):
        return column.to_pylist()
    parts = [column, *(chunk.flatten() for chunk in column.chunks if has_lists)]
    if not any(part.null_count for part in parts):
        return column.to_numpy()
    if has_lists:
        return [None if row.values is None else _array_or_list(row.values) for row in column]
    numbers = iter(column.drop_null().to_numpy())
    return [next(numbers) if is_there else None for is_there in column.is_valid().to_pylist()]


def _array_or_list(numbers: Any) -> Any:
    return numbers.to_pylist() if numbers.null_count else numbers.to_numpy(zero_copy_only=False)


class ParquetSerializer:
    """Writes the datapoints of a flow to a Parquet file, and makes a flow of such a file."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, columns: Sequence[str]) -> int:
        """Writes lists or tuples, a column for each component; see `write_records`.

        The first 4096 decide the types, or more, in memory, if a component is None in all of them.
        What would come back as another value is an error.
        """
        return records.write_records(df, path, lambda file: _writer(file, list(columns)))

    load = ParquetData


@contextmanager
def _writer(file: Any, names: List[str]) -> Writing:
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    rows: List[Any] = []
    writer: Any = None
    full, first = _GROUP_ROWS, 0  # first: the number of the datapoint in rows[0]

    def write(datapoint: Any, index: int) -> None:
        records.check_row(datapoint, index, names)
        rows.append(datapoint)
        if len(rows) == full:
            flush()

    def flush(is_last: bool = False) -> None:
        nonlocal writer, full, first
        known = [None] * len(names) if writer is None else writer.schema.types
        columns = [_column(*each, first) for each in zip(names, zip(*rows), known)]
        table = pyarrow.table(columns, names)
        if writer is None:
            if not is_last and any(map(pyarrow.types.is_null, table.schema.types)):
                full *= 2
                return
            writer = parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            stack.enter_context(writer)
        writer.write_table(table, _GROUP_ROWS)
        full, first = _GROUP_ROWS, first + len(rows)
        rows.clear()

    with ExitStack() as stack:
        yield write
        if rows:
            flush(is_last=True)


def _column(name: str, values: Sequence[Any], known: Any, first: int) -> Any:
    """Returns an array of a known type, if there is one; an error says which datapoint is wrong."""
    errors = require("pyarrow").ArrowException, ArithmeticError, TypeError, ValueError
    try:
        return _array(values, known)
    except errors as error:
        low, high = 0, len(values) - 1  # the first that does not go with those before it
        while low < high:
            middle = (low + high) // 2
            try:
                _array(values[: middle + 1], known)
                low = middle + 1
            except errors:
                high = middle
        text = f"Datapoint {first + low} cannot be written: component {name!r}: {error}"
        raise type(error)(text) from error


def _array(values: Sequence[Any], known: Any) -> Any:
    kinds = set(map(type, values))
    if any(issubclass(kind, (np.ma.MaskedArray, set, frozenset)) for kind in kinds):
        raise TypeError("it is a masked array or a set. Yield array.filled(value), or a list.")
    if kinds >= {str, bytes}:
        raise TypeError("it is text in some datapoints and bytes in others.")
    if len({frozenset(each) for each in values if isinstance(each, dict)}) > 1:
        raise TypeError("its dicts have different keys. Give all of them the same, with None.")
    array = require("pyarrow").array
    found = array(values)
    if known is None or found.type == known:
        return found
    kept = array(values, known)
    if kept.to_pylist() != found.to_pylist():  # pyarrow rounds, and leaves keys of dicts out
        raise TypeError(f"it is {found.type}, but {known} before. Convert it by MapDataComponent.")
    return kept
