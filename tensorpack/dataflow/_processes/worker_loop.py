"""What a worker process does: it takes inputs, calls a function, and sends what that makes."""

import itertools
import os
import random
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils.rng import SeedTree, fix_rng_seed
from tensorpack.utils.workers.processes import keep_freed_memory
from tensorpack.utils.workers.worker_errors import failure_to_bytes

from ..base import DataFlow
from ..map import note_datapoint
from ..repeat import nothing_in_a_pass
from .channel import FIRST_EVENT, Interrupted, Receiver, Sender
from .shared_memory import poll_of

# Events: an order has begun, its number is the tag; the result for the input of this tag is None;
# or it is an exception, which comes next.
BEGUN, DROPPED, FAILED = FIRST_EVENT, FIRST_EVENT + 1, FIRST_EVENT + 2

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


def run_flow(loop: WorkerLoop, index: int, environments: Environments, ds: DataFlow) -> None:
    """The worker of a `MultiProcessRunner`; an order has the seed of its passes."""
    os.environ.update(environments[index] if environments else {})
    loop.carry_out(lambda order, send: _send_for_ever(ds, order["seed"], send))


def _send_for_ever(ds: DataFlow, seed: int, send: Callable[..., None]) -> None:
    """Sends the datapoints of the flow, pass after pass."""
    seed_process(seed)
    ds.reset_state()
    for finished in itertools.count():
        number = -1
        for number, datapoint in enumerate(ds):
            try:
                send(datapoint, number)
            except (TypeError, ValueError) as error:  # it cannot be sent
                file = getattr(ds, "last_file", None)
                note_datapoint(error, "MultiProcessRunner", number, datapoint, file)
                raise
        if number < 0:
            raise nothing_in_a_pass(ds, finished + 1)
