"""What a worker process does: it takes inputs, calls a function, and sends what that makes."""

import hashlib
import itertools
import os
import random
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils.rng import SeedTree, fix_rng_seed, seed_datapoints
from tensorpack.utils.serialize import dumps
from tensorpack.utils.workers.processes import keep_freed_memory
from tensorpack.utils.workers.worker_errors import failure_to_bytes

from ..base import DataFlow, Dropped, StateNotKept, share_of
from ..map import note_datapoint
from ..repeat import nothing_in_a_pass
from .receiver import Receiver
from .sender import FIRST_EVENT, Interrupted, Sender
from .shared_memory import poll_of

# Events: an order has begun, its number is the tag; the result for the input of this tag is None;
# or it is an exception, which comes next.
BEGUN, DROPPED, FAILED = FIRST_EVENT, FIRST_EVENT + 1, FIRST_EVENT + 2
# Tags of a share: the end of the pass, and what is added to the position of a shift.
END, SHIFTED = 2**64 - 1, 2**63

Environments = Optional[List[Dict[str, str]]]  # what each worker adds to its environment

_PATIENCE_MS = 50  # until a worker says that it waits


class WorkerLoop:
    """The worker's side of a `WorkerPool`: the end of its inputs, and that of what it makes."""

    def __init__(self, inputs: Receiver, sender: Sender) -> None:
        self._inputs, self._sender = inputs, sender

    def carry_out(self, function: Callable[[Dict[str, Any], Callable[..., None]], None]) -> None:
        """Calls a function with every order, and with a function that sends objects.

        A new order interrupts an older one, at the next object that it sends.
        """
        sender = self._sender.attach(interrupt=self._inputs.fileno())
        for number, order in self._items():
            sender.event(BEGUN, number)
            with suppress(Interrupted):
                function(order, sender.send)

    def answer(self, function: Callable[[Any], Any], name: str = "") -> None:
        """Calls a function with every input, and sends back what it returns, with the same tag.

        For None only the tag goes back. An exception goes back and does not end the worker; it has
        a note of the input if that is an item of the flow `name`.
        """
        sender = self._sender.attach()
        for tag, obj in self._items():
            try:
                result = function(obj)
                if result is None:
                    sender.event(DROPPED, tag)
                else:
                    sender.send(result, tag)
            except Exception as error:
                if name and isinstance(obj, dict):
                    note_datapoint(error, name, obj["number"], obj["datapoint"], obj["file"])
                sender.event(FAILED, tag)
                sender.send(failure_to_bytes(error), tag)
            obj = result = None  # release their memory before waiting

    def _items(self) -> Iterator[Tuple[int, Any]]:
        """Yields inputs and their tags until the owner of the pool is gone."""
        keep_freed_memory()
        inputs = self._inputs.attach()
        poll = poll_of(inputs.fileno())
        while not inputs.ended:
            item = inputs.take()
            if item is None:
                if not poll.poll(_PATIENCE_MS):
                    inputs.is_waiting()  # a function may keep what it was given
                    poll.poll()
                inputs.receive()
                continue
            _, tag, obj = item
            item = None
            inputs.return_slots()
            yield tag, obj
            obj = None


def draw_seed(rng: np.random.RandomState) -> int:
    """Draws a seed that can be sent to a worker as a number."""
    return int(rng.randint(0, 2**62, dtype=np.int64))


def seed_process(seed: int) -> None:
    """Seeds all streams that a flow may draw from: `get_rng`, `numpy.random` and `random`.

    A forked process would otherwise draw what its siblings draw.
    """
    fix_rng_seed(seed)
    words = SeedTree(seed).child("process").sequence().generate_state(5)
    np.random.seed(words[:4])
    random.seed(int(words[4]))


