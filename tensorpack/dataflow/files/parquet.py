"""Parquet files: columns in groups of rows, of which each row is a datapoint. Needs pyarrow 14."""

from bisect import bisect_right
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import Any, Dict, List, Optional, Sequence, Tuple

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
    parts = [chunk.flatten() for chunk in column.chunks] if has_lists else [column]
    is_plain = all(types.is_primitive(part.type) and not part.null_count for part in parts)
    return column.to_numpy() if is_plain and not column.null_count else column.to_pylist()


class ParquetSerializer:
    """Writes the datapoints of a flow to a Parquet file, and makes a flow of such a file."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, columns: Sequence[str]) -> int:
        """Writes lists or tuples, a column for each component; see `write_records`."""
        return records.write_records(df, path, lambda file: _writer(file, list(columns)))

    load = ParquetData


@contextmanager
def _writer(file: Any, names: List[str]) -> Writing:
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    rows: List[Any] = []
    writer: Any = None

    def write(datapoint: Any, index: int) -> None:
        records.check_row(datapoint, index, names)
        rows.append(datapoint)
        if len(rows) == _GROUP_ROWS:
            flush()

    def flush() -> None:
        nonlocal writer
        table = pyarrow.table([pyarrow.array(values) for values in zip(*rows)], names)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            stack.enter_context(writer)
        writer.write_table(table)
        rows.clear()

    with ExitStack() as stack:
        yield write
        if rows:
            flush()
