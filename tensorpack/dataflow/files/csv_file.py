"""Tables in text, by Python's own `csv`: a row is a datapoint, and the columns have dtypes.

The file is read when the flow is made, so that what is wrong in it is said at once, with its line.
"""

import csv
import itertools
import os
import sys
from collections import Counter
from contextlib import ExitStack
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import get_tqdm

from ..raw import DataFromList
from .records import DamagedFile, ErrorLimit, PathLike, input_path

_MOST_FIRST = 1001  # rows by which the number of columns is decided
_TRUTH = {"0": False, "1": True, "false": False, "true": True}

_Columns = Sequence[Union[int, str]]
_Field = Tuple[int, Union[int, str], Callable[[str], Any]]


class CSVData(DataFromList):
    """Yields the rows of a table, each a list of numpy scalars and strings.

    `names` has those in the first line; None if the file has none.
    """

    def __init__(
        self,
        filename: PathLike,
        columns: Optional[_Columns] = None,
        dtypes: Any = str,
        shuffle: bool = True,
        *,
        header: bool = True,
        delimiter: str = ",",
        encoding: str = "utf-8-sig",
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          filename: of the file, which is read here. Lines without anything in them are left out.
          columns: names of columns to yield, in this order, or positions from 0. None for all.
          dtypes: one for all, a list with one for each, or a dict by name or position, where the
            others are text: `str`, or a bool (0, 1, false, true), integer or float dtype.
          shuffle: whether each pass has its own order.
          header: whether the first line has the names of the columns.
          delimiter: the character between two columns.
          encoding: of the text. The default is UTF-8, with or without a byte order mark.
          max_errors: how many wrong lines are skipped, see `RecordsFlow`. A row with line breaks in
            quotes counts for all its lines: there may be a stray quote. Without a header, most of
            the first `2 * max_errors + 1` rows tell the width.
        """
        path, limit = input_path(filename), ErrorLimit(max_errors)
        self.names: Optional[List[str]] = None
        rows: List[List[Any]] = []
        with ExitStack() as stack:
            stack.callback(csv.field_size_limit, csv.field_size_limit(sys.maxsize))
            file = stack.enter_context(open(path, newline="", encoding=encoding))
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            records = _records(path, reader, limit)
            if header:
                first = list(itertools.islice(_records(path, reader, ErrorLimit(0)), 1))
                self.names = first[0].texts if first else None
            else:  # most of them are right, if no more than max_errors are wrong
                first = list(itertools.islice(records, min(2 * max_errors + 1, _MOST_FIRST)))
                records = itertools.chain(first, records)
            if not first:
                raise DamagedFile(f"{path} has no rows.")
            width = Counter(len(each.texts) for each in first).most_common(1)[0][0]
            fields = _fields(path, width, self.names, columns, dtypes)
            with get_tqdm(desc=os.path.basename(path), unit="row") as bar:
                for record in records:
                    try:
                        rows.append(_converted(record, width, fields))
                    except DamagedFile as error:
                        limit.skip(error, record.lines)
                    bar.update()
        if not rows:
            raise DamagedFile(f"{path} has no rows" + (" below its header." if header else "."))
        super().__init__(rows, shuffle)


class _Record(NamedTuple):
    """A row: its texts, how many lines it has, and where they are."""

    texts: List[str]
    lines: int
    where: str


def _records(path: str, reader: Any, limit: ErrorLimit) -> Iterator[_Record]:
    while True:
        before, texts, damage = reader.line_num, [], None
        try:
            texts = next(reader)
        except StopIteration:
            return
        except UnicodeDecodeError as error:  # nothing more can be read: whole blocks are decoded
            raise DamagedFile(
                f"{path}: not text of the given encoding, some way after line {before}: {error}."
            ) from error
        except csv.Error as error:
            damage = error
        end, lines = reader.line_num, reader.line_num - before
        place = f"{path}: line {end}" if lines == 1 else f"{path}: lines {before + 1} to {end}"
        if damage is not None:
            limit.skip(DamagedFile(f"{place}: {damage}."), lines)
        elif texts:
            yield _Record(texts, lines, place)


def _fields(
    path: str, width: int, names: Optional[List[str]], columns: Optional[_Columns], dtypes: Any
) -> List[_Field]:
    """Returns what is yielded of a row: the position of a column, its key, and a converter."""
    keys: _Columns = list(names or range(width)) if columns is None else list(columns)
    places = range(width) if columns is None else [_place(path, width, names, k) for k in keys]
    if isinstance(dtypes, dict):
        unknown = [key for key in dtypes if key not in keys]
        if unknown:
            raise KeyError(f"dtypes has {unknown}, but what is yielded is {list(keys)}.")
        dtypes = [dtypes.get(key, str) for key in keys]
    elif not isinstance(dtypes, (list, tuple)):
        dtypes = [dtypes] * len(keys)
    if len(dtypes) != len(keys):
        raise ValueError(f"There are {len(dtypes)} dtypes for {len(keys)} columns: {list(keys)}.")
    return [(place, key, _converter(dtype)) for place, key, dtype in zip(places, keys, dtypes)]


def _place(path: str, width: int, names: Optional[List[str]], key: Union[int, str]) -> int:
    if isinstance(key, str):
        if names is None or names.count(key) != 1:
            raise KeyError(f"{path} has not one column {key!r}; its names: {names}.")
        return names.index(key)
    if not 0 <= key < width:
        raise KeyError(f"{path} has columns 0 to {width - 1}, but no {key}.")
    return key


def _converted(record: _Record, width: int, fields: List[_Field]) -> List[Any]:
    """Returns what a row yields; raises `DamagedFile`."""
    if len(record.texts) != width:
        raise DamagedFile(f"{record.where}: {len(record.texts)} columns instead of {width}.")
    values = []
    for place, key, convert in fields:
        try:
            values.append(convert(record.texts[place]))
        except ValueError as error:
            raise DamagedFile(f"{record.where}, column {key!r}: {error}.") from error
    return values


def _converter(dtype: Any) -> Callable[[str], Any]:
    """Returns a function that makes a value of text; it raises ValueError, without a full stop."""
    if dtype is str or (isinstance(dtype, str) and dtype == "str"):
        return str
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"A column is str, or a bool, integer or float dtype, but got {dtype}.")
    if dtype.kind == "b":
        return lambda text: dtype.type(_truth(text))
    kind, name = (float, "a number") if dtype.kind == "f" else (int, "an integer")
    limits = np.finfo(dtype) if kind is float else np.iinfo(dtype)
    least, most = kind(limits.min), kind(limits.max)

    def convert(text: str) -> Any:
        try:
            value = kind(text if "_" not in text else "")  # Python takes 1_000 for a number
        except ValueError as error:
            raise ValueError(f"{text[:40]!r} is not {name}") from error
        if not least <= value <= most and "n" not in text.lower():  # as in inf, infinity and nan
            with np.errstate(over="ignore"):  # str() of the largest float32 is above it
                if kind is int or np.isinf(dtype.type(value)):
                    raise ValueError(f"{text[:40]} does not fit into {dtype}")
        return dtype.type(value)

    return convert


def _truth(text: str) -> bool:
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise ValueError(f"{text[:40]!r} is none of {sorted(_TRUTH)}")
    return value
