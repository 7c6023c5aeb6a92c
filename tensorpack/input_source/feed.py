"""Inputs through placeholders: fed by the caller, or from a dataflow."""

import math
from typing import Any, Callable, Dict, Generator, List, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.hooked_session import CheckedFeed
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.utils.stopping import EndOfData

from .base import InputSource
from .check import DatapointChecker
from .cursor import END_OF_PASS, FlowCursor, check_is_dataflow


def make_placeholders(signature: Sequence[tf.TensorSpec], prefix: str = "") -> List[tf.Tensor]:
    """Returns a placeholder for each spec, under `prefix` and the name of the spec."""
    return [tf.placeholder(spec.dtype, spec.shape, prefix + spec.name) for spec in signature]


class PlaceholderInput(InputSource):
    """Placeholders alone, named like the model's inputs, with a prefix."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self._prefix = prefix

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        self._placeholders = make_placeholders(input_signature, self._prefix)

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        return self._placeholders


class FeedInput(InputSource):
    """Placeholders that are fed from a dataflow.

    Each run of the trainer's hooked session takes the next datapoint. Slower than a `QueueInput`.

    Args:
      ds: the dataflow. It is checked against the model's inputs, see `DatapointChecker`.
      infinite: whether to repeat it when it ends. If not, a step that finds no datapoint ends the
        training with the reason `EndOfData`.

    Attributes:
      cursor: iterates the dataflow; a resumed run tells it where to begin.
    """

    def __init__(self, ds: DataFlow, infinite: bool = True) -> None:
        super().__init__()
        self.ds = check_is_dataflow(ds)
        self._infinite = infinite
        self._pass_length: Optional[float] = None
        self._reset_done = False
        self._check: Callable[[Any], Sequence[Any]] = list
        self.cursor = FlowCursor(ds, infinite)
        self._datapoints: Optional[Generator[Any, None, None]] = None
        self._feed = CheckedFeed()
        # After the last datapoint: how many there were, and the state of the flow. The next one may
        # be cut off, and a pass that is cut off does not count.
        self._last_fed: Tuple[int, Any] = (0, None)

    def next_feed(self) -> Dict[tf.Tensor, Any]:
        """Takes the next datapoint and returns it as a feed; StopIteration at the end."""
        return dict(self.feed_of_step())

    def feed_of_step(self) -> CheckedFeed:
        """Does the same, with one object each time, which a session looks at only once."""
        datapoint = self._next_datapoint()
        self._record_position()
        self._feed.update(zip(self._placeholders, self._check(datapoint)))
        return self._feed

    def _next_datapoint(self) -> Any:
        if self._datapoints is None:
            name = type(self).__name__
            raise RuntimeError(f"{name} gives data after setup() and reset_state().")
        datapoint = next(self._datapoints)
        if datapoint is END_OF_PASS:
            raise StopIteration
        return datapoint

    def _record_position(self) -> None:
        if not self.by_pass:
            self._last_fed = self.cursor.count, self.cursor.flow_state()

    @property
    def by_pass(self) -> bool:
        """Whether the data is read pass by pass, see `read_by_pass`."""
        return self._pass_length is not None

    def close(self) -> None:
        """Leaves the running pass over the dataflow; `reset_state` begins a new one."""
        if self._datapoints is not None:
            self._datapoints.close()
            self._datapoints = None

    def end_wait(self) -> None:
        """Ends the wait of `next_feed` for the dataflow; called on another thread."""
        self.ds.close()

    def position(self) -> Dict[str, Any]:
        """Returns the position after the last datapoint that was fed, see `FlowCursor`."""
        if self._datapoints is not None:
            cursor = self.cursor
            return cursor.position() if self.by_pass else cursor.position_of(*self._last_fed)
        if self._reset_done:
            raise RuntimeError(
                "FeedInput has closed its dataflow: save the state before the training is over."
            )
        return self.cursor.start()

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        self.ds.start_processes()  # while there is no session yet, see there
        self._make_placeholders(input_signature)
        self._check = DatapointChecker(input_signature, self.cut_datapoints)

    def _make_placeholders(self, input_signature: List[tf.TensorSpec]) -> None:
        self._placeholders = make_placeholders(input_signature)

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        return self._placeholders

    def _get_callbacks(self) -> List[Callback]:
        return [_Feeder(self)]

    def _release(self) -> None:
        try:
            self.close()
        finally:
            self.ds.close()

    def _reset_state(self) -> None:
        self.close()
        if self._reset_done:
            self.cursor = FlowCursor(self.ds, self._infinite, self._pass_length)
        else:  # a dataflow is reset once per process
            self.ds.reset_state()
            self._reset_done = True
        self._datapoints = self.cursor.begin()
        self._record_position()

    def _read_by_pass(self) -> Optional[int]:
        length = super()._read_by_pass()
        self._infinite, self._pass_length = True, math.inf if length is None else length
        self.cursor = FlowCursor(self.ds, True, self._pass_length)
        return None

    def _begin_pass(self) -> None:
        """Does nothing: the next pass follows."""

    def _size(self) -> int:
        return len(self.ds)


class DataParallelFeedInput(FeedInput):
    """As `FeedInput`, for several towers: in each step each of them is fed a datapoint of its own.

    The data ends, and a resumed run continues, between steps. It serves no validation.

    Args:
      ds: as in `FeedInput`; it is repeated when it ends.
      tower_names: names of the towers, all of which take their inputs from here, such as
        `["tower0", "tower1"]`.
    """

    def __init__(self, ds: DataFlow, tower_names: Sequence[str]) -> None:
        super().__init__(ds)
        self._by_tower: Dict[str, List[tf.Tensor]] = {name: [] for name in tower_names}

    def next_feed(self, cnt: int = 1) -> Dict[tf.Tensor, Any]:
        """Takes a datapoint for each of the first `cnt` towers and returns them as a feed."""
        towers = list(self._by_tower.items())[:cnt]
        datapoints = [self._next_datapoint() for _ in towers]
        self._record_position()
        feed: Dict[tf.Tensor, Any] = {}
        for (name, placeholders), datapoint in zip(towers, datapoints):
            if not placeholders:
                raise RuntimeError(
                    f"DataParallelFeedInput has data for tower {name!r}, but there "
                    "is no such tower: name those that are built."
                )
            feed.update(zip(placeholders, self._check(datapoint)))
        return feed

    def feed_of_step(self) -> CheckedFeed:
        self._feed.update(self.next_feed(len(self._by_tower)))
        return self._feed

    def _make_placeholders(self, input_signature: List[tf.TensorSpec]) -> None:
        self._specs = input_signature  # each tower makes its own, in its name scope

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        name = get_current_tower_context().ns_name
        if not self._by_tower[name]:
            self._by_tower[name] = make_placeholders(self._specs)
        return self._by_tower[name]

    def _read_by_pass(self) -> Optional[int]:
        raise ValueError("A pass may end within a step: validate with the DataFlow itself.")

    def _size(self) -> int:
        return len(self.ds) // len(self._by_tower)


class _Feeder(Callback):
    """Feeds each run of the hooked session."""

    def __init__(self, source: FeedInput) -> None:
        self._source = source
        self._request = tf.train.SessionRunArgs(None, source._feed)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        source = self._source
        try:
            self.trainer.interruptible(source.feed_of_step, source.end_wait)
        except StopIteration:
            if source.by_pass:
                raise tf.errors.OutOfRangeError(None, None, "The pass is over.") from None
            self.trainer.stop_token.request(EndOfData(type(source).__name__))
            self.trainer.stop_token.raise_if_requested()
            raise
        except tf.errors.OutOfRangeError as error:  # of the user, and not the end of the pass
            raise RuntimeError(f"{type(source.ds).__name__} failed with {error!r}") from error
        return self._request

    def state_dict(self) -> Dict[str, Any]:
        return self._source.position()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._source.cursor.begin_at(state, self.trainer)

    def _after_train(self) -> None:
        self._source.release()
