"""The number of datapoints in a pass, and how a flow tells that it is not known.

It is not known if `__len__` raises `UnknownLength` or another NotImplementedError, or is missing.
Any other result that is not a count is a mistake, not a pass without an end.
"""

import functools
from typing import Any, Callable, Optional

from tensorpack.utils.checks import as_count


class UnknownLength(TypeError, NotImplementedError):
    """The number of datapoints in a pass is not known, or the pass has no end.

    A `TypeError` for `len(flow)` and a `NotImplementedError` for `flow.size()`.
    """


def checked_length(function: Callable[[Any], Any], name: str) -> Callable[[Any], int]:
    """Makes a `__len__` of a method that may raise NotImplementedError, which `len` must not.

    A result that is not a count raises ValueError, because callers that use a length if there is
    one, such as `list` and tqdm, ignore a TypeError.
    """

    @functools.wraps(function)
    def length(self: Any) -> int:
        try:
            return as_count(self, f"what {name}() returns", function(self), 0)
        except UnknownLength:
            raise
        except NotImplementedError as error:
            raise UnknownLength(
                f"The length of {type(self).__name__} is not known: its {name}() raised {error!r}."
            ) from error

    length._is_length = True  # type: ignore[attr-defined]
    return length


def endless(flow: Any) -> UnknownLength:
    """Returns the error of a flow whose length its producers decide."""
    return UnknownLength(
        f"The length of {type(flow).__name__} is not known: its producers decide when it ends. "
        "Wrap it in FixedSizeData(ds, size) for passes of a known length, or do without it, for "
        "example by giving steps_per_epoch yourself."
    )


def length_of(flow: Any) -> int:
    """Returns `len(flow)`; raises `UnknownLength` also if `flow` has no `__len__`."""
    if getattr(type(flow), "__len__", None) is None:
        name = type(flow).__name__
        raise UnknownLength(f"The length of {name} is not known: define {name}.__len__().")
    return len(flow)


def length_or_none(flow: Any) -> Optional[int]:
    """Returns the number of datapoints in a pass, or None if it is not known.

    Unlike `operator.length_hint`, it raises a TypeError that is a mistake in `__len__`.
    """
    try:
        return length_of(flow)
    except NotImplementedError:  # UnknownLength is one
        return None
