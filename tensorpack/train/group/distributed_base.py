"""What trainers with parameter servers have in common: the session, and the group of processes."""

from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence, Union

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.train.config import TrainConfig
from tensorpack.train.group.server import make_server, worker_config
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_positive
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import Finished, Interrupted, StopRequested

from .members import Members
from .serve import serve
from .server_graph import StartValues, StepTurns, is_on_server
from .table import HOST, READY
from .trainer import GroupTrainer

Towers = Union[TrainConfig, int, Sequence[int], None]

_LOST_SECONDS = 10.0  # at most, for an end in order when a process is lost


class DistributedTrainerBase(GroupTrainer):
    """What the trainers with parameter servers have in common: the session, and the group.

    Attributes:
      cluster: the `Cluster` that it was made for.
      worker_device: the part of the names of this worker's devices that they have in common.
    """

    _in_step = True  # whether the workers wait for each other in each step

    @accepts_old_keywords(gpus="config")
    def __init__(
        self, config: Towers, server: Optional[tf.train.Server] = None, timeout: float = 60.0
    ) -> None:
        timeout = as_positive(self, "timeout", timeout)
        server = _own_server(config) if server is None else server
        self.server = server
        self.cluster = cluster = _cluster_of(server)
        self.is_chief = cluster.is_chief
        if cluster.job == "ps":
            serve(cluster, server.target, timeout)
        super().__init__(config)
        self._form_group(cluster.index)
        if self.config is not None:
            _check_creator(self.config.session_creator)
        self._host = f"{HOST}/device:CPU:0"
        self._servers = [f"/job:ps/task:{i}/device:CPU:0" for i in range(len(cluster.ps))]
        self.worker_device = f"/job:worker/task:{cluster.index}"
        self._cpu = f"{self.worker_device}/device:CPU:0"
        number, in_step = cluster.num_workers, self._in_step
        closing = (lambda: StepTurns.closing(number)) if in_step else tf.no_op
        self.group = Members(cluster, server.target, timeout, in_step, closing)

    def setup(self) -> None:
        """See `GroupTrainer`."""
        self._join()  # its errors need no explanation
        with self._explaining():
            super().setup()

    def _gather(self, values: Sequence[float]) -> np.ndarray:
        return self.group.gather(values, self.check_stop)

    def _join(self) -> None:
        if not self.group.joined:
            plan = self._require_config().steps_per_epoch
            self.group.join(self._on_lost, self._on_left, lambda: self.global_step, plan)
            self.group.wait_for(
                lambda: "the parameter servers", self.group.connected, self.check_stop
            )

    def setup_graph(self, *args: Any, **kwargs: Any) -> None:
        """As in the base class, on the devices of this worker."""
        with self.graph.as_default(), tf.device(self.worker_device):
            super().setup_graph(*args, **kwargs)

    def setup_callbacks(
        self, callbacks: Sequence[Callback], monitors: Sequence[MonitorBase]
    ) -> None:
        """As in the base class, on the devices of this worker."""
        with self.graph.as_default(), tf.device(self.worker_device):
            super().setup_callbacks(callbacks, monitors)

    def variables_to_save(self) -> List[tf.Variable]:
        """All global variables in the chief; in others those that are not on a server."""
        variables = super().variables_to_save()
        return [each for each in variables if self.is_chief or not is_on_server(each)]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As in the base class. The chief initialises what is on the parameter servers; the others
        wait until it has, and take the values that its own variables start with.
        """
        creator = _check_creator(session_creator or NewSessionCreator())
        self._join()
        with self.graph.as_default(), tf.device(self.worker_device):
            own = [each for each in tf.global_variables() if not is_on_server(each)]
            start, sync = StartValues(own, self._host), self._sync_op()
            if not self.is_chief:
                self.group.wait_for(lambda: "the chief", self._chief_is_ready, self.check_stop)
                session_init = JustCurrentSession()  # the chief has loaded it
            super().initialize(_WorkerSessionCreator(self, creator), session_init)
        if self.is_chief:
            start.give(self.sess)
        elif not self.resumed:  # else it has loaded its own
            start.take(self.sess)
        self.sess.run(sync)
        with self.sess.as_default():
            self.group.ready(get_global_step_value())

    def _vote(self, reason: Interrupted) -> None:
        self.group.vote(reason.signum)

    def _release(self) -> None:
        self.group.release()

    def _agree(self, vote: Any) -> None:
        """See `GroupTrainer`; a vote is a signal."""
        self.stop_token.request(Interrupted(int(vote)))

    def _sync_op(self) -> tf.Operation:
        """Override to return what each worker runs before its first step."""
        return tf.no_op()

    def _chief_is_ready(self) -> bool:
        return self.group.table[0].state >= READY

    def _loop(self) -> None:
        with self._explaining():
            super()._loop()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raises what is behind an error of TensorFlow, such as a process that is lost."""
        try:
            yield
        except tf.errors.OpError as error:
            reason = self.stop_token.reason
            if isinstance(reason, (Finished, Interrupted)):
                raise StopRequested(reason) from error
            lost = None if reason else self.group.explain()
            if lost is None:
                raise
            raise lost from error

    def _leave(self) -> None:
        in_order = ("finished", "stopped") if self.loop.begun else ("finished",)
        self.group.leave(self._life.result not in in_order, self.loop.steps_taken)

    def _on_lost(self, error: BaseException) -> None:
        super()._on_lost(error)
        self._after(min(_LOST_SECONDS, self.group.timeout), self._end_process, error)

    def _end_process(self, error: BaseException) -> None:
        """The last resort, as where a step of TensorFlow 1.15 waits for a server that is gone."""
        if not self._over.is_set() and self._guard is not None:
            self.group.fail()
            self._guard.end_process(str(error).rstrip("."), code=1)

    def _on_left(self, who: str) -> None:
        signum = self.group.votes()
        logger.info(f"{who} has ended, so this worker does.")
        self.stop_token.request(Interrupted(signum) if signum else Finished())
        self.group.release()


