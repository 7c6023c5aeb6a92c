"""What trainers of several processes have in common: they start, resume, save and end together.

Each process runs a server of TensorFlow, which the others reach. It has no authentication and no
encryption, and listens on all network interfaces of the machine, whatever the addresses of the
cluster are: run it in a network that is closed to others.
"""

import itertools
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, cast

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.dependency import dependency_of_fetches
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.train.multigpu import MultiTowerTrainer
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note
from tensorpack.utils.checks import as_positive
from tensorpack.utils.cluster import Cluster, is_loopback, trouble_at
from tensorpack.utils.stopping import (
    Finished,
    Interrupted,
    StopReason,
    StopRequested,
    StopToken,
)

from .resume import agree_on_state

_CONNECT_SECONDS, _LOOK_SECONDS, _REPORT_SECONDS = 1.0, 0.05, 10.0
_LEFT = 100.0  # the flag of a worker that ends its training; that of a signal is its number
_SPARE_SECONDS = 1.0  # for a wait with the same limit that can raise an error
_KEYS_OF_A_RUN = 1000000
_runs = itertools.count()  # of this process, whose server keeps what earlier ones have left there
_servers: Dict[Cluster, tf.train.Server] = {}  # TensorFlow cannot stop a server


def make_server(cluster: Cluster, config: Optional[tf.ConfigProto] = None) -> tf.train.Server:
    """Returns the server of this process, which is started at the first call. Its devices and
    threads are those of `config`, whatever that of a session on it says; see `worker_config`.
    """
    if cluster in _servers:
        return _servers[cluster]
    hosts = {name.rpartition(":")[0] for name in (*cluster.workers, *cluster.ps)}
    remote = sorted(host for host in hosts if not is_loopback(host))
    if remote:
        logger.warning(
            f"{', '.join(remote)}: anyone who reaches the ports of this cluster can run any code "
            "in its processes. Keep them inside a closed network."
        )
    try:
        server = tf.train.Server(
            cluster.as_dict(), cluster.job, cluster.index, None, worker_config(cluster, config)
        )
    except (tf.errors.OpError, RuntimeError) as error:
        raise RuntimeError(
            f"{cluster.name} cannot take its address {cluster.address}: {error}. Is another "
            "process there already, or is the address that of another machine?"
        ) from error
    _servers[cluster] = server
    logger.info(f"This is {cluster.name} of {cluster.num_workers}, at {cluster.address}.")
    return server


def worker_config(cluster: Cluster, config: Optional[tf.ConfigProto] = None) -> tf.ConfigProto:
    """Returns a config for the server of a process and for the sessions on it, by default from
    `get_default_sess_config()`.

    A worker's session does not see the devices of the other workers, so it can be opened before
    they are there, and closed when they are gone.
    """
    result = tf.ConfigProto()
    result.CopyFrom(get_default_sess_config() if config is None else config)
    result.use_per_session_threads = False  # the threads of a server are for all of its sessions
    result.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if cluster.job == "worker":
        seen = [f"/job:worker/task:{cluster.index}"] + ["/job:ps"] * bool(cluster.ps)
        result.device_filters.extend(name for name in seen if name not in result.device_filters)
    return result