class DatapointSeeds:
    """Seeds `numpy.random` and `random` for each datapoint of a pass that has a seed.

    What a function draws from them then depends on the seed and the position of its datapoint, and
    not on what else its process has made.
    """

    def __init__(self, seed: int) -> None:
        # not by SeedTree: this is done for every datapoint
        self._root = hashlib.blake2b(b"datapoint", key=str(seed).encode("ascii"), digest_size=24)

    def __call__(self, position: int) -> None:
        """Seeds both streams for the datapoint of a position."""
        node = self._root.copy()
        node.update(position.to_bytes(8, "little"))
        digest = node.digest()
        np.random.seed(np.frombuffer(digest, "<u4", 4))
        random.seed(int.from_bytes(digest[16:], "little"))


def check_shared_order(ds: DataFlow, step: int) -> None:
    """Raises a RuntimeError unless each of `step` processes can leave out what others make."""
    if step > 1 and not getattr(ds, "seeded", True):
        raise RuntimeError(
            f"The order of {type(ds).__name__} is not the same in all processes that share its "
            "passes. Give its threads and processes strict=True, or read it in one process."
        )


def map_inputs(
    loop: WorkerLoop,
    index: int,
    environments: Environments,
    name: str,
    function: Callable[[Any], Any],
    seed: int,
) -> None:
    """The worker of a `ProcessMap`: answers inputs, with random streams of its own."""
    os.environ.update(environments[index] if environments else {})
    seed_process(seed + index)
    loop.answer(function, name)


def apply_or_note(name: str, func: Callable[[Any], Any], item: Dict[str, Any]) -> Any:
    """Calls a function with the datapoint of an item of the flow `name`; an error has a note."""
    try:
        return func(item["datapoint"])
    except Exception as error:
        note_datapoint(error, name, item["number"], item["datapoint"], item["file"])
        raise


def run_flow(
    loop: WorkerLoop, index: int, environments: Environments, ds: DataFlow, strict: bool
) -> None:
    """The worker of a `MultiProcessRunner`; its orders are for shares of passes if `strict`."""
    os.environ.update(environments[index] if environments else {})
    make = _send_share if strict else _send_for_ever
    loop.carry_out(lambda order, send: make(ds, order, send))


def _send_for_ever(ds: DataFlow, order: Dict[str, Any], send: Callable[..., None]) -> None:
    """Sends the datapoints of the flow, pass after pass."""
    seed_process(order["seed"])
    ds.reset_state()
    for finished in itertools.count():
        number = -1
        for number, datapoint in enumerate(ds):
            _send_or_note(send, ds, number, datapoint)
        if number < 0:
            raise nothing_in_a_pass(ds, finished + 1)


def _send_or_note(send: Callable[..., None], ds: DataFlow, number: int, datapoint: Any) -> None:
    try:
        send(datapoint, number)
    except (TypeError, ValueError) as error:  # it cannot be sent
        file = getattr(ds, "last_file", None)
        note_datapoint(error, "MultiProcessRunner", number, datapoint, file)
        raise


def _send_share(ds: DataFlow, order: Dict[str, Any], send: Callable[..., None]) -> None:
    """Sends this worker's share of a pass, then the state of the flow at the end of it.

    Positions are those of `DataFlow.iterate_share`. Without `blocks` the worker makes the whole
    pass and leaves out what is not in its share.
    """
    seed_process(order["seed"])
    ds.reset_state()
    if order["flow"] is not None:
        ds.load_state_dict(order["flow"])
        for _ in ds:  # the rest of the pass that had come to its end
            raise RuntimeError(
                f"{type(ds).__name__} should be at the end of a pass, but yields more. Does the "
                "state that it was given come from another flow, or is its load_state_dict() wrong?"
            )
    seed_datapoints()
    before = DatapointSeeds(order["seed"])
    first, step = order["first"], order["step"]
    check_shared_order(ds, step)
    share = (first, step, before, 1) if order["blocks"] else (0, 1, before, None)
    following = first
    try:
        for position, datapoint in share_of(ds, *share):
            if position >= first and (position - first) % step == 0:
                following = position + step
                if datapoint is not None:
                    _send_or_note(send, ds, position, datapoint)
    except Dropped:
        send(None, following + SHIFTED)
        return
    try:
        state = dumps(getattr(type(ds), "state_dict", DataFlow.state_dict)(ds))
    except StateNotKept:
        state = None  # the next pass begins with new random streams
    send(state, END)