class _WorkerSessionCreator(NewSessionCreator):
    """Makes the session of a worker on its server, and initialises what is this worker's."""

    def __init__(self, trainer: DistributedTrainerBase, given: NewSessionCreator) -> None:
        config = worker_config(trainer.cluster, given.config)
        super().__init__(trainer.server.target, config=config)
        self.computing, self._trainer = given.computing, trainer

    def _connect(self, graph: tf.Graph) -> tf.Session:
        return _WorkerSession(self._trainer.group, self.target, graph, self.config)

    def _own(self, variables: Sequence[tf.Variable]) -> List[tf.Variable]:
        chief = self._trainer.is_chief
        return [each for each in variables if chief or not is_on_server(each)]


class _WorkerSession(tf.Session):
    """A session that is left open where a process is lost: to close it would wait for that."""

    def __init__(self, group: Members, *args: Any) -> None:
        super().__init__(*args)
        self._group = group

    def close(self) -> None:
        if self._group.lost is None:
            super().close()

    def __del__(self) -> None:
        if self._group.lost is None:
            super().__del__()


def _own_server(config: Towers) -> tf.train.Server:
    """The server of this process in the cluster that it was started in."""
    cluster = Cluster.from_environment()
    if cluster is None:
        raise ValueError(
            "This process was started alone: start a group by `python -m tensorpack.launch --ps 1 "
            "--workers 2 script.py`, or give the tf.train.Server of this process."
        )
    return make_server(cluster, config.session_config if isinstance(config, TrainConfig) else None)


def _cluster_of(server: tf.train.Server) -> Cluster:
    """The cluster that a server was made for, and its own task."""
    definition = server.server_def
    jobs = {
        job.name: tuple(address for _, address in sorted(job.tasks.items()))
        for job in definition.cluster.job
    }
    if not jobs.get("ps") or not jobs.get("worker") or set(jobs) != {"ps", "worker"}:
        raise ValueError(
            "A trainer with parameter servers needs a tf.train.Server of a cluster with the jobs "
            f"'ps' and 'worker', got {', '.join(sorted(jobs))}."
        )
    return Cluster(jobs["worker"], jobs["ps"], definition.job_name, definition.task_index)


def _check_creator(creator: Any) -> NewSessionCreator:
    if type(creator) is not NewSessionCreator or creator.target or creator.graph is not None:
        raise ValueError(
            "A distributed trainer makes its session on its server, so it takes no session_creator "
            "of another kind: give TrainConfig(session_config=...)."
        )
    return creator
