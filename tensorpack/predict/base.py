"""Predictors: functions from input arrays to output arrays."""

import threading
from concurrent.futures import Future
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.prepared import pick, prepare

from .config import PredictConfig
from .inference import build_tower, close_session, graph_of, open_session


class PredictorBase:
    """A callable that takes one array per input and returns a list with one array per output.

    Call it as `predictor(a, b)` or, as in 2017, with all inputs in one list: `predictor([a, b])`.

    Attributes:
      return_input: whether calls return `(inputs, outputs)` instead of `outputs`.
    """

    return_input = False

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0]) if self._is_datapoint(inputs[0]) else inputs
        outputs = self._do_call(inputs)
        return (list(inputs), outputs) if self.return_input else outputs

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        """Override to compute the outputs from one array per input."""
        raise NotImplementedError(f"{type(self).__name__} must override _do_call().")

    def _is_datapoint(self, argument: Sequence[Any]) -> bool:
        """Returns whether the only argument of a call is a list of all inputs, not the only input.

        Override it where the inputs are known.
        """
        return all(isinstance(item, np.ndarray) for item in argument)


class AsyncPredictorBase(PredictorBase):
    """A predictor that takes one datapoint at a time and returns a future of its outputs.

    Used like this::

        with predictor:                              # start(), and close() at the end
            future = predictor.put_task(datapoint)   # on any thread, any number of times
            outputs = future.result()                # raises what went wrong

    A call, `predictor(a, b)`, puts a task and waits for it.
    """

    def start(self) -> None:
        """Override to start what computes; called once."""
        raise NotImplementedError(f"{type(self).__name__} must override start().")

    def put_task(
        self, dp: Sequence[Any], callback: Optional[Callable[[Future], Any]] = None
    ) -> Future:
        """Override to take a request, of one array per input; returns the future of a list with one
        array per output. `callback` is called with it, once it is done, on the thread that has
        computed it.
        """
        raise NotImplementedError(f"{type(self).__name__} must override put_task().")

    def close(self) -> None:
        """Override to stop and join what `start` has started."""

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        return self.put_task(inputs).result()

    def __enter__(self) -> "AsyncPredictorBase":
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class OnlinePredictor(PredictorBase):
    """Predicts in a session that it does not own, such as that of a trainer.

    Several threads may call it at once; a call reads the current values of the variables. Arguments
    are checked as the data of a trainer is: float64 becomes float32, of floats only whole ones int.

    With several inputs, a single list is taken for all of them. With one, `predictor([a])` is taken
    for `predictor(a)` if `a` has as many dimensions as the input, and for a batch otherwise; where
    the input has an unknown number of dimensions, if `a` is an array.

    Args:
      input_tensors: tensors to feed the arguments of a call to.
      output_tensors: tensors whose values a call returns.
      return_input: whether calls return `(inputs, outputs)`.
      sess: the session; by default that of `bind`, or the default session at the first call.
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
        """Runs all further calls in `sess`; returns the function that runs them."""
        with self._lock:
            self.sess = sess
            call, (where,), _ = prepare(sess, [self.output_tensors], self.input_tensors)
            self._run = lambda *arrays: pick(call(*arrays), where)
            return self._run

    def _is_datapoint(self, argument: Sequence[Any]) -> bool:
        if len(self.input_tensors) != 1:
            return True
        if len(argument) != 1:
            return False
        ndims = self.input_tensors[0].shape.ndims
        is_array = isinstance(argument[0], np.ndarray)
        return is_array if ndims is None else np.ndim(argument[0]) == ndims

    def _do_call(self, inputs: Sequence[Any]) -> List[np.ndarray]:
        check_count(inputs, self.input_tensors)
        run = self._run
        if run is None:
            sess = self.sess or tf.get_default_session()
            if sess is None:
                raise RuntimeError(
                    "This predictor has no session yet: call it after the training has started, "
                    "under `with sess.as_default():`, or pass a session to bind()."
                )
            run = self.bind(sess)
        return run(*inputs)


class OfflinePredictor(OnlinePredictor):
    """Builds a model for inference and loads its weights, in its own graph and session.

    Args:
      config: what to build, and where its weights come from.

    Raises:
      ValueError: the outputs need a weight that `config.session_init` has no value for.
    """

    def __init__(self, config: PredictConfig) -> None:
        with graph_of(config).as_default():
            self._open(config, *build_tower(config))

    def _open(
        self, config: PredictConfig, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> None:
        """Predicts with what was built in the default graph."""
        self._creator, self.graph = config.session_creator, tf.get_default_graph()
        super().__init__(inputs, outputs, config.return_input)
        self.bind(open_session(config, inputs, outputs))

    def close(self) -> None:
        """Closes the predictor's session, unless it is that of a `ReuseSessionCreator`."""
        close_session(self._creator, self.sess)

    def __enter__(self) -> "OfflinePredictor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


get_predict_func = OfflinePredictor  # its name of 0.1.9 and 0.2.0


def check_count(arrays: Sequence[Any], tensors: Sequence[tf.Tensor]) -> None:
    """Raises ValueError unless there is one array for each of the tensors."""
    if len(arrays) != len(tensors):
        names = ", ".join(tensor.name for tensor in tensors)
        raise ValueError(
            f"This predictor takes {len(tensors)} arrays ({names}), got {len(arrays)}."
        )
