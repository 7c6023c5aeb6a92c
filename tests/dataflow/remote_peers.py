"""Senders in threads, and free addresses, for the tests of `remote`."""

import threading

from tensorpack.dataflow.remote import send_dataflow_zmq
from tensorpack.launch._hosts import on_this_machine

SECONDS = 60  # what is awaited comes at once; this is for machines that stand still
ANY_PORT = "tcp://127.0.0.1:*"


class Sending(threading.Thread):
    """Runs `send_dataflow_zmq` in a thread; `end` waits for it and raises its error."""

    def __init__(self, *arguments, **options):
        super().__init__(daemon=True)
        self._arguments, self._options = arguments, {"timeout": SECONDS, **options}
        self._error = None
        self.start()

    def run(self):
        try:
            send_dataflow_zmq(*self._arguments, **self._options)
        except BaseException as error:
            self._error = error

    def end(self):
        self.join(SECONDS)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


def free_address():
    """The address of a free port, for an end that binds."""
    return f"tcp://{on_this_machine(1, 0)[0].address}"