class GroupTrainer(MultiTowerTrainer):
    """A worker of a group, whose steps wait for each other.

    With each step travels a flag of each worker, 0 to go on. A signal, or the end of the training,
    at one of them sets its flag, so that all end after the same step. A worker whose group does not
    come to that step in half of `stop_grace` ends alone. One that waits for the others for longer
    than `timeout` ends its process.

    A subclass calls `_form_group` in its constructor, unless its process is alone.
    """

    cluster: Any = None  # the `Cluster`; None for a process that was started alone
    _has_group = False
    _set_flag: Any = None  # an op, where steps wait for each other
    _unsaved = ""  # why this worker does not save where it ends

    def _form_group(self, cluster: Cluster, timeout: float) -> None:
        self._has_group, self.cluster, self._worker = True, cluster, cluster.index
        self.is_chief = cluster.is_chief
        self._timeout = as_positive(self, "timeout", timeout)
        self._workers = [f"worker {i} at {at}" for i, at in enumerate(cluster.workers)]
        self._host = f"/job:{'ps' if cluster.ps else 'worker'}/task:0"  # of what all share
        self.server: Any = None  # the tf.train.Server of this process
        self._waits_for, self._in_loop, self._gathered = "", False, 0
        self._first_key = next(_runs) * _KEYS_OF_A_RUN + 1
        self.signal_token = StopToken()
        self.signal_token.on_request(self._on_signal)

    def setup(self) -> None:
        """As the base class, when the group has agreed on the state to resume from."""
        if self._has_group:
            self._join()
            agree_on_state(self._require_config(), self._state, self._gather)
        super().setup()

    def _join(self) -> str:
        """Starts the server of this process, and waits for those of the others; returns the target
        of sessions on it.
        """
        if self.server is None:
            self.server = make_server(self.cluster, self._require_config().session_config)
        jobs = self.cluster.as_dict().items()
        all_of_them = [(f"{job} {i} at {at}", at) for job, ats in jobs for i, at in enumerate(ats)]
        self._wait(lambda: [name for name, at in all_of_them if trouble_at(at, _CONNECT_SECONDS)])
        return self.server.target

    def _check_creator(self, session_creator: Any) -> NewSessionCreator:
        creator = session_creator or NewSessionCreator()
        if type(creator) is not NewSessionCreator or creator.target or creator.graph is not None:
            raise ValueError(
                f"{type(self).__name__} makes a session on the server of its worker, so it takes a "
                "NewSessionCreator without a target, or TrainConfig(session_config=...)."
            )
        return creator

    def _gather(self, values: Sequence[float]) -> np.ndarray:
        """Returns the numbers of all workers, float64 `[workers, numbers]`, when all have called
        it. Each must call it as often, with as many; RuntimeError if one does not in time.
        """
        self._gathered += 1
        name, row = f"gathered{self._first_key + self._gathered}", np.array(values, np.float64)
        with tf.Graph().as_default() as graph, tf.device(f"{self._host}/device:CPU:0"):
            rows = [
                tf.get_variable(f"{name}_{worker}", initializer=0 * row, use_resource=True)
                for worker in range(self.cluster.num_workers)
            ]
            give = rows[self._worker].assign(row, read_value=False)
            present = tf.stack([tf.is_variable_initialized(row) for row in rows])
            table = tf.stack(rows)
        filters = [self._host, f"/job:worker/task:{self._worker}"]
        session = tf.Session(self.server.target, graph, tf.ConfigProto(device_filters=filters))
        with self._waiting("the other workers"), session:
            session.run(give)
            self._wait(lambda: [self._workers[i] for i in np.flatnonzero(~session.run(present))])
            return session.run(table)

    def _wait(self, missing: Callable[[], Sequence[str]]) -> None:
        """Blocks until none of the processes that `missing` names is."""
        start = reported = time.monotonic()
        for names in iter(missing, []):
            self.check_stop()
            now = time.monotonic()
            if now - start > self._timeout:
                raise RuntimeError(
                    f"{', '.join(names)} did not come within {now - start:.0f} seconds. Start all "
                    "processes of the cluster, with the same addresses, and look at the log of "
                    "this one."
                )
            if now - reported > _REPORT_SECONDS:
                reported = now
                logger.info(f"Waiting for {', '.join(names)} ...")
            time.sleep(_LOOK_SECONDS)

    def _compare(self, **values: float) -> None:
        """Waits for all workers; raises ValueError if they differ in these or in their steps."""
        config = self._require_config()
        values.update(steps_per_epoch=config.steps_per_epoch, max_epoch=config.max_epoch)
        table = self._gather(list(values.values()))
        for name, column in zip(values, table.T):
            if (column != column[0]).any():
                raise ValueError(
                    f"The workers differ in {name}: {column.astype(int).tolist()}. All run the "
                    "same program with the same options, such as TrainConfig(steps_per_epoch=...)."
                )

    def _make_flag(self) -> tf.Tensor:
        """Returns float32 `[workers]`: the flag of this worker in its place, and zeros."""
        with tf.device("/device:CPU:0"):
            flag = tf.get_variable(
                "group_flag",
                initializer=0.0,
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
                use_resource=True,
            )
            self._new_flag = tf.placeholder(tf.float32, [])
            self._set_flag = flag.assign(self._new_flag, read_value=False)
            return tf.one_hot(self._worker, self.cluster.num_workers) * flag.read_value()

    def _run(self, is_set_up: bool = False) -> None:
        if not self._has_group:
            super()._run(is_set_up)
            return
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=[over], name="Group", daemon=True)
        watcher.start()
        try:
            super()._run(is_set_up)
        finally:
            over.set()
            watcher.join()

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        """A block that waits for others, which `_watch` limits."""
        self._waits_for = what
        try:
            yield
        finally:
            self._waits_for = ""

    def _watch(self, over: threading.Event) -> None:
        """Ends this worker alone, or its process, when it has waited for the others for too long:
        nothing else ends a wait inside of TensorFlow.
        """
        seen: Any = None
        while not over.wait(min(1.0, self._timeout / 4)):
            signalled, alone = self.signal_token.reason, self.stop_token.requested
            in_step = self._in_loop and self.in_step
            waits = self._waits_for or (f"the end of step {self.global_step}" if in_step else "")
            if seen != (waits, signalled, alone):
                seen, since = (waits, signalled, alone), time.monotonic()
            seconds = time.monotonic() - since
            if signalled is not None and not alone and seconds > self.stop_grace / 2:
                self._unsaved = "the other workers did not come to the same step"
                self.stop_token.request(signalled)
            limit = self.stop_grace / 2 if alone else self._timeout + _SPARE_SECONDS
            if waits and seconds > limit and self._guard is not None:
                self._guard.end_process(
                    f"it has waited {seconds:.0f} s for {waits}. Another process of the group is "
                    "stopped, cannot be reached, or is slower than timeout allows",
                    code=1 if signalled is None else None,
                )

    def _loop(self) -> None:
        if not self._has_group:
            super()._loop()
            return
        self._in_loop = True
        try:
            super()._loop()
        except (StopTraining, SystemExit) as error:
            if not getattr(error, "code", None):
                self._leave()
            raise
        except tf.errors.OpError as error:
            reason = self.signal_token.reason
            if reason is not None:
                if self.in_step and not isinstance(error, tf.errors.OutOfRangeError):
                    self._unsaved = "a part of a step may be in the variables"
                self.stop_token.request(reason)
                raise StopRequested(reason) from error
            add_note(error, "In a group, the log of the process that ended first tells why.")
            self._waits_for = "the end of its session"  # which waits for a lost process for ever
            raise
        finally:
            self._in_loop = False

    def _leave(self) -> None:
        """Takes part in one more step of the others, which ends their training."""
        is_last = self.epoch_num == self.max_epoch and self.steps_done == self.steps_per_epoch
        if self._set_flag is None or is_last or self.stop_token.requested:
            return
        with self._waiting("the last step"):
            self.sess.run(self._set_flag, {self._new_flag: _LEFT})
            self.local_step, self.global_step = self.steps_done, self.steps_taken + 1
            self.run_step()
            self.steps_done, self.steps_taken = self.steps_done + 1, self.global_step

    def _end_step(self) -> None:
        super()._end_step()
        reason = self.signal_token.reason
        if isinstance(reason, Interrupted) and self._set_flag is not None:
            self.sess.run(self._set_flag, {self._new_flag: reason.signum})

    def _save_at_end(self) -> None:
        if self._unsaved:
            raise RuntimeError(self._unsaved)
        super()._save_at_end()

    def _agree(self, flags: np.ndarray) -> None:
        """Ends the run after this step, for the flags of all workers that are not all 0."""
        who = ", ".join(self._workers[i] for i in np.flatnonzero(flags))
        signals = flags[flags < _LEFT]
        if signals.any():
            reason: StopReason = Interrupted(int(signals.max()))
            logger.info(f"{signal.Signals(reason.signum).name} at {who} ends all workers.")
        else:
            reason = Finished()
            logger.info(f"{who} has ended its training, so all workers do.")
        self.stop_token.request(reason)

    def _on_signal(self) -> None:
        if self.begun:
            logger.info("Asked to end: all workers end after the same step.")
        else:
            self.stop_token.request(cast(StopReason, self.signal_token.reason))


class StopVote(Callback):
    """Fetches the flags of all workers with each step, and tells the trainer if one is not 0.

    Args:
      flags: float32 `[workers]`.
      waits: what waits for the other workers, so that no other run may fetch it.
    """

    _chief_only = False

    def __init__(self, flags: tf.Tensor, waits: Sequence[tf.Tensor] = ()) -> None:
        self._request, self._waits = tf.train.SessionRunArgs(flags), waits

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        if not dependency_of_fetches(fetches, self.trainer.train_op):
            for tensor in self._waits:
                if dependency_of_fetches(fetches, tensor):
                    raise RuntimeError(
                        f"{tensor.name} is summed over the workers inside the training step and "
                        "cannot be fetched outside it. Fetch it along with the step, as "
                        "MergeAllSummaries(run_alone=False) does, or use an inference tower."
                    )
        return []

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request if ctx.original_args.fetches is self.trainer.train_op else None

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        if np.any(run_values.results):
            self.trainer._agree(run_values.results)
