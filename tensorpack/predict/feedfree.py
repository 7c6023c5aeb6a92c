"""A predictor that is fed by an input source."""

from contextlib import ExitStack, suppress
from typing import Any, List, Sequence

import numpy as np

from tensorpack.callbacks.group import Callbacks
from tensorpack.callbacks.queue_runners import StartQueueRunners
from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import InputSource
from tensorpack.tfutils.callback import TrainerContract
from tensorpack.tfutils.hooked_session import HookedSession
from tensorpack.tfutils.queues import QueueDrain, all_queues
from tensorpack.utils.checks import check_kind
from tensorpack.utils.stopping import EndOfData, Failed, Finished, StopRequested, StopToken

from .base import PredictorBase
from .config import PredictConfig
from .inference import build_tower, close_session, graph_of, open_session


class FeedfreePredictor(PredictorBase):
    """Predicts with the data of an input source; called without arguments, by one thread at a time.

    Each call takes the next datapoint. Threads and processes of the source run until `close`, or
    the end of the `with` block.

    Args:
      config: what to predict, without `return_input`; `input_names` are not used.
      input_source: an `InputSource` that is not set up, such as `QueueInput(dataflow)`.
    """

    def __init__(self, config: PredictConfig, input_source: InputSource) -> None:
        if config.return_input:
            raise ValueError(
                "FeedfreePredictor is given no inputs to return: put their names into "
                "PredictConfig(output_names=...) instead of return_input=True."
            )
        check_kind("input_source", input_source, InputSource, " such as QueueInput(dataflow)")
        self.graph = graph_of(config)
        self._run = TrainerContract()
        self._run.stop_token = StopToken()
        self._closed = False
        with ExitStack() as on_error, self.graph.as_default():
            on_error.callback(input_source.release)
            earlier, runners = all_queues(self.graph), StartQueueRunners()
            runners.run_elsewhere = self.graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
            callbacks = Callbacks([runners, *input_source.setup(config.input_signature)])
            inputs, self._outputs = build_tower(config, "", input_source.get_input_tensors)
            callbacks.setup_graph(self._run)
            queues = [queue for queue in all_queues(self.graph) if queue not in earlier]
            self.sess = self._run.sess = open_session(config, inputs, self._outputs)
            on_error.callback(close_session, config.session_creator, self.sess)
            on_error.callback(self._end, callbacks, queues)
            self._hooked_sess = HookedSession(self.sess, callbacks.get_hooks(), callbacks.run_along)
            # Data that has ended already, or an error of it, is that of a call.
            with self.sess.as_default(), suppress(StopRequested):
                callbacks.before_train()
            self._on_close = on_error.pop_all()

    def close(self) -> None:
        """Stops and joins what gives the data, and closes the session. May be called again."""
        self._closed = True
        self._on_close.close()

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        """Returns the outputs for the next data.

        Raises:
          RuntimeError: the predictor is closed.
          tf.errors.OutOfRangeError: there is no more data.
        """
        if inputs:
            raise ValueError(
                f"FeedfreePredictor takes its inputs from its input source: call it without "
                f"arguments, not with {len(inputs)}."
            )
        if self._closed:
            raise RuntimeError("This FeedfreePredictor is closed: make a new one.")
        try:
            return self._hooked_sess.run(self._outputs)
        except (StopRequested, tf.errors.OutOfRangeError, tf.errors.CancelledError):
            reason = self._run.stop_token.reason
            if not isinstance(reason, (Failed, EndOfData)):
                raise
        if isinstance(reason, Failed):
            raise reason.error
        raise tf.errors.OutOfRangeError(None, None, f"{reason.where} gave its last datapoint.")

    def _end(self, callbacks: Callbacks, queues: Sequence[Any]) -> None:
        self._run.stop_token.request(Finished())
        with self.graph.as_default(), self.sess.as_default(), QueueDrain(queues, self.sess):
            callbacks.after_train()

    def __enter__(self) -> "FeedfreePredictor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
