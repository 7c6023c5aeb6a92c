"""A worker process of a team, with all that leads to it and from it."""

import contextlib
import select
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Callable, NamedTuple, Optional, Tuple

from tensorpack.utils.worker import Worker, make_worker

from .channel import Limits
from .descriptor import closed_after_fork
from .orders import Orders
from .receiver import Receiver, make_channel
from .sender import Sender
from .start_method import start

__all__ = ["Lane", "descriptors_of", "poll_of", "start_lane"]

_BESIDE_CHANNELS = 6  # orders, the pipes of a Worker, those of a process of multiprocessing


class Lane(NamedTuple):
    """A worker as its owner sees it.

    Attributes:
      worker: the process.
      receiver: for what it sends.
      orders: write end.
      inputs: for what goes to it object by object.
    """

    worker: Worker
    receiver: Receiver
    orders: Connection
    inputs: Optional[Sender]

    def close(self) -> None:
        """Closes what leads to the worker and from it."""
        for each in (self.receiver, self.orders, self.inputs):
            if each is not None:
                each.close()


def start_lane(
    target: Callable[..., Any],
    args: Tuple[Any, ...],
    sent: Tuple[str, Any],
    index: int,
    limits: Limits,
    method: str,
    name: str,
    inputs: Optional[Limits],
) -> Lane:
    """Makes the pipes of a worker and starts it; the arguments are those of `Team`."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as on_error:
        sender, receiver = make_channel(limits)
        theirs.callback(sender.close)
        on_error.callback(receiver.close)
        to_worker = from_here = None
        if inputs is not None:
            to_worker, from_here = make_channel(inputs)
            theirs.callback(from_here.close)
            on_error.callback(to_worker.close)
            to_worker.stays()
        taken, orders = Pipe(duplex=False)
        theirs.callback(taken.close)
        on_error.callback(orders.close)
        closed_after_fork(orders)
        receiver.stays()
        arguments = (Orders(taken, sender, from_here), index, *args)
        worker = make_worker(target, arguments, name=f"{name} {index}", method=method, endless=True)
        start(worker, method, *sent)
        on_error.pop_all()
    return Lane(worker, receiver, orders, to_worker)


def descriptors_of(limits: Limits, inputs: Optional[Limits]) -> int:
    """How many descriptors a lane takes here, at most."""
    return sum(each.descriptors for each in (limits, inputs) if each) + _BESIDE_CHANNELS


def poll_of(*fds: int) -> Any:
    """Returns a `select.poll` for reading."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return poll
