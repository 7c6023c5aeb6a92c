"""Gives inputs to a worker pool and yields its results, with a bounded number in flight."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from tensorpack.utils.packed import Packed, pack

from .pool import Failure, WorkerPool
from .worker_loop import END, SHIFTED


class _Dispatcher:
    """Numbers inputs, of which `most` may be in flight, and finds the number of each result.

    It uses the pool alone, which may still be busy with what was sent before.
    """

    def __init__(self, pool: WorkerPool, inputs: Iterable[Any], most: int) -> None:
        self._pool, self._inputs, self._most = pool, enumerate(inputs), most
        self._next: Optional[Tuple[int, Packed]] = None
        self._is_empty = False
        self._error: Optional[Exception] = None
        self._numbers: Dict[int, int] = {}  # by tag

    def result(self, kept: int = 0) -> Optional[Tuple[int, Any]]:
        """Returns the number and the result of an input; None when there are no more.

        `kept` is how many results the caller keeps back. What the inputs raised comes after all
        results before that; the error of a worker that ended comes at once.
        """
        while True:
            if self._next is None and len(self._numbers) + kept < self._most:
                self._fetch()
            if self._next is None and not self._numbers:
                if self._error is not None:
                    raise self._error
                return None
            item = self._exchange()
            if item is not None:
                number = self._numbers.pop(item[0], None)
                if number is not None:  # else it belongs to a pass that was left
                    return number, item[1]
                item = None

    def _fetch(self) -> None:
        if self._is_empty:
            return
        try:
            number, obj = next(self._inputs, (0, None))
            self._is_empty = obj is None
            self._next = None if obj is None else (number, pack(obj))
        except Exception as error:
            self._is_empty, self._error = True, error

    def _exchange(self) -> Optional[Tuple[int, Any]]:
        """Sends the next input if there is room; returns a result, or None if there is none yet."""
        if self._next is None:
            return self._pool.take()
        number, packed = self._next
        tag = self._pool.send(packed)
        if tag is None:
            return self._pool.take_if(or_room=True)
        self._numbers[tag], self._next = number, None
        return self._pool.take_if()


def results_as_ready(pool: WorkerPool, inputs: Iterable[Any], most: int) -> Iterator[Any]:
    """Yields the results of all inputs, None among them, as they become ready.

    Raises what a worker or the inputs raised. At most `most` are in flight; none of them is None.
    """
    dispatcher = _Dispatcher(pool, inputs, most)
    item = dispatcher.result()
    while item is not None:
        yield _checked(item[1])
        item = None  # the pool may wait for the memory of the result
        item = dispatcher.result()


def results_in_order(pool: WorkerPool, inputs: Iterable[Any], most: int) -> Iterator[Any]:
    """Yields the results in the order of the inputs; the arguments are the same."""
    dispatcher = _Dispatcher(pool, inputs, most)
    early: Dict[int, Any] = {}
    wanted = 0
    item = dispatcher.result()
    while item is not None:
        early[item[0]] = item[1]
        item = None
        while wanted in early:
            wanted += 1
            yield _checked(early.pop(wanted - 1))
        item = dispatcher.result(len(early))


def _checked(result: Any) -> Any:
    if isinstance(result, Failure):
        raise result.error
    return result


def merge_shares(
    pool: WorkerPool, position: int, ends: List[Optional[bytes]]
) -> Iterator[Tuple[int, Any]]:
    """Yields positions and datapoints of the shares of a pass, up to its end or to a shift.

    The workers carry out an order for a share each, from `position` on. At the end of the pass,
    `ends` gets the state of the flow in each worker, by `dumps`; None if it keeps none. It stays
    empty at a shift: a datapoint was dropped, and from the next position on the workers have to
    make all of the pass.
    """
    first, count = position, len(pool)
    heads: List[Optional[Tuple[int, Any]]] = [None] * count
    ended: Dict[int, Any] = {}
    while len(ended) < count:
        index = (position - first) % count
        if index not in ended:
            at, obj = heads[index] or pool.take_from(index)
            if at == position:
                heads[index] = None
                yield position, obj
            elif at == position + SHIFTED:
                return
            elif at == END:
                ended[index] = obj
            else:  # the datapoint of this position has been dropped
                heads[index] = at, obj
            obj = None
        position += 1
    ends += [ended[index] for index in sorted(ended)]
