"""`convert`: the datapoints of a file in another format."""

import os
from typing import Any, Callable, List, Optional

from tensorpack.utils import logger

from .counted import Counted
from .formats import check_options, find_source
from .output import size_text
from .source import InputOptions, Source, watch_skipped
from .sources import HDF5Source
from .targets import Target, find_target, write_to

__all__ = ["convert"]


def convert(args: Any, options: InputOptions, write: Callable[[str], None]) -> int:
    """Does what the command is asked for; returns the exit code.

    Args:
      args: what the command line gave: `input`, `output`, `force` and `max_errors`.
      options: how the input is read.
      write: prints a text.

    Raises:
      CommandError: a file is of no known format, or would be replaced.
      ImportError, OSError, TypeError, ValueError: as by the reader or the writer.
    """
    target = find_target(args.output, args.force)
    source = find_source(args.input, options)
    check_options(source, options, paths_are_used=target.name == HDF5Source.name)
    with watch_skipped(quiet=False) as skipped:
        count = _convert(source, target, args, options.paths)
    size = size_text(os.path.getsize(target.path))
    write(
        f"{count} datapoints of {args.input} ({source.name}) are in {target.path} "
        f"({target.name}, {size})."
    )
    left_out = len(set(skipped))  # the first datapoints may have been read twice
    if left_out:
        write(f"Damaged and left out: {left_out}. The log above names each of them.")
    return 0


def _convert(source: Source, target: Target, args: Any, paths: Optional[List[str]]) -> int:
    """Writes the file; returns how many datapoints are in it."""
    flow = source.open(args.max_errors)
    try:
        if source.is_raw:
            logger.warning(
                "%s",
                f"{source.path} was not written by tensorpack: its records are taken as they are, "
                "as bytes.",
            )
        if isinstance(source, HDF5Source):
            paths = source.paths
        counted = Counted(flow)
        write_to(target, counted, paths, args.force)
        return counted.count
    finally:
        flow.close()
