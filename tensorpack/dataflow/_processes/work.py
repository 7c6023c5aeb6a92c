"""What the processes of a `MultiProcessRunner` do, and how the parts of a strict pass are put in
order again.
"""

import functools
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from tensorpack.utils.serialize import dumps

from ..base import DataFlow, Dropped, StateNotKept
from .orders import Orders
from .team import Team
from .worker_seeds import DatapointSeeds, seed_process

__all__ = ["merged", "produce"]

_SHIFTED = 2**63  # added to a position from which on a share cannot be told
_END = 2**64 - 1  # in place of a position


def merged(team: Team, position: int, ends: List[Optional[bytes]]) -> Iterator[Tuple[int, Any]]:
    """Yields what processes send, by position, up to the end or to a position that is `SHIFTED`.

    Args:
      team: that carries out an order for a share of a pass.
      position: the first one.
      ends: a list, to which the state of the flow in each process at the end of the pass is added,
        by `dumps`; None if it keeps none.
    """
    first, count = position, len(team)
    heads: List[Optional[Tuple[int, Any]]] = [None] * count
    ended: Dict[int, Any] = {}
    while len(ended) < count:
        index = (position - first) % count
        if index not in ended:
            at, obj = heads[index] or team.take_from(index)
            if at == position:
                heads[index] = None
                yield position, obj
            elif at == position + _SHIFTED:
                return
            elif at == _END:
                ended[index] = obj
            else:  # what was to be at this position has been dropped
                heads[index] = at, obj
            obj = None
        position += 1
    ends += [ended[index] for index in sorted(ended)]


def produce(
    orders: Orders,
    index: int,
    ds: DataFlow,
    strict: bool,
    environments: Optional[List[Dict[str, str]]],
) -> None:
    """What a process does.

    Args:
      orders: see `_share` and `_repeat`.
      index: of the process.
      ds: the flow.
      strict: whether orders are for shares of passes, not for passes without end.
      environments: what each process is to find in its environment.
    """
    if environments:
        os.environ.update(environments[index])
    orders.carry_out(functools.partial(_share if strict else _repeat, ds))


def _repeat(ds: DataFlow, order: Dict[str, Any], send: Callable[..., None]) -> None:
    """Sends the datapoints of the flow, pass after pass."""
    seed_process(order["seed"])
    ds.reset_state()
    while True:
        empty = True
        for datapoint in ds:
            empty = False
            send(datapoint)
        if empty:
            raise RuntimeError(
                f"{type(ds).__name__} yielded nothing in a whole pass. Going through it for ever "
                "would never end: is it empty, or can it be read only once?"
            )


def _share(ds: DataFlow, order: Dict[str, Any], send: Callable[..., None]) -> None:
    """Sends this process's part of a pass, then the state of the flow at the end of it."""
    seed_process(order["seed"])
    ds.reset_state()
    if order["flow"] is not None:
        ds.load_state_dict(order["flow"])
        for _ in ds:  # the rest of the pass that had come to its end
            raise RuntimeError(
                f"{type(ds).__name__} should be at the end of a pass, but goes on. Is the "
                "state that it was given from another flow, or its load_state_dict() wrong?"
            )
    before = DatapointSeeds(order["seed"])
    iterate_share = getattr(ds, "iterate_share", functools.partial(DataFlow.iterate_share, ds))
    first, step = order["first"], order["step"]
    share = (first, step, before, 1) if order["blocks"] else (0, 1, before, None)
    following = first
    try:
        for position, datapoint in iterate_share(*share):
            if position >= first and (position - first) % step == 0:
                following = position + step
                if datapoint is not None:
                    send(datapoint, position)
    except Dropped:
        send(None, following + _SHIFTED)
        return
    try:
        state = dumps(DataFlow.state_dict(ds) if not hasattr(ds, "state_dict") else ds.state_dict())
    except StateNotKept:
        state = None  # the next pass begins with new random streams
    send(state, _END)
