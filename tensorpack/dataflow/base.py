"""The contract of every dataflow: an iterable of datapoints that can be iterated again.

Everything else in this package is built on these four classes and on nothing more. Where the
data comes from, and in which process it is made, is not known here.
"""

import functools
from typing import Any, Callable, Iterator, Optional

import numpy as np

from tensorpack.utils.rng import get_rng

from ._spelling import give_both_names

__all__ = ["DataFlow", "DataFlowTerminated", "ProxyDataFlow", "RNGDataFlow", "UnknownLength"]


class DataFlowTerminated(Exception):
    """No more data can ever come, for example because the other end of a connection is gone."""


class UnknownLength(TypeError, NotImplementedError):
    """The number of datapoints in a pass is not known, or there is no end to them.

    A `TypeError` for those who call `len(flow)`, a `NotImplementedError` for those who call
    `flow.size()`.
    """


def _length_of_size(size: Callable[[Any], int]) -> Callable[[Any], int]:
    """Makes a `__len__` of a `size` that may raise NotImplementedError, which `len` must not."""

    @functools.wraps(size)
    def length(self: Any) -> int:
        try:
            return size(self)
        except UnknownLength:
            raise
        except NotImplementedError as error:
            raise UnknownLength(
                f"The length of {type(self).__name__} is not known: its size() is not implemented."
            ) from error

    return length


class DataFlow:
    """An iterable of datapoints. Whoever consumes one does this, and only this::

        flow.reset_state()           # in the process that iterates, before the first datapoint
        for datapoint in flow:       # one pass; every `iter(flow)` begins another
            ...

    A **datapoint** is a list (or tuple) of components, or a dict of them. A consumer may keep it,
    for a flow never writes into what it has yielded. A consumer that changes one copies it first,
    as `MapData` does, for it may be the source's own.

    **Passes are independent.** `iter(flow)` may be called again before an earlier pass is over,
    and a pass may be abandoned anywhere; neither changes what another pass yields, unless the
    class says that it hands on a source that can be read only once.

    **`len(flow)`** is the number of datapoints in a pass, or raises `UnknownLength`.

    **`reset_state()`** gives the flow what it must not share with another process, such as a
    random stream of its own. It may be called any number of times between passes. A flow of this
    package also works without it; one that came from another process by fork or pickle needs it,
    or it draws the same random numbers as its twin.

    **State.** A flow remembers nothing of a pass: the position in a pass belongs to the iterator,
    and what lies between two passes is the random stream alone. The names `state_dict` and
    `load_state_dict` are reserved for saving and restoring these two.

    Subclasses define `__iter__`, `__len__` if they can, `reset_state` if they must. The names of
    2017, `get_data` and `size`, serve as well, both to define and to call: within each class they
    are the same method.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        give_both_names(cls, "__iter__", "get_data")
        give_both_names(cls, "__len__", "size", _length_of_size)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises:
          NotImplementedError: the class defines neither `__iter__` nor `get_data`.
        """
        name = type(self).__name__
        raise NotImplementedError(f"{name} yields nothing yet: define {name}.__iter__().")

    def __len__(self) -> int:
        """Returns the number of datapoints in a pass.

        Raises:
          UnknownLength: it is not known; both a `TypeError` and a `NotImplementedError`.
        """
        name = type(self).__name__
        raise UnknownLength(
            f"The length of {name} is not known. Define {name}.__len__() if every pass has the "
            "same number of datapoints, or do without it, for example by giving "
            "steps_per_epoch yourself."
        )

    def __bool__(self) -> bool:
        """A flow is always true, so that asking whether there is one never asks for its length."""
        return True

    def reset_state(self) -> None:
        """Prepares the flow for passes in this process; may be called again."""

    get_data = __iter__
    size = __len__


class ProxyDataFlow(DataFlow):
    """A flow made from another one, and equal to it where nothing is overridden.

    Attributes:
      ds: the wrapped flow.
    """

    def __init__(self, ds: DataFlow) -> None:
        """
        Args:
          ds: the flow to wrap.

        Raises:
          TypeError: `ds` is not a flow.
        """
        if not hasattr(ds, "__iter__") or not callable(getattr(ds, "reset_state", None)):
            raise TypeError(
                f"{type(self).__name__} wraps a DataFlow, but got {type(ds).__name__}. "
                "Wrap a list in DataFromList, any other iterable in DataFromIterable."
            )
        self.ds = ds

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ds)

    def __len__(self) -> int:
        return len(self.ds)

    def reset_state(self) -> None:
        self.ds.reset_state()


class RNGDataFlow(DataFlow):
    """A flow that draws random numbers.

    `reset_state` gives it a new random stream, different from that of every other object and
    process, and the same in every run of a program that calls `fix_rng_seed`.
    """

    _rng: Optional[np.random.RandomState] = None

    @property
    def rng(self) -> np.random.RandomState:
        """The random stream, made at the latest when it is first asked for."""
        if self._rng is None:
            self._rng = get_rng(self)
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.RandomState) -> None:
        self._rng = rng

    def reset_state(self) -> None:
        self._rng = get_rng(self)

    def rng_of_pass(self) -> np.random.RandomState:
        """Returns a stream for one pass, so that passes at the same time do not share draws."""
        return np.random.RandomState(self.rng.randint(0, 2**32, size=8, dtype=np.uint32))
