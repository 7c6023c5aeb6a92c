"""An input that reads a `tf.data.Dataset`, or a dataflow as one."""

import threading
from contextlib import closing
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFlowTerminated
from tensorpack.tfutils.callback import Callback
from tensorpack.utils.checks import as_list
from tensorpack.utils.stopping import Failed, StopRequested

from .base import FeedfreeInput, PositionNotKept
from .check import DatapointChecker
from .cursor import FlowCursor, check_is_dataflow
from .enqueue_thread import private


class TFDatasetInput(FeedfreeInput):
    """The elements of a `tf.data.Dataset`, one for each step.

    The dataset begins from the start before the training, and when `reset_state` is called. If it
    ends, so does the training, with `DataEnded`: call `repeat()` on it. It is made in the graph
    that is trained. `tf.data` cannot be interrupted: where a step waits for an element for long,
    the run ends only `Trainer.stop_grace` seconds after a signal.

    A dataflow is read by `tf.data`, pass after pass, and checked as by `DatapointChecker`; an error
    in it ends the run as it is. Prefer `QueueInput`, which makes its datapoints ahead. `tf.data`
    does not say where it is, so a resumed run starts over, with a warning, and `resume="must"`
    refuses.

    Args:
      dataset: a `DataFlow`; or a `tf.data.Dataset` whose elements are tuples of the inputs of the
        model, or dictionaries by their names, or the only one.
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        self._flow = _FlowReader(dataset) if isinstance(dataset, DataFlow) else None
        self._dataset = dataset

    @staticmethod
    def dataflow_to_dataset(df: DataFlow, types: Sequence[tf.DType]) -> tf.data.Dataset:
        """Returns a dataset of one pass over a dataflow, which is reset here, with these dtypes.

        The caller closes the dataflow when the dataset is not used any more, if it has processes,
        threads or connections.
        """
        types = as_list("dataflow_to_dataset", "types", types)
        check_is_dataflow(df).reset_state()
        return tf.data.Dataset.from_generator(lambda: map(tuple, df), tuple(types))

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        self._specs = list(input_signature)
        with tf.device("/cpu:0"), self.cached_name_scope():
            cut = self.cut_datapoints
            dataset = self._flow.dataset(self._specs, cut) if self._flow else self._dataset
            self._iterator = tf.data.make_initializable_iterator(dataset)

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        with tf.device("/cpu:0"):
            element = self._iterator.get_next(name="next_element")
        if isinstance(element, dict):
            return [element[spec.name] for spec in self._specs]
        return list(element) if isinstance(element, (list, tuple)) else [element]

    def _get_callbacks(self) -> List[Callback]:
        position = PositionNotKept(
            "TFDatasetInput cannot continue where it was: tf.data does not say how far it is.",
            "Use a QueueInput of a DataFlow.",
        )
        return [position, self._flow] if self._flow else [position]

    def _read_by_pass(self) -> Optional[int]:
        if self._flow is not None:
            self._flow.repeat = False
        return super()._read_by_pass()

    def _reset_state(self) -> None:
        if self._flow is not None:
            self._flow.begin()
        tf.get_default_session().run(self._iterator.initializer)

    def _release(self) -> None:
        if self._flow is not None:
            self._flow.close()

    _unblock = _release

    def _size(self) -> int:
        return super()._size() if self._flow is None else len(self._dataset)


class _FlowReader(Callback):
    """Gives the datapoints of a dataflow to `tf.data`, which asks for them on threads of its own.

    An error in it ends the run, as it ends the dataset. `repeat` says if one pass follows another.
    """

    def __init__(self, ds: DataFlow) -> None:
        self.repeat = True
        self._on_error: Callable[[Exception], Any] = lambda error: None
        self._ds = ds
        self._is_reset = False
        self._closed = threading.Event()

    def dataset(self, signature: Sequence[tf.TensorSpec], cut: bool) -> tf.data.Dataset:
        """Returns a dataset of checked datapoints; may start processes."""
        self._ds.start_processes()  # while there is no session yet, see there
        self._check = DatapointChecker(signature, cut)
        types = tuple(spec.dtype for spec in signature)
        shapes = tuple(spec.shape for spec in signature)
        return tf.data.Dataset.from_generator(self._datapoints, types, shapes)

    def begin(self) -> None:
        """Prepares the dataflow for reading, from the start."""
        self._closed.clear()
        if not self._is_reset:  # a dataflow is reset once per process
            self._is_reset = True
            self._ds.reset_state()

    def close(self) -> None:
        """Ends the dataset, and closes the dataflow."""
        self._closed.set()
        self._ds.close()

    def _datapoints(self) -> Iterator[Tuple[Any, ...]]:
        try:
            with closing(FlowCursor(self._ds, self.repeat).begin()) as datapoints:
                for datapoint in datapoints:
                    if self._closed.is_set():
                        return
                    yield tuple(private(array) for array in self._check(datapoint))
        except StopRequested:
            pass  # the dataflow looked at the stop token of this run
        except Exception as error:
            if not (self._closed.is_set() and isinstance(error, DataFlowTerminated)):
                self._on_error(error)

    def _setup_graph(self) -> None:
        token = self.trainer.stop_token
        self._on_error = lambda error: token.request(Failed(error, "TFDatasetInput"))

    def _after_train(self) -> None:
        self.close()
