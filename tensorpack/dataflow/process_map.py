"""Functions applied to datapoints in worker processes, while the flow itself stays here."""

import functools
import hashlib
import itertools
import random
from contextlib import closing, suppress
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import get_rng, rng_state, seed_datapoints
from tensorpack.utils.workers.processes import usable_cores

from ._flow import in_order
from ._processes.channel import Limits
from ._processes.flows import ProcessFlow
from ._processes.pickled import Packed
from ._processes.pool import WorkerPool
from ._processes.start_method import choose_start_method
from ._processes.worker_loop import Failure, Item, apply_or_note, draw_seed, map_inputs
from ._read_ahead import ReadAhead, ReadAheadFlow, why_late
from ._stack import aggregate
from .base import DataFlow, ProxyDataFlow
from .batch import BatchData, as_batch_size
from .map import MapData, apply_function, check_function, drop_none, note_datapoint

_GIB = 2**30


class _ProcessMap(ReadAheadFlow, ProcessFlow):
    """A flow whose datapoints go to processes, which call `func`, and come back as something else.

    At most `most` inputs may be in flight, `buffer_bytes` of results, and as many of inputs.
    """

    _work: Callable[[Any], Any]  # what a process calls with each input

    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int],
        func: Optional[Callable[[Any], Any]],
        most: int,
        buffer_bytes: float,
        start_method: Optional[str],
    ) -> None:
        num_proc = usable_cores() if num_proc is None else num_proc
        super().__init__(ds, num_proc, buffer_bytes, start_method)
        num_proc = self.num_proc
        self.func = check_function(self, func)
        self._most = most = as_count(self, "buffer_size", most)
        self._limits = Limits.of(most + num_proc, self._buffer_bytes, num_proc)

    def reset_state(self) -> None:
        super().reset_state()
        self.start_processes()

    def start_processes(self) -> None:
        ProxyDataFlow.start_processes(self)
        super().start_processes()

    def _results(self, inputs: Iterator[Any], source: ReadAhead) -> Generator[Any, None, None]:
        """Yields what the processes make of inputs, None among it; in their order if strict."""
        early: Dict[int, Any] = {}
        pool = self._pools.take(self._make_pool)
        try:
            ready = self._as_they_come(pool, inputs, early)
            for _, result in in_order(ready, early) if self.strict else ready:
                if self.strict:
                    source.give()
                if isinstance(result, Failure):
                    raise result.error()
                yield result
                result = None  # the pool may wait for its memory
            source.finish()
        finally:
            pool.in_use = False

    def _as_they_come(
        self, pool: WorkerPool, inputs: Iterator[Any], early: Dict[int, Any]
    ) -> Iterator[Tuple[int, Any]]:
        """Yields the numbers of inputs and their results.

        At most `_most` inputs are in flight, less those in `early`, which the caller keeps back.
        What the inputs raise comes after all results before that.
        """
        sent = received = 0
        packed: Optional[Packed] = None
        error: Optional[Exception] = None
        is_over = False
        inputs = map(self._pack, inputs)
        pool.begin()
        while True:
            if packed is None and not is_over and sent - received + len(early) < self._most:
                try:
                    packed = next(inputs, None)
                except Exception as caught:
                    error = caught
                is_over = packed is None
            if packed is None and sent == received:
                break
            was_sent, item = pool.exchange(packed, sent)
            if was_sent:
                packed, sent = None, sent + 1
            if item is not None:
                received += 1
                yield item
            item = None  # the pool may wait for its memory
        if error is not None:
            try:
                raise error
            finally:
                error = None  # it would keep itself, by this frame

    def _pack(self, inputs: Any) -> Packed:
        with suppress(TypeError, ValueError):
            return Packed(inputs)
        for item in inputs if isinstance(inputs, list) else [inputs]:
            apply_or_note(type(self).__name__, Packed, item)  # places count from the datapoint
        return Packed(inputs)

    def _make_pool(self) -> WorkerPool:
        name, seed = type(self).__name__, draw_seed(get_rng(self))
        environments = self.environments or [{}] * self.num_proc
        return WorkerPool(
            map_inputs,
            [(env, name, self._work, seed + i) for i, env in enumerate(environments)],
            ("map_func", self.func),
            self._limits,
            choose_start_method(self._start_method),
            name,
            self._limits,
        )


