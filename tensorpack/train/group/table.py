"""What each process of a group tells the others: a row in a table, a variable on the first server.

TensorFlow's runtime is the only connection. Whether a process lives is another question, see
`peers.py`.
"""

import threading
from contextlib import suppress
from typing import Any, Callable, NamedTuple

from tensorpack.compat import tfv1 as tf

NAME = "tensorpack_group"  # of the variable
HOST = "/job:ps/task:0"  # which has it

# States of a process; 0 is before.
JOINED = 1
READY = 2  # its variables have values
LEFT = 3  # it ended in order
FAILED = 4

_PERIOD_SECONDS = 1.0  # at most, between two looks
_CALL_SECONDS = 5.0


class Row(NamedTuple):
    """What the table says about one process.

    Attributes:
      step: the global step when it entered this state.
      vote: the signal by which it was asked to end, 0 for none.
      plan: steps in its epochs.
      cause: the number, from 1, of the process whose loss ends it; 0 for none.
    """

    state: int = 0
    step: int = 0
    vote: int = 0
    plan: int = 0
    cause: int = 0


class Table(threading.Thread):
    """Writes the row of this process and reads those of all, every second.

    Attributes:
      told: an event, set when the host has the row as it is now.
      release: an event, set to have it run the op of `closing`.

    Args:
      group: the `Members`; its method `take` gets the rows, or None if the host has lost them.
      closing: called under a graph and the device of the host; returns an op.
    """

    def __init__(self, group: Any, target: str, closing: Callable[[], Any]) -> None:
        super().__init__(name="GroupTable", daemon=True)
        self.told, self.release = threading.Event(), threading.Event()
        self._group, self._target, self._closing = group, target, closing
        self._wake = threading.Event()
        self._is_made = False

    def wake(self) -> None:
        """Has it look at once."""
        self._wake.set()

    def run(self) -> None:
        """Writes and reads until the group stops; called by `start`."""
        stopping = self._group.stopping
        while not self._group.has_host():
            if stopping.wait(0.1):
                return
        with tf.Graph().as_default() as graph, tf.device(f"{HOST}/device:CPU:0"):
            self._build()
        session = self.session(graph)
        while not stopping.is_set():
            self._wake.clear()
            with suppress(tf.errors.OpError):  # if it does not answer, the group will hear of it
                self._look(session)
            self._wake.wait(min(_PERIOD_SECONDS, self._group.timeout / 4))
        session.close()

    def session(self, graph: tf.Graph) -> tf.Session:
        """Returns a session that sees the host and this process; its runs end after seconds."""
        me = f"/job:{self._group.cluster.job}/task:{self._group.cluster.index}"
        config = tf.ConfigProto(
            device_filters=[HOST, me], operation_timeout_in_ms=int(1000 * _CALL_SECONDS)
        )
        return tf.Session(self._target, graph, config)

    def _build(self) -> None:
        shape = [len(self._group.table), len(Row._fields)]
        zeros = tf.zeros_initializer()
        table = tf.get_variable(NAME, shape, tf.int64, zeros, use_resource=True)
        self._make, self._exists = table.initializer, table.is_initialized()
        self._row = tf.placeholder(tf.int64, [1, shape[1]])
        written = tf.raw_ops.ResourceScatterUpdate(
            resource=table.handle, indices=[self._group.index], updates=self._row
        )
        with tf.control_dependencies([written]):
            self._rows = table.read_value()
        self._closed = self._closing()

    def _look(self, session: tf.Session) -> None:
        if not self._is_made:
            if self._group.cluster.is_chief:
                session.run(self._make)
            elif not session.run(self._exists):
                return
            self._is_made = True
        if self.release.is_set():
            session.run(self._closed)
            self.release.clear()
        row = self._group.row
        try:
            rows = session.run(self._rows, {self._row: [row]})
        except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
            self._group.take(None)
            return
        if self._group.row is row:
            self.told.set()
        self._group.take([Row(*map(int, each)) for each in rows])


def vote_tensor(rows: int) -> tf.Tensor:
    """Returns the signal that the group is to end by, or 0; for the device of the host."""
    table = shared_variable(NAME, tf.int64, [rows, len(Row._fields)])
    votes = tf.raw_ops.ReadVariableOp(resource=table, dtype=tf.int64)[:, Row._fields.index("vote")]
    return tf.reduce_max(votes)


def shared_variable(name: str, dtype: tf.DType, shape: Any) -> tf.Tensor:
    """Returns the handle of the variable that has this name in all sessions on its device."""
    return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
