"""Runs the queue runners of the graph during the training.

TensorFlow's own `tf.train.start_queue_runners` cancels what waits on open queues at the end, which
prints warnings, and a thread without a `tf.train.Coordinator` fails unheard.
"""

from typing import Any, Dict, List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.base import start_over
from tensorpack.tfutils.prepared import prepare
from tensorpack.tfutils.queues import QueueControl, control_of
from tensorpack.utils.concurrency import StoppableThread
from tensorpack.utils.stopping import Failed, StopToken

from .concurrency import StartProcOrThread

_CLOSED = (tf.errors.CancelledError, RuntimeError)


class StartQueueRunners(StartProcOrThread):
    """Runs each `tf.train.QueueRunner` in the graph's collection `QUEUE_RUNNERS`.

    `tf.train.string_input_producer`, `tf.train.shuffle_batch` and the like put theirs there, and
    `tf.train.add_queue_runner` adds one. Every trainer has this callback in front of those of the
    user, so a script need not call `tf.train.start_queue_runners`.

    Each enqueue op has a thread, which runs it again and again. An error of a thread ends the run
    and is raised by `train()`. Where an op finds that what it reads is at its end
    (`queue_closed_exception_types` of the runner), its thread leaves; the last one of a queue
    closes it, and the run ends with `DataEnded` when a step finds the queue empty.

    What waits in the queues is not saved: a resumed run reads from the start, with a warning, and
    `resume="must"` refuses. A deterministic run refuses queue runners.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.run_elsewhere: Sequence[Any] = []  # runners that something else runs

    def _before_train(self) -> None:
        collected = self.graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        runners = [runner for runner in collected if runner not in self.run_elsewhere]
        if not runners:
            return
        self._names = "the queue runners of " + ", ".join(runner.name for runner in runners)
        if self.trainer.deterministic:
            raise ValueError(
                f"A deterministic run makes the data of a step when that step begins, and "
                f"{self._names} make it ahead: read the data in a DataFlow instead."
            )
        sess, token = tf.get_default_session(), self.trainer.stop_token
        peers: Dict[QueueControl, List[_Producer]] = {}
        for runner in runners:
            of_queue = peers.setdefault(control_of(runner.queue), [])
            of_queue += [_Producer(runner, op, sess, token, of_queue) for op in runner.enqueue_ops]
        self._threads = [thread for of_queue in peers.values() for thread in of_queue]
        super()._before_train()

    def state_dict(self) -> Dict[str, Any]:
        runners = self.graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS) if self.graph else []
        return {"queue_runners": len(runners)} if runners else {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Warns; RuntimeError if the run is to be resumed strictly."""
        start_over(
            self.trainer,
            "The data of queue runners cannot continue where it was: what they had read is not "
            "saved.",
            "Read it in a DataFlow.",
        )


class _Producer(StoppableThread):
    """Runs an enqueue op of a queue runner until it is stopped, or its data ends; the last of those
    that fill one queue, `peers`, closes it.
    """

    def __init__(
        self, runner: Any, op: Any, sess: tf.Session, token: StopToken, peers: List["_Producer"]
    ) -> None:
        super().__init__()
        self.daemon = True
        self.name = f"QueueRunner {op.name}"
        self._control = control_of(runner.queue)
        self._ends = runner.queue_closed_exception_types
        self._enqueue = prepare(sess, [op], waits=True).call
        self._sess, self._token, self._peers = sess, token, peers

    def run(self) -> None:
        try:
            while not self.stopped():
                self._enqueue()
        except self._ends:
            self._control.ended = True
        except Exception as error:
            if not self.stopped() or not isinstance(error, _CLOSED):
                explained = error
                if isinstance(error, _CLOSED):
                    explained = self._control.closed_for(self.name)
                    explained.__cause__ = error
                # Before the queue is closed: a step that finds it so looks for the reason.
                self._token.request(Failed(explained, self.name))
        self._peers.remove(self)
        if not self._peers:
            self._control.close(self._sess)
