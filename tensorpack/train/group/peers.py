"""The other processes of a cluster, watched so that the end of one is an error and not a freeze.

Each process is asked for its status (a call of TensorFlow's own worker service) over a connection
of its own. The server answers as long as the process lives, whatever its Python code does.
"""

import math
import re
import threading
import time
from typing import Any, Callable, Dict, Iterable, Optional

from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster, trouble_at
from tensorpack.utils.optional import require

_STATUS = "/tensorflow.WorkerService/GetStatus"
_TASK = re.compile(rb"/job:(\w+)/replica:0/task:(\d+)/")  # in the names of devices in the answer
_CHANNEL = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # another's failure to connect delays none here
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # so long may a connection take, on a busy machine
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_PERIOD_SECONDS = 1.0
_START_PERIOD_SECONDS = 0.1  # until all have started
_START_ANSWER_SECONDS = 1.0  # then it is asked again: a starting server may lose a call
_START_FACTOR = 10  # how many times the time-out a process may take to start
_GONE_SECONDS = 3.0  # without a connection, which is sure; a new one may be tried meanwhile
_EXPLAIN_SECONDS = 5.0  # from an error of TensorFlow until the loss behind it is known
_CONNECT_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_REPORT_SECONDS = 10.0  # between two lines about what is waited for


class PeerLost(RuntimeError):
    """Another process of the group has ended, was stopped, or cannot be reached."""


class Peers:
    """This process and the others of its cluster, which a thread asks whether they are alive.

    Args:
      cluster: the addresses of all, and the role of this process.
      timeout: seconds without an answer after which a process counts as lost. One that refuses
        connections, because it has ended, is lost after 3 seconds. Ten times as many may pass until
        it starts.
      on_lost: called once, on any thread, with the error that ends the group.
      patient: whether a process may take any time to start.

    Attributes:
      names: of all, the workers and then the parameter servers, such as "worker 1".
      index: which of them is this process.
      lost: the error that has ended the group, None if nothing has.
    """

    def __init__(
        self,
        cluster: Cluster,
        timeout: float,
        on_lost: Callable[[BaseException], None],
        patient: bool = False,
    ) -> None:
        self.cluster, self.timeout = cluster, timeout
        self.names = [f"worker {i}" for i in range(cluster.num_workers)]
        self.names += [f"ps {i}" for i in range(len(cluster.ps))]
        self.index = self.names.index(cluster.name)
        self.lost: Optional[BaseException] = None
        self._addresses = [*cluster.workers, *cluster.ps]
        self._peers = dict(zip(self.names, self._addresses))
        del self._peers[cluster.name]
        self._start_limit = math.inf if patient else timeout * _START_FACTOR
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._grpc = require("grpc", "grpcio")
        self._channels = {
            name: self._grpc.insecure_channel(at, _CHANNEL) for name, at in self._peers.items()
        }
        self._answered: Dict[str, float] = {}
        self._pending: Dict[str, Any] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="PeerWatch", daemon=True)
        self._called: Dict[str, str] = {}  # of each that has answered, what it calls itself
        self._silent: Dict[str, PeerLost] = {}  # the errors of those that are lost

    def who(self, *indices: int) -> str:
        """Returns what messages call processes: their names and addresses."""
        return ", ".join(f"{self.names[each]} at {self._addresses[each]}" for each in indices)

    def wait_for(
        self, what: Callable[[], str], done: Callable[[], bool], check: Callable[[], None]
    ) -> None:
        """As the function `wait_for`, without a limit; raises what has ended the group."""
        wait_for(what, lambda: self.lost is not None or done(), check)
        if self.lost is not None:
            raise self.lost

    def explain(self) -> Optional[BaseException]:
        """Returns what is behind an error of TensorFlow, as a process that is lost; waits for some
        seconds until that is known, and returns None if it is not.
        """
        wait_for(str, lambda: self.lost, limit=_EXPLAIN_SECONDS)
        return self.lost

    def has_ended(self) -> bool:
        """Whether this process has left or given up the group, so that no loss counts."""
        raise NotImplementedError

    def _on_silent(self, name: str, error: PeerLost) -> None:
        """Called on the thread, once for each process that is lost."""
        self._lose(error)

    def _lose(self, error: BaseException) -> None:
        with self._lock:
            if self.lost is not None or self.has_ended():
                return
            self.lost = error
        self._on_lost(error)

    def _start_watch(self) -> None:
        self._answered = dict.fromkeys(self._peers, time.monotonic())
        self._watcher.start()

    def missing(self, among: Optional[Iterable[str]] = None) -> str:
        """Returns a list of those, of all or of some, that have not answered yet, for messages."""
        names = self._peers if among is None else among
        return ", ".join(f"{i} ({self._peers[i]})" for i in names if i not in self._called)

    def _end_watch(self) -> None:
        """From now on the others may leave."""
        self._over.set()
        if self._watcher.ident is not None and threading.current_thread() is not self._watcher:
            self._watcher.join()
        for channel in self._channels.values():
            channel.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            asked = [name for name in self._peers if name not in self._silent]
            for name in asked:
                if name not in self._pending:
                    call = self._channels[name].unary_unary(_STATUS)
                    known = name in self._called
                    limit = max(self.timeout, _PERIOD_SECONDS) if known else _START_ANSWER_SECONDS
                    self._pending[name] = call.future(b"", timeout=limit)
            all_started = len(self._called) == len(self._peers)
            if self._over.wait(_PERIOD_SECONDS if all_started else _START_PERIOD_SECONDS):
                return
            for name in asked:
                why = self._trouble_of(name)
                if why is not None:
                    self._silent[name] = PeerLost(why)
                    self._on_silent(name, self._silent[name])

    def _trouble_of(self, name: str) -> Optional[str]:
        """Returns why a process is lost, None if it lives or may do so."""
        asked, now = self._pending[name], time.monotonic()
        refused = False
        if asked.done():
            del self._pending[name]
            if asked.code() == self._grpc.StatusCode.OK:
                self._answered[name] = now
                task = _TASK.search(asked.result())
                self._called[name] = b" ".join(task.groups()).decode() if task else name
            elif now - self._answered[name] > min(_GONE_SECONDS, self.timeout):
                refused = refuses(self._peers[name])
        silent = now - self._answered[name]
        if name not in self._called:
            if silent < self._start_limit:
                return None
            return (
                f"{self.missing()} did not start within {silent:.0f} seconds. Start all processes "
                "of the cluster, with the same addresses, and look at the log of this one."
            )
        if silent < self.timeout and not refused:
            return None
        why = f"has not answered for {silent:.0f} seconds: it is stopped, or cannot be reached"
        if refused:
            why = "has ended, or was killed: it accepts no connection"
        return (
            f"{name} at {self._peers[name]} {why}. Its own log tells more. The others cannot train "
            "without it: start all again, with resume to continue from the last state that all "
            "have saved."
        )


def refuses(address: str) -> bool:
    """Whether a machine accepts no connection at "host:port", where a process has ended."""
    return isinstance(trouble_at(address, _CONNECT_SECONDS), ConnectionRefusedError)


def wait_for(
    what: Callable[[], str],
    done: Callable[[], Any],
    check: Callable[[], None] = lambda: None,
    limit: float = math.inf,
) -> bool:
    """Blocks until `done`, which is asked several times a second, and logs now and then `what` it
    waits for; returns False after `limit` seconds. `check` is called as often, and may raise.
    """
    start = reported = time.monotonic()
    while not done():
        check()
        if time.monotonic() - start > limit:
            return False
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            logger.info(f"Waiting for {what()} ...")
        time.sleep(_LOOK_SECONDS)
    return True
