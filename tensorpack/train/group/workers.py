"""A process as one of a group of workers: its server, its exchanges with the others, their ends."""

import threading
from contextlib import suppress
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.train.group.exchange import Exchange, all_reduce
from tensorpack.train.group.server import make_server, worker_config
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster

from .peers import Peers, refuses, wait_for
from .table import shared_variable

INTERRUPTED = 100  # plus the number of a signal: a flag of `Exchange`, besides LEFT and FAILED

_STAY_SECONDS = 20.0  # that a worker with another list stays at most until the others see it, too
_SEEN = "!"  # at the end of the list of a worker that has seen another one
_LAST_SECONDS = 2.0  # that the thread of the exchanges may take to close its session


class Workers(Peers):
    """This worker's side of a group that trains synchronously.

    All that waits for other workers runs on threads of its own, which may have to be left behind.

    Args:
      on_leave: called on any thread, with the flags of all workers, if another has left.

    Attributes:
      target: of sessions on the server of this worker.
      flags: those with which the exchanges have ended in order, None before.
    """

    def __init__(
        self,
        cluster: Cluster,
        timeout: float,
        on_lost: Callable[[BaseException], None],
        on_leave: Callable[[np.ndarray], None],
    ) -> None:
        super().__init__(cluster, timeout, on_lost)
        self.target = ""
        self.flags: Optional[np.ndarray] = None
        self._on_leave = on_leave
        self._config: Any = None
        self._exchange: Optional[Exchange] = None
        self._thread: Optional[threading.Thread] = None
        self._abandoned = False

    def join(self, config: Optional[tf.ConfigProto], check_stop: Callable[[], None]) -> None:
        """Starts the server, and waits until the other workers have started theirs.

        Raises:
          PeerLost: some have not.
        """
        self._config = worker_config(self.cluster, config)
        self.target = make_server(self.cluster, config).target
        _list_of_workers(self.target, self._config, ", ".join(self.cluster.workers))
        self._start_watch()
        self.wait_for(self.missing, lambda: not self.missing(), check_stop)
        for name, called in self._called.items():
            if name != called:
                raise ValueError(self._clash(name, called, check_stop))

    def _clash(self, name: str, called: str, check_stop: Callable[[], None]) -> str:
        """Returns what is wrong with a worker's list; stays until that worker can know it."""
        at = self._peers[name]
        device = "/job:{}/task:{}".format(*called.split())
        limits = tf.ConfigProto(device_filters=[device], operation_timeout_in_ms=2000)
        own, found = ", ".join(self.cluster.workers), [""]

        def ask() -> str:
            found[0] = _list_of_workers(f"grpc://{at}", limits)
            return found[0]

        # A server answers before its process has written the list, and then looks at the others.
        wait_for(lambda: f"the list of {name}", ask, check_stop)
        theirs = found[0].rstrip(_SEEN)
        _list_of_workers(self.target, self._config, own + _SEEN)
        what, seen = f"{name} to see the list of this one", lambda: ask().endswith(_SEEN)
        wait_for(lambda: what, lambda: seen() or refuses(at), check_stop, _STAY_SECONDS)
        return (
            f"{name} at {at} takes itself for {called}: its list of workers is {theirs}, that of "
            f"{self.cluster.name} is {own}. Give all the same list, in one order."
        )

    def gather(
        self, values: Sequence[float], key: int, check_stop: Callable[[], None]
    ) -> np.ndarray:
        """Returns the values of all workers, float64 `[workers, values]`."""
        graph = tf.Graph()
        with graph.as_default(), tf.device("/device:CPU:0"):
            table = np.zeros([self.cluster.num_workers, len(values)])
            table[self.cluster.index] = values
            everything = all_reduce(tf.constant(table), self.cluster.num_workers, key)
        return self.run_apart(graph, everything, check_stop)

    def start(self, graph: tf.Graph, exchange: Exchange) -> None:
        """Begins with the exchanges, one for each step."""
        self._exchange = exchange
        self._thread = threading.Thread(
            target=self._serve, args=[graph, exchange], name="Exchange", daemon=True
        )
        self._thread.start()

    def leave(self, sess: tf.Session, flag: int, limit: float) -> None:
        """Tells the others that this worker leaves, unless the group has ended already.

        They hear it in their next step, so this waits until they have come to it.

        Args:
          limit: seconds to wait; infinite to wait for as long as the others live.
        """
        if self._thread is None or self._exchange is None or self.has_ended():
            return
        try:
            self._exchange.leave(sess, -flag)
        except (tf.errors.OpError, RuntimeError) as error:  # the queues were closed meanwhile
            logger.warning(f"The other workers could not be told: {error}")
            return
        thread, what = self._thread, "the other workers to come to the end of their step"
        if not wait_for(
            lambda: what, lambda: not thread.is_alive() or self.has_ended(), limit=limit
        ):
            logger.warning("Timed out waiting for the other workers to finish their step.")

    def abandon(self, sess: Any) -> None:
        """Ends a step that waits for the others, and all exchanges. May be called on any thread."""
        self._abandoned = True
        if self._exchange is not None and sess is not None:
            with suppress(RuntimeError, tf.errors.OpError):  # the session is closed already
                sess.run(self._exchange.close)

    def close(self) -> None:
        """Lets go of the others: from now on they may end."""
        self._abandoned = True
        self._end_watch()
        if self._thread is not None:
            # One that returns from TensorFlow while the interpreter ends aborts the process.
            self._thread.join(_LAST_SECONDS)

    def has_ended(self) -> bool:
        """Whether the exchanges have ended or were given up, so that none hears a flag."""
        return self._abandoned or self.lost is not None or self.flags is not None

    def run_apart(self, graph: tf.Graph, fetch: Any, check_stop: Callable[[], None]) -> Any:
        """Runs what needs all workers, before the exchanges begin, on a thread of its own."""
        results: List[Any] = []

        def run() -> None:
            try:
                with self._session(graph) as sess:
                    results.append(sess.run(fetch))
            except Exception as error:
                self._fail_with(error)

        thread = threading.Thread(target=run, name="Exchange", daemon=True)
        thread.start()
        others = self.who(*(i for i in range(len(self.names)) if i != self.index))
        self.wait_for(lambda: others, lambda: not thread.is_alive(), check_stop)
        return results[0]

    def _serve(self, graph: tf.Graph, exchange: Exchange) -> None:
        try:
            with self._session(graph) as sess:
                collect = sess.make_callable(list(exchange.collect))
                flags = None
                while flags is None or not flags.any():
                    flags, _ = collect()
                self._end_watch()
                self.flags = flags
                if flags.min() < 0:
                    self._on_leave(flags)  # says why, before the step finds its queue closed
                    sess.run(exchange.close)
        except Exception as error:
            if not self._abandoned:
                self._fail_with(error)

    def _session(self, graph: tf.Graph) -> tf.Session:
        return tf.Session(self.target, graph=graph, config=self._config)

    def _fail_with(self, error: Exception) -> None:
        """Ends the group because of an error of a collective, or better, of its reason."""
        self.explain()
        failure = RuntimeError(
            f"The exchange with the other workers failed, and all of them answer: {error}"
        )
        failure.__cause__ = error
        self._lose(failure)


def _list_of_workers(target: str, config: tf.ConfigProto, own: str = "") -> str:
    """Returns the list of the worker with this server, "" if not known; first sets it to `own`."""
    with tf.Graph().as_default() as graph, tf.device("/device:CPU:0"):
        place = shared_variable("tensorpack_workers", tf.string, [])
        write = tf.raw_ops.AssignVariableOp(resource=place, value=own)
        read = tf.raw_ops.ReadVariableOp(resource=place, dtype=tf.string)
    try:
        with tf.Session(target, graph, config) as sess:
            if own:
                sess.run(write)
            return sess.run(read).decode()
    except tf.errors.OpError:
        return ""
