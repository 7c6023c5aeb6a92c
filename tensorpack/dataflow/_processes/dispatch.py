"""Gives inputs to a worker pool and yields its results, with a bounded number in flight."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Sized, Tuple

from tensorpack.utils.packing.packed import Packed, pack

from .pool import WorkerPool
from .worker_loop import END, SHIFTED


def numbered_results(
    pool: WorkerPool, inputs: Iterable[Any], most: int, kept: Sized
) -> Iterator[Tuple[int, Any]]:
    """Yields the numbers of inputs and their results, as they become ready.

    At most `most` inputs are in flight, less the results that the caller keeps back. What the
    inputs raise comes after all results before that; the error of a worker that ended comes at
    once. The pool may still be busy with what was sent before.
    """
    source = enumerate(map(pack, inputs))
    following: Optional[Tuple[int, Packed]] = None
    numbers: Dict[int, int] = {}  # of the inputs in flight, by their tags
    is_over = False
    error: Optional[Exception] = None
    while True:
        if following is None and not is_over and len(numbers) + len(kept) < most:
            try:
                following = next(source, None)
                is_over = following is None
            except Exception as caught:
                is_over, error = True, caught
        if following is not None:
            tag = pool.send(following[1])
            if tag is not None:
                numbers[tag], following = following[0], None
            item = pool.take_if(or_room=tag is None)
        elif numbers:
            item = pool.take()
        else:
            break
        if item is not None and item[0] in numbers:  # else it belongs to a pass that was left
            yield numbers.pop(item[0]), item[1]
        item = None  # the pool may wait for its memory
    if error is not None:
        try:
            raise error
        finally:
            error = None  # it would keep itself, by this frame


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
