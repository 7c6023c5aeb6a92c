"""What worker processes do: they take inputs, and send what they make of them."""

import multiprocessing
import os
import random
import time
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

import numpy as np

from tensorpack.utils.rng import SeedTree, fix_rng_seed
from tensorpack.utils.workers.processes import keep_freed_memory
from tensorpack.utils.workers.worker_errors import failure_from_bytes, failure_to_bytes

from ..base import DataFlow
from ..map import note_datapoint
from ..repeat import nothing_in_a_pass
from .channel import TAGS, Receiver, Sender

Item = Tuple[Any, int, Optional[str], Optional[int]]  # datapoint, its number and file, and a seed
_LOOK_SECONDS = 0.001  # between two looks for a newer input, each of which is a system call


class Failure(NamedTuple):
    """Takes the place of a result: an exception in a worker, which continues."""

    data: bytes
    worker: str
    pid: int

    def error(self) -> Exception:
        return failure_from_bytes(*self)


def map_inputs(
    inputs: Receiver,
    sender: Sender,
    environment: Dict[str, str],
    name: str,
    function: Callable[[Any], Any],
    seed: int,
) -> None:
    """Sends back what a function returns for each input, with the same tag, or a `Failure`.

    The worker has random streams of its own. An error has a note of the input if that is an `Item`
    of the flow `name`.
    """
    os.environ.update(environment)
    seed_process(seed)
    sender.attach(blocks=True)
    for tag, obj in receive_inputs(inputs):
        try:
            sender.send(function(obj), tag)
        except Exception as error:
            if isinstance(obj, tuple):
                note_datapoint(error, name, obj[1], obj[0], obj[2])
            worker = multiprocessing.current_process()
            sender.send(Failure(failure_to_bytes(error), worker.name, os.getpid()), tag)
        obj = None  # release its memory before waiting


def run_flow(inputs: Receiver, sender: Sender, environment: Dict[str, str], ds: DataFlow) -> None:
    """Sends the datapoints of a flow, pass after pass, from the seed that is the latest input."""
    os.environ.update(environment)
    sender.attach(blocks=True)
    for tag, seed in receive_inputs(inputs):
        seed_process(seed)
        ds.reset_state()
        finished, look = 0, 0.0
        while not inputs.is_ready():
            number = -1
            for number, datapoint in enumerate(ds):
                try:
                    sender.send(datapoint, tag + number % TAGS)
                except (TypeError, ValueError) as error:  # it cannot be sent
                    file = getattr(ds, "last_file", None)
                    note_datapoint(error, "MultiProcessRunner", number, datapoint, file)
                    raise
                if time.monotonic() > look:
                    look = time.monotonic() + _LOOK_SECONDS
                    if inputs.is_ready():
                        break
            finished += 1
            if number < 0:
                raise nothing_in_a_pass(ds, finished)


def receive_inputs(inputs: Receiver) -> Iterator[Tuple[int, Any]]:
    """Yields inputs and their tags until the owner of the pool is gone."""
    keep_freed_memory()
    inputs.attach()
    while True:
        item = inputs.take()
        if item is not None:
            yield item
            item = None
        else:
            inputs.return_slots()
            inputs.is_ready(-1)
            if inputs.receive() is None:
                return


def apply_or_note(name: str, func: Callable[[Any], Any], item: Item) -> Any:
    """Calls a function with the datapoint of an item of the flow `name`; an error has a note."""
    try:
        return func(item[0])
    except Exception as error:
        note_datapoint(error, name, item[1], item[0], item[2])
        raise


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
