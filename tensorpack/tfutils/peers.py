"""Watches the other processes of a cluster, so that the end of one is an error and not a freeze.

Each process is asked for its status (a call of TensorFlow's own worker service) over a connection
of its own. The server answers as long as the process lives, whatever its Python code does.
"""

import math
import re
import threading
import time
from typing import Any, Callable, Dict, Mapping

from tensorpack.utils import logger
from tensorpack.utils.optional import require

_STATUS = "/tensorflow.WorkerService/GetStatus"
_TASK = re.compile(rb"/job:(\w+)/replica:0/task:(\d+)/")  # in the names of devices in the answer
_CHANNEL = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # so long may a connection take, on a busy machine
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_PERIOD_SECONDS = 1.0
_GONE_SECONDS = 3.0  # without a connection, which is sure; a new one may be tried meanwhile
_LOOK_SECONDS = 0.05
_REPORT_SECONDS = 10.0  # between two lines about what is waited for


class PeerLost(RuntimeError):
    """Another process of the group has ended, was stopped, or cannot be reached."""


class PeerWatch:
    """Asks other processes of a cluster, on a thread, whether they are alive.

    Args:
      peers: what to call a process in messages, such as "worker 1", to its address "host:port".
      timeout: seconds without an answer after which a process counts as lost. One that refuses
        connections, because it has ended, is lost after 3 seconds.
      on_lost: called once, on the thread, with the `PeerLost` that names the first one lost.
    """

    def __init__(
        self, peers: Mapping[str, str], timeout: float, on_lost: Callable[[PeerLost], None]
    ) -> None:
        self._peers = dict(peers)
        self._timeout = timeout
        self._on_lost = on_lost
        self._grpc = require("grpc", "grpcio")
        self._channels = {
            name: self._grpc.insecure_channel(at, _CHANNEL) for name, at in self._peers.items()
        }
        self._answered = dict.fromkeys(self._peers, time.monotonic())
        self._pending: Dict[str, Any] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="PeerWatch", daemon=True)

    def wait_for_all(self, timeout: float, check_stop: Callable[[], None]) -> Dict[str, str]:
        """Waits until each process has started its server; returns what each calls itself.

        Args:
          timeout: seconds.
          check_stop: called several times a second; may raise.

        Raises:
          PeerLost: some have not.
        """
        missing, found = dict(self._peers), {}

        def all_have() -> bool:
            for name in list(missing):
                found[name] = self._name_of(name)
                if found[name]:
                    del missing[name]
            return not missing

        if not wait_for(lambda: _list(missing), all_have, check_stop, timeout):
            raise PeerLost(
                f"{_list(missing)} did not start within {timeout:g} seconds. Start all processes "
                "of the cluster, with the same addresses, and look at the log of this one."
            )
        return found

    def start(self) -> None:
        """Starts to watch."""
        self._answered = dict.fromkeys(self._peers, time.monotonic())
        self._thread.start()

    def close(self) -> None:
        """Ends the watch: from now on the others may leave."""
        self._over.set()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join()
        for channel in self._channels.values():
            channel.close()

    def _name_of(self, name: str) -> str:
        """Returns what a process calls itself, "" if it does not answer."""
        # By a connection of its own: after one that failed, gRPC does not try for some seconds.
        options = [*_CHANNEL, ("grpc.use_local_subchannel_pool", 1)]
        with self._grpc.insecure_channel(self._peers[name], options) as channel:
            call = channel.unary_unary(_STATUS).future(b"", timeout=_PERIOD_SECONDS)
            try:
                task = _TASK.search(call.result(timeout=_PERIOD_SECONDS))
            except (self._grpc.RpcError, self._grpc.FutureTimeoutError):
                return ""
        return b" ".join(task.groups()).decode() if task else name

    def _ask(self, name: str) -> Any:
        call = self._channels[name].unary_unary(_STATUS)
        return call.future(b"", timeout=max(self._timeout, _PERIOD_SECONDS))

    def _watch(self) -> None:
        while not self._over.is_set():
            for name in self._peers:
                if name not in self._pending:
                    self._pending[name] = self._ask(name)
            if self._over.wait(_PERIOD_SECONDS):
                return
            for name, at in self._peers.items():
                lost = self._look_at(name, at)
                if lost is not None:
                    self._on_lost(lost)
                    return

    def _look_at(self, name: str, at: str) -> Any:
        """Returns the PeerLost of a process, None if it lives or may do so."""
        asked, now = self._pending[name], time.monotonic()
        if asked.done():
            del self._pending[name]
            if asked.code() == self._grpc.StatusCode.OK:
                self._answered[name] = now
        silent = now - self._answered[name]
        refused = asked.done() and asked.code() == self._grpc.StatusCode.UNAVAILABLE
        if silent < (min(_GONE_SECONDS, self._timeout) if refused else self._timeout):
            return None
        why = f"has not answered for {silent:.0f} seconds: it is stopped, or cannot be reached"
        if refused:
            why = "has ended, or was killed: it accepts no connection"
        return PeerLost(
            f"{name} at {at} {why}. Its own log tells more. The others cannot train without it: "
            "start all again, with resume to continue from the last state that all have saved."
        )


def wait_for(
    what: Callable[[], str],
    done: Callable[[], bool],
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


def _list(peers: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({at})" for name, at in peers.items())