class MultiProcessMapData(_ProcessMap):
    """Applies a function to every datapoint in several processes, and drops those for which it
    returns None.

    A pass is one pass of the wrapped flow, which is iterated in this process. `len` is that of the
    wrapped flow, dropped datapoints included.

    **By default** results come in the order in which they are ready. **In a strict flow** they
    come in the order of the wrapped flow, and what the function, or an augmentor in it, draws from
    `numpy.random` and `random` depends on the position of the datapoint alone, not on the
    processes; such a flow keeps a state, if the wrapped one does, and a pass that is left early is
    as in `MultiThreadMapData`.

    Datapoints and results travel as those of a `MultiProcessRunner`; arrays are read-only on both
    sides. The function may change the list or dict that it gets. What it raises is raised by the
    iteration, in strict flows at its place; the processes stay.
    """

    # The state of the flow after what was given out, the random stream at the begin of the pass,
    # the number of what is next, and whether the pass is over.
    _STATE = {"ds": None, "rng": None, "number": 0, "over": False}
    _INNER = ("ds", "rng")

    @accepts_old_keywords(nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        buffer_size: int = 200,
        strict: bool = False,
        *,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        """
        Args:
          num_proc: the number of processes; by default as many as there are cores.
          map_func: takes a datapoint and returns a datapoint, or None to drop it.
          buffer_size: how many datapoints may be taken from the flow and not yet be given out.
          buffer_bytes: how many bytes may be on the way to the processes, and as many back; a
            single datapoint may have more.
          start_method: as in `MultiProcessRunner`.
        """
        super().__init__(ds, num_proc, map_func, buffer_size, buffer_bytes, start_method)
        self.strict = strict
        self._work = _Map(self.func)

    def _without_processes(self) -> DataFlow:
        return MapData(self.ds, self.func)

    def _begin(self) -> Iterator[Any]:
        if not self.strict:
            source = ReadAhead(self)
            return drop_none(self, self._results(_items(self.ds, source), source))
        _, _, number, over = self._take_loaded() or (None, None, 0, False)
        if over:
            return iter(self.ds)
        begin, seed = rng_state(self.rng), draw_seed(self.rng)
        source = ReadAhead(self, why_late(self.ds))
        self._position = source.place.state, begin, number, False
        return drop_none(self, self._in_order(source, seed, begin, number))

    def _in_order(
        self, source: ReadAhead, seed: int, begin: Any, number: int
    ) -> Generator[Any, None, None]:
        inputs = _items(self.ds, source, number, seed)
        with closing(self._results(inputs, source)) as results:
            for count, result in enumerate(results, number + 1):
                self._position = source.place.state, begin, count, False
                yield result
                result = None  # the pool may wait for its memory
        self._position = source.place.state, rng_state(self.rng), 0, True


MultiProcessMapDataZMQ = MultiProcessMapData


class _Map:
    """What a process does with a datapoint.

    In a strict pass, which has a seed, it seeds `numpy.random` and `random` for each datapoint:
    what the function draws depends on the seed and the position of the datapoint, and not on what
    else its process has made.
    """

    _seed: Optional[int] = None  # of the latest pass
    _root: Any  # a hash of it

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __call__(self, item: Item) -> Any:
        datapoint, number, _, seed = item
        if seed is not None:
            if seed != self._seed:
                seed_datapoints()
                key = str(seed).encode("ascii")  # not by SeedTree: it is done for every datapoint
                self._seed = seed
                self._root = hashlib.blake2b(b"datapoint", key=key, digest_size=24)
            node = self._root.copy()
            node.update(number.to_bytes(8, "little"))
            digest = node.digest()
            np.random.seed(np.frombuffer(digest, "<u4", 4))
            random.seed(int.from_bytes(digest[16:], "little"))
        return apply_function(self._func, datapoint)


class MultiProcessMapAndBatchData(_ProcessMap):
    """Applies a function to every datapoint and makes batches, both in several processes.

    It is `BatchData(MultiProcessMapData(ds, num_proc, map_func), batch_size)`, but a process makes
    a whole batch, and writes it to where the consumer finds it. A pass is one pass of the wrapped
    flow; batches come in the order in which they are ready. Datapoints for which the function
    returns None are dropped, and batches are filled up with others; then `len` is too large.
    """

    @accepts_old_keywords(nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        batch_size: int = 1,
        buffer_size: Optional[int] = None,
        remainder: bool = False,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        """
        Args:
          ds, num_proc, map_func, buffer_bytes, start_method: as in `MultiProcessMapData`.
          batch_size: the number of datapoints in a batch.
          buffer_size: as in `MultiProcessMapData`; by default two batches a process.
          remainder: whether to yield a smaller last batch if some datapoints are left.
        """
        batch_size = as_batch_size(self, ds, batch_size, remainder)
        num_proc = as_count(self, "num_proc", usable_cores() if num_proc is None else num_proc)
        buffer_size = 2 * num_proc * batch_size if buffer_size is None else buffer_size
        most = as_count(self, "buffer_size", buffer_size, batch_size) // batch_size
        super().__init__(ds, num_proc, map_func, most, buffer_bytes, start_method)
        self.batch_size, self.remainder = batch_size, remainder
        self._work = functools.partial(_map_and_batch, type(self).__name__, self.func, batch_size)

    def __len__(self) -> int:
        """Returns the number of batches in a pass if nothing is dropped; see `BatchData`."""
        return len(self._without_processes())

    def _without_processes(self) -> DataFlow:
        return BatchData(MapData(self.ds, self.func), self.batch_size, self.remainder)

    def _begin(self) -> Iterator[Any]:
        return self._pass(ReadAhead(self))

    def _pass(self, source: ReadAhead) -> Iterator[Any]:
        # groups of `batch_size`, of which the last may be smaller
        items = _items(self.ds, source)
        groups = iter(lambda: list(itertools.islice(items, self.batch_size)), [])
        rest: List[Any] = []
        with closing(drop_none(self, self._results(groups, source))) as results:
            for result in results:
                if isinstance(result, tuple):
                    yield result[0]
                else:
                    rest += result
                result = None  # the pool may wait for its memory
                while len(rest) >= self.batch_size:
                    batch, rest = rest[: self.batch_size], rest[self.batch_size :]
                    yield aggregate(batch)
        if rest and self.remainder:
            yield aggregate(rest)


MultiProcessMapAndBatchDataZMQ = MultiProcessMapAndBatchData


def _items(
    ds: Any, datapoints: Iterator[Any], first: int = 0, seed: Optional[int] = None
) -> Iterator[Item]:
    for number, datapoint in enumerate(datapoints, first):
        yield datapoint, number, getattr(ds, "last_file", None), seed


def _map_and_batch(
    name: str, func: Callable[[Any], Any], batch_size: int, group: List[Item]
) -> Any:
    """Returns a tuple with a batch, or, if it is not full, a list of datapoints; None for none."""
    apply = functools.partial(apply_function, func)
    mapped = [apply_or_note(name, apply, item) for item in group]
    datapoints = [datapoint for datapoint in mapped if datapoint is not None]
    if len(datapoints) < batch_size:
        return datapoints or None
    try:
        return (aggregate(datapoints, deferred=True),)
    except (TypeError, ValueError) as error:
        note_datapoint(error, name, f"{group[0][1]} to {group[-1][1]}", datapoints)
        raise
