"""The processes of a distributed run as a group: who lives, who has ended, who asks for the end.

Each process has a row in a table, which is a variable on one of them, the host. A thread writes the
row and reads the table every second through a session of its own: TensorFlow's runtime is the only
connection. A process that was killed, stopped or cut off is known by a row that stands still, and a
host by reads that fail. How long a step or a callback takes does not matter.
"""

import threading
import time
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.peers import PeerLost, wait_for
from tensorpack.utils.cluster import Cluster

from .link import HostLink, Link, Row, refuses, shared_variable

# States of a process; 0 is before.
JOINED = 1
READY = 2
LEFT = 3
FAILED = 4

_LOOK_SECONDS = 0.1
_START_FACTOR = 10  # how many times the time-out a process may take to start
_GONE_SECONDS = 3.0  # without a sign of life, until one that refuses connections has ended
_TELL_SECONDS = 2.0  # for the last words to the group
_ENDED = "has ended, or was killed: it accepts no connection."


class Group:
    """The membership of this process in the group.

    Args:
      cluster: the addresses of all, and the role of this process.
      target: of the `tf.train.Server` of this process.
      host: the task that has the table.
      timeout: seconds without a sign of life after which a process is lost; ten times as many may
        pass until it starts.
      in_step: whether workers wait for each other in each step, so that one that has ended before
        the others is an error.
      closing: called under the graph of the table; returns an op that ends what workers wait for.

    Attributes:
      lost: the `PeerLost` if a process is lost.
      table: the latest rows, of the workers and then of the parameter servers.
    """

    def __init__(
        self,
        cluster: Cluster,
        target: str,
        host: Tuple[str, int] = ("ps", 0),
        timeout: float = 60.0,
        in_step: bool = True,
        closing: Callable[[], Any] = tf.no_op,
    ) -> None:
        self.cluster = cluster
        self.timeout = timeout
        self.lost: Optional[PeerLost] = None
        self.stopping = threading.Event()
        self._in_step = in_step
        servers = [("ps", i) for i in range(len(cluster.ps))]
        self._tasks = [("worker", i) for i in range(cluster.num_workers)] + servers
        me = (cluster.job, cluster.index)
        self.index = self._tasks.index(me)
        self.row = Row()
        self.table = [self.row] * len(self._tasks)
        self._seen = [(0, 0.0)] * len(self._tasks)  # a beat, and since when it is that
        self._gone_seconds = _GONE_SECONDS
        self._lock = threading.Lock()
        self._gathered = 0
        self._on_lost: Callable[[PeerLost], None] = lambda error: None
        self._on_left: Callable[[str], None] = lambda who: None
        self._step: Callable[[], int] = lambda: 0
        self._host = HostLink(self, target, host, closing)
        others = [each for each in servers if each not in (host, me)]
        self._links = [self._host] + [Link(self, target, each) for each in others]
        self._thread = threading.Thread(target=self._watch, name="GroupWatch", daemon=True)

    def join(
        self,
        on_lost: Callable[[PeerLost], None],
        on_left: Callable[[str], None] = lambda who: None,
        step: Callable[[], int] = lambda: 0,
        plan: int = 0,
    ) -> None:
        """Starts to live in the group.

        Args:
          on_lost: called once, on a thread, if a process is lost, or does not fit in the group.
          on_left: called once, on a thread, with the name of a worker that has ended in order
            although this one waits for it in a step.
          step: returns the step that this process is in.
          plan: steps in an epoch; the same for all workers that wait for each other.
        """
        self._on_lost, self._on_left, self._step = on_lost, on_left, step
        self._seen = [(0, time.monotonic())] * len(self._tasks)
        self._enter(state=JOINED, plan=plan)
        for thread in [*self._links, self._thread]:
            thread.start()

    @property
    def joined(self) -> bool:
        """Whether `join` was called."""
        return self._thread.ident is not None

    def ready(self, step: int) -> None:
        """Tells that the variables of this process have values, and the step they belong to."""
        self._enter(state=READY, step=step)

    def fail(self) -> None:
        """Tells that this process is about to end without having left in order."""
        self._enter(state=FAILED)
        if self._host.connected:
            self._host.told.wait(_TELL_SECONDS)

    def vote(self, signum: int) -> None:
        """Asks all to end in order, because of this signal."""
        self._enter(vote=signum)

    def votes(self) -> int:
        """Returns the signal by which any process was asked to end, 0 if none was."""
        return max(row.vote for row in self.table)

    def release(self) -> None:
        """Ends what workers wait for on the host, see `closing`."""
        self._host.release.set()
        self._host.wake()

    def leave(self, failed: bool, step: int = 0) -> None:
        """Tells how this process ends, and stops the threads. One that waits for a process that
        does not answer is left behind.
        """
        if not self.joined:
            return
        self._enter(state=FAILED if failed else LEFT, step=step)
        if self._host.connected:
            self._host.told.wait(_TELL_SECONDS)
        self.stopping.set()
        self._thread.join()
        for link in self._links:
            link.wake()
            link.join(_TELL_SECONDS)

    def wait_for(self, what: str, done: Callable[[], bool], check: Callable[[], None]) -> None:
        """As `tensorpack.tfutils.peers.wait_for`, without a limit.

        Raises:
          PeerLost: a process is lost.
        """
        wait_for(lambda: what, lambda: self.lost is not None or done(), check)
        if self.lost is not None:
            raise self.lost

    def gather(self, values: Sequence[float], check: Callable[[], None]) -> np.ndarray:
        """Returns the values of all workers, float64 `[workers, values]`; each calls it as often.

        Args:
          values: as many on each worker.
          check: called several times a second; may raise.
        """
        graph, me = tf.Graph(), self.index
        with graph.as_default(), tf.device(self._host.device):
            self._gathered += 1
            rows = [
                shared_variable(f"tensorpack_gather{self._gathered}_{i}", tf.float64, [len(values)])
                for i in range(self.cluster.num_workers)
            ]
            own = tf.constant(values, tf.float64)
            give = tf.raw_ops.AssignVariableOp(resource=rows[me], value=own)
            known = [tf.raw_ops.VarIsInitializedOp(resource=each) for each in rows]
            table = [tf.raw_ops.ReadVariableOp(resource=each, dtype=tf.float64) for each in rows]
        with self._host.session(graph) as session:
            session.run(give)
            self.wait_for("the other workers", lambda: all(session.run(known)), check)
            return np.array(session.run(table))

    def connected(self) -> bool:
        """Whether all parameter servers have answered."""
        return all(link.connected for link in self._links)

    def explain(self) -> Optional[PeerLost]:
        """Returns what is behind an error of TensorFlow; None if every process seems to live."""
        self._gone_seconds = 0.0
        wait_for(str, lambda: self.lost is not None, limit=_TELL_SECONDS)
        return self.lost

    def alive(self, index: int) -> bool:
        """Whether a worker has joined and not ended, and gave a sign of life lately."""
        lives = self.table[index].state in (JOINED, READY)
        return lives and self._silence(index) is None

    def who(self, index: int) -> str:
        """Returns what messages call a process: its name and address."""
        job, number = self._tasks[index]
        return f"{job} {number} at {self.cluster.as_dict()[job][number]}"

    def _silence(self, index: int) -> Optional[str]:
        """Returns what is wrong with a worker that has given no sign of life; None if nothing."""
        seconds = self._host.answered - self._seen[index][1]
        job, number = self._tasks[index]
        if seconds > self._gone_seconds and refuses(self.cluster.as_dict()[job][number]):
            return _ENDED
        if seconds > self.timeout:
            return f"has given no sign of life for {self.timeout:g} seconds."
        return None

    def beat(self) -> Row:
        """Returns the next row of this process."""
        with self._lock:
            self.row = self.row._replace(beat=self.row.beat + 1)
            return self.row

    def take(self, table: Any) -> None:
        """Takes the rows that the host has now."""
        rows, now = [Row(*map(int, row)) for row in table], time.monotonic()
        self._seen = [
            seen if seen[0] == row.beat else (row.beat, now) for row, seen in zip(rows, self._seen)
        ]
        self.table = rows

    def _enter(self, **fields: int) -> None:
        with self._lock:
            self.row = self.row._replace(**fields)
            self._host.told.clear()
        self._host.wake()

    def _watch(self) -> None:
        while not self.stopping.wait(_LOOK_SECONDS):
            message = self._trouble()
            if message is not None:
                self._lose(message)
                return

    def _lose(self, message: str) -> None:
        with self._lock:
            if self.lost is not None or self.stopping.is_set():
                return
            self.lost = PeerLost(message)
        self._on_lost(self.lost)

    def _trouble(self) -> Optional[str]:
        for link in self._links:
            limit = self.timeout * (1 if link.connected else _START_FACTOR)
            if link.restarted:
                return f"{link.who} was started again: the variables that it had are lost."
            if link.silence() > limit:
                what = "not answered" if link.connected else "not started"
                return f"{link.who} has {what} for {limit:g} seconds."
            if link.connected and link.silence() > self._gone_seconds and refuses(link.address):
                return f"{link.who} {_ENDED}"
        if self._host.connected and self.cluster.job == "worker":
            return self._trouble_of_workers()
        return None

    def _trouble_of_workers(self) -> Optional[str]:
        rows = list(zip(self.table, self._seen))[: self.cluster.num_workers]
        for index, (row, (_, since)) in enumerate(rows):
            if index == self.index:
                continue
            if row.state == FAILED:
                return f"{self.who(index)} failed: its own log says why."
            if row.state and self._in_step and row.plan != self.row.plan:
                return (
                    f"{self.who(index)} has epochs of {row.plan} steps, and this process of "
                    f"{self.row.plan}: give all the same, with TrainConfig(steps_per_epoch=...)."
                )
            if row.state == LEFT and self._in_step and row.step < self._step():
                on_left, self._on_left = self._on_left, lambda who: None
                on_left(self.who(index))
            if row.state == 0 and self._host.answered - since > self.timeout * _START_FACTOR:
                return f"{self.who(index)} has not started in {self.timeout * _START_FACTOR:g} s."
            trouble = self._silence(index)
            if row.state in (JOINED, READY) and trouble:
                return f"{self.who(index)} {trouble}"
        return None
