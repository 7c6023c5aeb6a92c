"""Applies a function to every datapoint, one by one, in the process that iterates.

`threads.py` and `process_map.py` apply functions elsewhere; they share the rules of this module: a
function may change the list or dict it gets, and None drops a datapoint.

Maps that draw random numbers have a stream for each datapoint, which the seed, the pass and the
position in it decide. So what is drawn is the same after a run was resumed.
"""

import copy
import os
import reprlib
import threading
from contextlib import closing
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Hashable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note
from tensorpack.utils.rng import rng_state

from ._flow import ProcessLocal
from .base import DataFlow, ProxyDataFlow, RNGDataFlow


def check_function(flow: DataFlow, func: Any) -> Callable[[Any], Any]:
    """Returns the function that a flow was given; a TypeError if it cannot be called."""
    if not callable(func):
        name = type(flow).__name__
        raise TypeError(f"{name} applies a function, but got {type(func).__name__}: {func!r}.")
    return func


def apply_function(func: Callable[[Any], Any], datapoint: Any) -> Any:
    """Calls a function with a datapoint that it may change; None drops the datapoint."""
    try:
        # A datapoint may be its source's own. Components are not copied, only what holds them.
        return func(copy.copy(datapoint) if isinstance(datapoint, (list, dict)) else datapoint)
    except StopIteration as error:  # it would end the pass
        raise RuntimeError("The function raised StopIteration. Return None to drop.") from error


def drop_none(flow: DataFlow, results: Generator[Any, None, None]) -> Generator[Any, None, None]:
    """Yields the results of a pass that are not None; warns at its end if there is no other."""
    dropped = yielded = False
    with closing(results):
        for result in results:
            if result is None:
                dropped = True
                continue
            yielded = True
            yield result
            result = None  # a process may wait for its memory
    if dropped and not yielded:
        logger.warning(
            f"{type(flow).__name__} has dropped every datapoint of a pass. Does its function lack "
            "a return?"
        )


class DatapointMap(ProxyDataFlow):
    """A flow that makes each datapoint from one of the wrapped flow, or drops it.

    An error says which datapoint it is about, in a note of it.
    """

    _apply: Callable[[Any], Any]  # returns the datapoint to yield, or None to drop it

    @property
    def last_file(self) -> Optional[str]:
        """The file that the last datapoint was read from; None if that is not known."""
        return getattr(self.ds, "last_file", None)

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        return drop_none(self, self._results(datapoints))

    def _results(self, datapoints: Iterator[Any]) -> Generator[Any, None, None]:
        for number, datapoint in enumerate(datapoints):
            try:
                result = self._apply(datapoint)
            except Exception as error:
                note_datapoint(error, type(self).__name__, number, datapoint, self.last_file)
                raise
            yield result


class MapData(DatapointMap):
    """Applies a function to every datapoint, and drops those for which it returns None.

    >>> flow = DataFromList([[1, "a"], [2, "b"], [3, "c"]], shuffle=False)
    >>> list(MapData(flow, lambda dp: [dp[0] * 10, dp[1]] if dp[0] != 2 else None))
    [[10, 'a'], [30, 'c']]

    `len` is that of the wrapped flow, so it is too large if datapoints are dropped.
    """

    def __init__(self, ds: DataFlow, func: Callable[[Any], Any]) -> None:
        """`func` may change the list or dict it gets; the components in it are not copied."""
        super().__init__(ds)
        self.func = check_function(self, func)

    def _apply(self, datapoint: Any) -> Any:
        return apply_function(self.func, datapoint)


class MapDataComponent(DatapointMap):
    """Applies a function to one component, and drops the datapoint if it returns None.

    >>> flow = DataFromList([[1, "a"], [2, "b"]], shuffle=False)
    >>> list(MapDataComponent(flow, str.upper, 1))
    [[1, 'A'], [2, 'B']]

    The datapoint of the wrapped flow is not changed; a tuple comes out as a list. A missing
    component raises an `IndexError` or `KeyError` while iterating, here and below.
    """

    def __init__(
        self, ds: DataFlow, func: Callable[[Any], Any], index: Union[int, Hashable] = 0
    ) -> None:
        """
        Args:
          func: takes the component and returns the one to put in its place, or None to drop the
            datapoint.
          index: the position of the component, or its key if datapoints are dicts.
        """
        super().__init__(ds)
        self.func = check_function(self, func)
        self.index = index

    def _apply(self, datapoint: Any) -> Any:
        component = self.func(component_of(self, datapoint, self.index))
        if component is None:
            return None
        result: Any = dict(datapoint) if isinstance(datapoint, dict) else list(datapoint)
        result[self.index] = component
        return result


class FilterData(DatapointMap):
    """Keeps the datapoints that a predicate is true of, or of one of their components.

    >>> flow = DataFromList([[1, "a"], [2, "b"], [3, "c"]], shuffle=False)
    >>> list(FilterData(flow, lambda number: number != 2, index=0))
    [[1, 'a'], [3, 'c']]
    """

    def __init__(
        self,
        ds: DataFlow,
        predicate: Callable[[Any], Any],
        index: Union[None, int, Hashable] = None,
    ) -> None:
        """
        Args:
          predicate: takes the component, or without `index` the datapoint; whether to keep it.
          index: the position of the component, or its key if datapoints are dicts.
        """
        super().__init__(ds)
        self.predicate = check_function(self, predicate)
        self.index = index

    def _apply(self, datapoint: Any) -> Any:
        judged = datapoint if self.index is None else component_of(self, datapoint, self.index)
        return datapoint if self.predicate(judged) else None


