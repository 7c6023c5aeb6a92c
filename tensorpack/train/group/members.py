"""A run with parameter servers as a group: who lives, who has ended, who asks for the end.

How long a step or a callback takes does not matter.
"""

import threading
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.cluster import Cluster

from .peers import PeerLost, Peers
from .table import FAILED, HOST, JOINED, LEFT, READY, Row, Table, shared_variable

_TELL_SECONDS = 2.0  # for the last words to the group


class Members(Peers):
    """The membership of this process in the group.

    Args:
      cluster, timeout: see `Peers`. A parameter server waits for the start of the others without
        limit.
      in_step: whether workers wait for each other in each step, so that one that has ended before
        the others is an error.
      closing: called under the graph of the table; returns an op that ends what workers wait for.

    Attributes:
      table: the latest rows, of the workers and then of the parameter servers.
    """

    def __init__(
        self,
        cluster: Cluster,
        target: str,
        timeout: float = 60.0,
        in_step: bool = True,
        closing: Callable[[], Any] = tf.no_op,
    ) -> None:
        super().__init__(cluster, timeout, lambda error: None, patient=cluster.job == "ps")
        self.stopping = threading.Event()
        self._in_step = in_step
        self.row = Row()
        self.table = [self.row] * len(self.names)
        self._gathered = 0
        self._on_left: Callable[[str], None] = lambda who: None
        self._step: Callable[[], int] = lambda: 0
        self._host = Table(self, target, closing)
        self._servers = [name for name in self._peers if name.startswith("ps")]

    def join(
        self,
        on_lost: Callable[[BaseException], None],
        on_left: Callable[[str], None] = lambda who: None,
        step: Callable[[], int] = lambda: 0,
        plan: int = 0,
    ) -> None:
        """Starts to live in the group.

        Args:
          on_lost: called once, on a thread, if a process is lost, or does not fit in the group.
          on_left: called once, on a thread, with the name of a worker that has ended in order
            although this one waits for it in a step.
          plan: steps in an epoch; the same for all workers that wait for each other.
        """
        self._on_lost, self._on_left, self._step = on_lost, on_left, step
        self._enter(state=JOINED, plan=plan)
        self._start_watch()
        self._host.start()

    @property
    def joined(self) -> bool:
        """Whether `join` was called."""
        return self._host.ident is not None

    def ready(self, step: int) -> None:
        """Tells that the variables of this process have values, and the step they belong to."""
        self._enter(state=READY, step=step)

    def fail(self) -> None:
        """Tells that this process is about to end without having left in order."""
        self._enter(state=FAILED)
        self._tell()

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
        """Tells how this process ends, and stops the threads."""
        if not self.joined or self.stopping.is_set():
            return
        self._enter(state=FAILED if failed else LEFT, step=step)
        self._tell()
        self.stopping.set()
        self._host.wake()
        self._host.join(_TELL_SECONDS)
        self._end_watch()

    def has_ended(self) -> bool:
        return self.stopping.is_set()

    def gather(self, values: Sequence[float], check: Callable[[], None]) -> np.ndarray:
        """Returns the values of all workers, `[workers, values]`; each must call it as often."""
        graph, me = tf.Graph(), self.index
        with graph.as_default(), tf.device(HOST):
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
            self.wait_for(lambda: "the other workers", lambda: all(session.run(known)), check)
            return np.array(session.run(table))

    def connected(self) -> bool:
        """Whether all parameter servers have answered."""
        return not self.missing(self._servers)

    def has_host(self) -> bool:
        """Whether the host of the table has answered."""
        return not self.missing(each for each in self._servers if each == "ps 0")

    def alive(self, index: int) -> bool:
        """Whether a worker has joined, and has not ended or got lost."""
        lives = self.table[index].state in (JOINED, READY)
        return lives and self.names[index] not in self._silent

    def take(self, table: Optional[List[Row]]) -> None:
        """Takes the rows that the host has now; None if it has lost them."""
        if table is None:
            text = "was started again: the variables that it had are lost."
            self._lose(PeerLost(f"{self.who(self.cluster.num_workers)} {text}"))
            return
        self.table = table
        if self.cluster.job == "worker":
            for index in range(self.cluster.num_workers):
                if index != self.index:
                    self._look_at_worker(index)

    def failure_of(self, index: int) -> PeerLost:
        """Returns the error about a process that failed; names the one whose loss it ended by."""
        who, cause = self.who(index), self.table[index].cause
        if cause:  # this process may not know of that loss yet
            return PeerLost(f"{self.who(cause - 1)} is lost, and so {who} ended.")
        return PeerLost(f"{who} failed: its own log says why.")

    def _look_at_worker(self, index: int) -> None:
        row, who = self.table[index], self.who(index)
        if row.state == FAILED:
            self._lose(self.failure_of(index), row.cause)
        elif row.state == LEFT:
            if self._in_step and row.step < self._step():
                on_left, self._on_left = self._on_left, lambda who: None
                on_left(who)
        elif self.names[index] in self._silent:
            self._lose(self._silent[self.names[index]], index + 1)
        elif row.state and self._in_step and row.plan != self.row.plan:
            text = f"{who} has epochs of {row.plan} steps, and this process of {self.row.plan}: "
            text += "give all the same, with TrainConfig(steps_per_epoch=...)."
            self._lose(PeerLost(text))

    def _on_silent(self, name: str, error: PeerLost) -> None:
        """A worker may have left in order, which the next look at the table tells."""
        if name in self._servers:
            self._lose(error, self.names.index(name) + 1)
        else:
            self._host.wake()

    def _lose(self, error: BaseException, cause: int = 0) -> None:
        if cause and self.lost is None:
            self._enter(cause=cause)
        super()._lose(error)

    def _enter(self, **fields: int) -> None:
        with self._lock:
            self.row = self.row._replace(**fields)
            self._host.told.clear()
        self._host.wake()

    def _tell(self) -> None:
        if self.has_host():
            self._host.told.wait(_TELL_SECONDS)
