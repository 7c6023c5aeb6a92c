"""The connections of a process to those whose variables it uses, to tell and to hear who lives."""

import threading
import time
from contextlib import suppress
from typing import Any, Callable, NamedTuple, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.cluster import trouble_at

TABLE = "tensorpack_group"  # name of the variable

_BEAT_SECONDS = 1.0  # at most
_LOOK_SECONDS = 0.1
_CALL_SECONDS = 5.0
_CONNECT_SECONDS = 1.0


class Row(NamedTuple):
    """What the table says about one process.

    Attributes:
      beat: grows while the process lives.
      state: 0; `JOINED`; `READY`, its variables have values; `LEFT`, it ended in order; `FAILED`.
      step: the global step when it entered this state.
      vote: the signal by which it was asked to end, 0 for none.
      plan: steps in its epochs.
    """

    beat: int = 0
    state: int = 0
    step: int = 0
    vote: int = 0
    plan: int = 0


class Link(threading.Thread):
    """Asks a process every second whether it lives.

    Attributes:
      who: the process, with its address.
      device: the part of the names of its devices that they have in common.
      answered: when it answered last, or the thread started.
      connected: whether it has ever answered.
      restarted: whether it is another process now than before.
    """

    def __init__(self, group: Any, target: str, task: Tuple[str, int]) -> None:
        super().__init__(name=f"GroupLink to {task[0]} {task[1]}", daemon=True)
        self.address = group.cluster.as_dict()[task[0]][task[1]]
        self.who = f"{task[0]} {task[1]} at {self.address}"
        self.connected = self.restarted = False
        self._group = group
        self._target = target
        self.device = f"/job:{task[0]}/task:{task[1]}"
        self.answered = float("inf")
        self._wake = threading.Event()

    def start(self) -> None:
        """Starts the thread, and to count the seconds of silence."""
        self.answered = time.monotonic()
        super().start()

    def wake(self) -> None:
        """Has it ask at once."""
        self._wake.set()

    def silence(self) -> float:
        """For how many seconds there has been no answer."""
        return time.monotonic() - self.answered

    def run(self) -> None:
        """Asks until the group stops; called by `start`."""
        stopping = self._group.stopping
        while trouble_at(self.address, _CONNECT_SECONDS):
            if stopping.wait(_LOOK_SECONDS):
                return
        with tf.Graph().as_default() as graph, tf.device(f"{self.device}/device:CPU:0"):
            self._build()
        session = self.session(graph)
        while not stopping.is_set():
            self._wake.clear()
            with suppress(tf.errors.OpError):  # the silence counts
                self._ask(session)
                self.answered, self.connected = time.monotonic(), True
            self._wake.wait(min(_BEAT_SECONDS, self._group.timeout / 4))
        session.close()

    def session(self, graph: tf.Graph) -> tf.Session:
        """Returns a session that sees the process and this one; its runs end after some seconds."""
        me = f"/job:{self._group.cluster.job}/task:{self._group.cluster.index}"
        config = tf.ConfigProto(
            device_filters=[self.device, me], operation_timeout_in_ms=int(1000 * _CALL_SECONDS)
        )
        return tf.Session(self._target, graph, config)

    def _build(self) -> None:
        # Without the placeholder TensorFlow would compute it in this process.
        self._fetched = tf.identity(tf.placeholder_with_default(0, []))

    def _ask(self, session: tf.Session) -> None:
        session.run(self._fetched)


class HostLink(Link):
    """Writes the row of this process, and reads the table.

    Attributes:
      told: an event, set when the host has the row as it is now.
      release: an event, set to have it run the op of `closing`.
    """

    def __init__(
        self, group: Any, target: str, task: Tuple[str, int], closing: Callable[[], Any]
    ) -> None:
        super().__init__(group, target, task)
        self.told, self.release = threading.Event(), threading.Event()
        self._closing = closing
        self._is_made = False

    def _build(self) -> None:
        shape = [len(self._group.table), len(Row._fields)]
        zeros = tf.zeros_initializer()
        table = tf.get_variable(TABLE, shape, tf.int64, zeros, use_resource=True)
        self._make, self._exists = table.initializer, table.is_initialized()
        self._row = tf.placeholder(tf.int64, [1, shape[1]])
        written = tf.raw_ops.ResourceScatterUpdate(
            resource=table.handle, indices=[self._group.index], updates=self._row
        )
        with tf.control_dependencies([written]):
            self._table = table.read_value()
        self._closed = self._closing()

    def _ask(self, session: tf.Session) -> None:
        if not self._is_made:
            if self._group.cluster.is_chief:
                session.run(self._make)
            elif not session.run(self._exists):
                return
            self._is_made = True
        if self.release.is_set():
            session.run(self._closed)
            self.release.clear()
        row = self._group.beat()
        try:
            self._group.take(session.run(self._table, {self._row: [row]}))
        except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
            self.restarted = True
        else:
            if self._group.row is row:
                self.told.set()


def shared_variable(name: str, dtype: tf.DType, shape: Any) -> tf.Tensor:
    """Returns the handle of the variable that has this name in all sessions on its device."""
    return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)


def refuses(address: str) -> bool:
    """Whether the machine of an address answers that nothing accepts connections there."""
    return isinstance(trouble_at(address, _CONNECT_SECONDS), ConnectionRefusedError)
