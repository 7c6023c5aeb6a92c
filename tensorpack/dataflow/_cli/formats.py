"""Finds the format of a file, by what it holds and else by its name, and the one to write."""

import os
from typing import List, Type

from tensorpack.utils import logger

from .._files import input_path, is_gzip
from .errors import CommandError
from .source import InputOptions, Source, suffix_of
from .sources import HDF5Source, LMDBSource, NpzSource, TFRecordSource
from .tables import CSVSource, SVMLightSource

__all__ = ["check_options", "find_source", "known_formats"]

_START_BYTES = 4096
_SHOWN_BYTES = 16

# Those whose first bytes tell for certain, and those of text.
_BINARY: List[Type[Source]] = [LMDBSource, TFRecordSource, NpzSource, HDF5Source]
_TEXT: List[Type[Source]] = [CSVSource, SVMLightSource]


def known_formats() -> str:
    """Returns the formats and their suffixes, as text."""
    return ", ".join(f"{kind.name} ({' '.join(kind.suffixes)})" for kind in _BINARY + _TEXT)


def find_source(path: str, options: InputOptions) -> Source:
    """Returns a file as one of the formats.

    Args:
      path: of the file, or of the folder of an LMDB database.
      options: how it is to be read.

    Raises:
      CommandError: it is of no known format.
      FileNotFoundError: there is no such file.
    """
    if os.path.isdir(path):
        if not os.path.isfile(os.path.join(path, "data.mdb")):
            raise CommandError(
                f"{path} is a folder without data.mdb, so it is no LMDB database. Give one file."
            )
        return LMDBSource(path, options)
    with open(input_path(path), "rb") as file:
        start = file.read(_START_BYTES)
    return _kind_of(path, start)(path, options)


def _kind_of(path: str, start: bytes) -> Type[Source]:
    if is_gzip(start):
        raise CommandError(f"{path} is compressed by gzip. Unpack it first: gunzip {path}")
    suffix = suffix_of(path)
    by_name = next((kind for kind in _BINARY + _TEXT if suffix in kind.suffixes), None)
    by_content = next((kind for kind in _BINARY if kind.matches(path, start)), None)
    if by_content is not None:
        if by_name not in (None, by_content):
            logger.warning(
                "%s", f"{path} has the name of {by_name.name}, but is {by_content.name}."
            )
        return by_content
    if by_name is None:
        by_name = next((kind for kind in _TEXT if kind.matches(path, start)), None)
    if by_name is None:
        raise CommandError(
            f"The format of {path} is not known: it begins with {start[:_SHOWN_BYTES]!r}, and its "
            f"name ends with {suffix!r}. Known are {known_formats()}."
        )
    return by_name


def check_options(source: Source, options: InputOptions, paths_are_used: bool = False) -> None:
    """Sees to it that nothing was given that would make no difference.

    Args:
      source: the file that is read.
      options: what was given for it.
      paths_are_used: whether the names of datasets are for another file.

    Raises:
      CommandError: an option is for files of another format.
    """
    wrong = []
    if options.paths is not None and not paths_are_used and not isinstance(source, HDF5Source):
        wrong.append(("--paths", HDF5Source.name))
    if not isinstance(source, CSVSource):
        if options.dtypes is not None:
            wrong.append(("--dtypes", CSVSource.name))
        if not options.header:
            wrong.append(("--no-header", CSVSource.name))
    if options.allow_pickle and not isinstance(source, LMDBSource):
        wrong.append(("--allow-pickle", LMDBSource.name))
    for flag, name in wrong:
        raise CommandError(
            f"{flag} is for files in {name}, but {source.path} is {source.name}. Leave it out."
        )
