"""Goes through a dataflow pass after pass.

Input sources that take their data from Python use it, so that what a pass is, when the data is over
and what an empty dataflow means is the same for all of them. It does not call `reset_state`: that
is for the thread that iterates, once.
"""

from typing import Any, Generator

from tensorpack.dataflow import DataFlow

from .errors import DataFlowEmpty

__all__ = ["check_is_dataflow", "datapoints"]


def check_is_dataflow(ds: Any) -> DataFlow:
    """Returns `ds`.

    Raises:
      ValueError: it is not a `DataFlow`.
    """
    if not isinstance(ds, DataFlow):
        raise ValueError(
            f"An input source takes a DataFlow, got {type(ds).__name__}. Derive your class from "
            f"DataFlow, or wrap "
            "a list in DataFromList and a generator in DataFromGenerator."
        )
    return ds


def datapoints(ds: DataFlow, infinite: bool = True) -> Generator[Any, None, None]:
    """Yields the datapoints of one pass over `ds`, then of the next one, and so on.

    A pass that is left early (the generator is closed, or the dataflow raises) is closed as well.

    Args:
      ds: the dataflow, reset already.
      infinite: False to end after the first pass.

    Raises:
      DataFlowEmpty: a pass ended without a datapoint.
    """
    while True:
        empty = True
        one_pass = iter(ds)
        try:
            for datapoint in one_pass:
                empty = False
                yield datapoint
        finally:
            close = getattr(one_pass, "close", None)
            if close is not None:
                close()
        if empty:
            raise DataFlowEmpty(
                f"{type(ds).__name__} ended without a single datapoint. Look at what it reads "
                f"from, at filters that "
                "drop everything, and at generators, which can be gone through only once."
            )
        if not infinite:
            return