class SelectComponent(DatapointMap):
    """Yields some components of every datapoint, as a list in the order asked for.

    >>> list(SelectComponent(DataFromList([{"id": 1, "x": 5, "y": 6}]), ["y", "x"]))
    [[6, 5]]
    """

    def __init__(self, ds: DataFlow, idxs: Sequence[Union[int, Hashable]]) -> None:
        """`idxs` are positions of components, or their keys if datapoints are dicts."""
        super().__init__(ds)
        self.idxs = list(idxs)

    def _apply(self, datapoint: Any) -> List[Any]:
        return [component_of(self, datapoint, index) for index in self.idxs]


class RandomMap(RNGDataFlow, DatapointMap):
    """Base of maps that draw random numbers."""

    # Returns a new datapoint, or None to drop it, for one, its position, and a random stream.
    _draw: Callable[[Any, int, np.random.RandomState], Any]

    # The random stream before the pass, and how many datapoints of the wrapped flow were taken.
    _STATE = {"rng": None, "count": 0}
    _INNER = ("ds", "rng")

    def __init__(self, ds: DataFlow) -> None:
        super().__init__(ds)
        self._stream: ProcessLocal[_Stream] = ProcessLocal(_Stream)

    def __iter__(self) -> Iterator[Any]:
        begin, key = self._begin()
        _, count = self._take_loaded() or (None, 0)
        self._position = begin, count
        return self._pass(begin, key, iter(self.ds), count)

    def _begin(self) -> Tuple[Dict[str, Any], np.ndarray]:
        """Returns the random stream before a new pass, and the key of all draws in the pass."""
        begin = rng_state(self.rng)
        return begin, self.rng.randint(0, 2**64, size=2, dtype=np.uint64)

    def _pass(
        self, begin: Dict[str, Any], key: np.ndarray, datapoints: Iterator[Any], first: int
    ) -> Iterator[Any]:
        for number, datapoint in enumerate(datapoints, first):
            self._position = begin, number + 1
            stream = self._stream.get()
            try:
                with stream.lock:
                    result = self._draw(datapoint, number, stream.at(key, number))
            except Exception as error:
                name = type(self).__name__
                note_datapoint(error, name, number, datapoint, self.last_file, "counted from 0")
                raise
            if result is not None:
                yield result


class RandomMapData(RandomMap):
    """`MapData` whose function gets a random stream as well, a new one for each datapoint.

    >>> flow = DataFromList([[10], [20], [30]], shuffle=False)
    >>> flow = RandomMapData(flow, lambda dp, rng: [dp[0] + rng.randint(10)])
    >>> flow.rng = np.random.RandomState(0)
    >>> list(flow)
    [[18], [28], [31]]
    """

    def __init__(self, ds: DataFlow, func: Callable[[Any, np.random.RandomState], Any]) -> None:
        """`func` takes a datapoint and a `numpy.random.RandomState`, which it must not keep."""
        super().__init__(ds)
        self.func: Callable[..., Any] = check_function(self, func)

    def _draw(self, datapoint: Any, number: int, rng: np.random.RandomState) -> Any:
        return apply_function(lambda dp: self.func(dp, rng), datapoint)


class _Stream:
    """A random stream that begins at a place of its own for each datapoint of each pass.

    It is a counter-based one (Philox 4x64, Salmon et al. 2011), so a place costs nothing to go to:
    the key is that of the pass, the upper half of the counter the number of the datapoint.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held while it is in use
        self._rng = np.random.RandomState(np.random.Philox(0))
        self._counter, buffer = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": None},
            "buffer": buffer,
            "buffer_pos": 4,  # nothing is left in it
            "has_uint32": 0,
            "uinteger": 0,
            "has_gauss": 0,
            "gauss": 0.0,
        }

    def at(self, key: np.ndarray, number: int) -> np.random.RandomState:
        """Returns the stream of a datapoint; valid until the next call."""
        self._state["state"]["key"] = key  # type: ignore[index]
        self._counter[2] = number
        self._rng.set_state(self._state)
        return self._rng


def component_of(flow: DataFlow, datapoint: Any, index: Union[int, Hashable]) -> Any:
    """Returns a component of a datapoint, or raises an error that describes the datapoint."""
    try:
        return datapoint[index]
    except (IndexError, KeyError, TypeError) as error:
        raise type(error)(
            f"{type(flow).__name__} takes component {index!r}, which {summary_of(datapoint)} does "
            f"not have ({error}). A datapoint is a list, or a dict of keys."
        ) from error


def note_datapoint(
    error: BaseException,
    owner: str,
    number: Union[int, str],
    datapoint: Any,
    file: Optional[str] = None,
    counted: str = "counted from 0 where the pass began or was resumed",
) -> None:
    """Adds a note to an error: the flow that failed, the datapoint, and the file it came from."""
    note = f"{owner} failed on datapoint {number} ({counted}): {summary_of(datapoint)}"
    add_note(error, f"{note}, read from {file}." if file else f"{note}.")


def summary_of(value: Any) -> str:
    """Returns what a datapoint or component is in a few words, such as `[uint8 (4, 6, 3), 7]`."""
    return _Summary().repr(value)


class _Summary(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxstring = self.maxother = 200

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, (np.ndarray, np.generic)):
            return f"{x.dtype} {x.shape}"
        for kind in (list, tuple, dict, str, int):  # and classes derived from these
            if isinstance(x, kind):
                return getattr(self, f"repr_{kind.__name__}")(x, level)  # type: ignore[no-any-return]
        if x is None or isinstance(x, (float, bytes, os.PathLike)):
            return self.repr_instance(x, level)
        return f"a {type(x).__name__}"
