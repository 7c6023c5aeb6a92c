"""What a worker process of a team does: it hears orders or inputs, and sends what it makes."""

import select
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, Optional

from tensorpack.utils.serialize import loads
from tensorpack.utils.worker_errors import failure_to_bytes

from .channel import FIRST_EVENT
from .receiver import Receiver
from .sender import Interrupted, Sender

__all__ = ["BEGUN", "DROPPED", "FAILED", "Orders"]

BEGUN = FIRST_EVENT  # an order is being carried out; its number is the tag
DROPPED = FIRST_EVENT + 1  # the result for the input of this tag is None
FAILED = FIRST_EVENT + 2  # it is an exception, which comes next

_PATIENCE_MS = 50  # until a worker says that it waits


class Orders:
    """Where a worker hears what to do; used in the worker.

    Args:
      connection: read end.
      sender: for what it makes.
      inputs: for what it makes that from, if that comes object by object.
    """

    def __init__(
        self, connection: Connection, sender: Sender, inputs: Optional[Receiver] = None
    ) -> None:
        self._connection, self._sender, self._inputs = connection, sender, inputs

    def carry_out(self, function: Callable[[Dict[str, Any], Callable[..., None]], None]) -> None:
        """Calls a function with every order that comes, and with a function that sends objects.

        A new order interrupts an older one, at the next object that it wants to send.
        """
        sender = self._sender.stays(interrupt=self._connection.fileno())
        while True:
            order = loads(self._connection.recv_bytes())
            sender.event(BEGUN, order["number"])
            try:
                function(order, sender.send)
            except Interrupted:
                pass

    def answer(self, function: Callable[[Any], Any]) -> None:
        """Calls a function with every input that comes, and sends back what it returns.

        A result has the tag of its input; where it is None, only that tag goes back, and where it
        is an exception, that goes back and does not end the worker.
        """
        sender, inputs = self._sender.stays(), self._inputs.stays()
        poll = select.poll()
        poll.register(inputs.fileno(), select.POLLIN)
        while not inputs.ended:
            item = inputs.take()
            if item is None:
                if not poll.poll(_PATIENCE_MS):
                    inputs.is_waiting()  # a function may keep what it was given
                    poll.poll()
                inputs.receive()
                continue
            _, tag, obj = item
            try:
                result = function(obj)
                if result is None:
                    sender.event(DROPPED, tag)
                else:
                    sender.send(result, tag)
            except Exception as error:
                sender.event(FAILED, tag)
                sender.send(failure_to_bytes(error), tag)
            item = obj = result = None  # with their arrays, whose memory is to be used again
