"""Predictors: callables from input arrays to output arrays, over a session that trains or over one
of their own.
"""

import threading
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import PlaceholderInput
from tensorpack.tfutils.prepared import pick, prepare
from tensorpack.tfutils.tower import TowerContext

from .config import PredictConfig

__all__ = ["OfflinePredictor", "OnlinePredictor", "PredictorBase"]


class PredictorBase:
    """A callable that takes one array for each input and returns the list of the outputs' arrays.

    `predictor(a, b)`; in the spelling of 2017 also `predictor([a, b])`. For a predictor of one
    input the argument is the array itself, or a list (not an array) that holds nothing but that
    array.

    Attributes:
      return_input: whether calls return `(inputs, outputs)` instead of the outputs.
    """

    return_input = False

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) and _holds_arrays(inputs[0]):
            inputs = tuple(inputs[0])
        outputs = self._do_call(inputs)
        return (list(inputs), outputs) if self.return_input else outputs

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        """Override to compute the outputs from one array for each input."""
        raise NotImplementedError(f"{type(self).__name__} must override _do_call().")


def _holds_arrays(datapoint: Sequence[Any]) -> bool:
    return all(isinstance(each, np.ndarray) for each in datapoint)


class OnlinePredictor(PredictorBase):
    """Predicts with tensors of a graph whose session somebody else owns, such as a trainer.

    May be called from several threads at once: variables are read as the training has left them at
    that moment.

    Args:
      input_tensors: what the arguments of a call are fed to.
      output_tensors: what a call returns.
      return_input: whether calls return `(inputs, outputs)`.
      sess: the session; by default the one that is the default at the first call, or that `bind` is
        given.
    """

    def __init__(
        self,
        input_tensors: Sequence[tf.Tensor],
        output_tensors: Sequence[tf.Tensor],
        return_input: bool = False,
        sess: Optional[tf.Session] = None,
    ) -> None:
        self.return_input = return_input
        self.input_tensors = list(input_tensors)
        self.output_tensors = list(output_tensors)
        self._lock = threading.Lock()
        self._run: Optional[Callable[..., List[np.ndarray]]] = None
        self.sess = sess

    def bind(self, sess: tf.Session) -> Callable[..., List[np.ndarray]]:
        """Makes all further calls run in `sess`; returns the function that runs them."""
        with self._lock:
            self.sess = sess
            call, (where,) = prepare(sess, [self.output_tensors], self.input_tensors)
            self._run = lambda *arrays: pick(call(*arrays), where)
            return self._run

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        if len(inputs) != len(self.input_tensors):
            names = ", ".join(each.name for each in self.input_tensors)
            raise ValueError(
                f"This predictor takes {len(self.input_tensors)} arrays ({names}), got "
                f"{len(inputs)}."
            )
        run = self._run or self._bind_default_session()
        return run(*inputs)

    def _bind_default_session(self) -> Callable[..., List[np.ndarray]]:
        sess = self.sess or tf.get_default_session()
        if sess is None:
            raise RuntimeError(
                "This predictor has no session yet: call it once the training has begun, under "
                "`with "
                "sess.as_default():`, or give it one by bind()."
            )
        return self.bind(sess)


class OfflinePredictor(OnlinePredictor):
    """Builds a model for inference, loads its weights and predicts, in a graph and session of its
    own.

    Args:
      config: what to build and where its weights come from.
    """

    def __init__(self, config: PredictConfig) -> None:
        self.graph = tf.Graph() if config.create_graph else tf.get_default_graph()
        with self.graph.as_default():
            source = PlaceholderInput()
            source.setup(config.input_signature)
            with TowerContext("", is_training=False), config.computing.scope():
                config.tower_func(*source.get_input_tensors())
            handle = config.tower_func.towers[-1]
            inputs, outputs = (
                handle.get_tensors(config.input_names),
                handle.get_tensors(config.output_names),
            )
            sess = config.session_creator.create_session()
            try:
                config.session_init.init(sess)
                super().__init__(inputs, outputs, return_input=config.return_input, sess=sess)
                self.bind(sess)
            except BaseException:
                sess.close()
                raise

    def close(self) -> None:
        """Closes the predictor's session."""
        self.sess.close()

    def __enter__(self) -> "OfflinePredictor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
