"""Iterates a dataflow pass after pass, knows its position, and can begin at a saved one.

All input sources that take their data from Python use it, so they agree on what a pass is, when the
data ends, and what an empty dataflow means. It does not call `reset_state`.
"""

from contextlib import closing
from itertools import islice
from typing import Any, Callable, Dict, Generator, Optional

from tensorpack.dataflow import DataFlow, StateNotKept
from tensorpack.tfutils.callback import Callback
from tensorpack.utils import get_tqdm, logger

END_OF_PASS = object()  # follows the datapoints of a pass where passes are read one by one


class DataFlowEmpty(RuntimeError):
    """A whole pass over a dataflow gave no datapoint."""


def check_is_dataflow(ds: Any) -> DataFlow:
    """Returns `ds`; raises ValueError unless it is a `DataFlow`."""
    if not isinstance(ds, DataFlow):
        raise ValueError(
            f"An input source takes a DataFlow, got {type(ds).__name__}. Derive your class from "
            "DataFlow, or wrap a list in DataFromList and a generator in DataFromGenerator."
        )
    return ds


class FlowCursor:
    """The datapoints of one pass over a dataflow, then of the next one, and so on; iterated once.

    A pass that is left early (the iterator is closed, or the dataflow raises) is closed as well.

    A **position** is a dict::

        count     datapoints given since the very beginning, those of earlier runs included
        flow      the state of the dataflow; None if it keeps none
        seeded    whether the data came from a fixed seed
        callback  whether the dataflow is a `Callback` too, which saves its own state

    To reach a position, a dataflow without a state is iterated again from its seed.

    Args:
      ds: the dataflow, reset before the first datapoint is asked for.
      infinite: False to end after the first pass.
      pass_length: None to run one pass into the next. Otherwise `END_OF_PASS`, which does not
        count, follows each pass, which has at most so many datapoints (`math.inf` for all of them);
        positions are then taken between passes only, so none is made again to reach one.
    """

    def __init__(
        self, ds: DataFlow, infinite: bool = True, pass_length: Optional[float] = None
    ) -> None:
        self._ds, self._name, self._is_callback = ds, type(ds).__name__, _is_callback(ds)
        self._infinite, self._pass_length = infinite, pass_length
        self._start: Optional[Dict[str, Any]] = None
        self._check_stop: Callable[[], None] = lambda: None
        self._is_stateless = self._is_callback
        self._restarted = False
        self.count = 0  # as in a position
        self.num_in_pass = 0  # datapoints of the running pass

    def begin_at(self, position: Dict[str, Any], trainer: Any) -> None:
        """Sets the position at which the iteration begins, of a cursor over an equal dataflow.

        With `resume_strictly` of the trainer it is an error, not a warning, if the data cannot be
        made again. Its stop token ends the skipping of datapoints.
        """
        if position["callback"] and not self._is_callback:
            raise ValueError(
                f"The data came from a flow that was a callback as well, but {self._name} is not a "
                "callback: make the input as in the run that is resumed."
            )
        is_lost = self._num_to_skip(position) and not self._is_reproducible(position)
        if is_lost and trainer.resume_strictly:
            raise RuntimeError(
                f"{self._cannot_continue()} Or call tensorpack.utils.fix_rng_seed(N) first thing "
                "in the program, in the run that is saved and in the one that resumes it."
            )
        self._start, self._check_stop = position, trainer.stop_token.raise_if_requested
        self.count = position["count"]

    def begin(self) -> Generator[Any, None, None]:
        """Goes to the begin position, which may take long; returns an iterator from there on.

        ValueError if the state is of another dataflow; the iterator raises DataFlowEmpty.
        """
        start = self._start
        if start is not None and start["flow"] is not None:
            try:
                self._ds.load_state_dict(start["flow"])
            except StateNotKept as error:
                raise ValueError(
                    f"The input has a saved state, but {error} Make it as in the run that is "
                    "resumed."
                ) from error
            if self._pass_length is None or not start["count"]:
                return self._counted(self._passes(rest=True))
            rest = iter(self._ds)
            next(rest, None)  # what a pass has beyond its length was left out before the save, too
            getattr(rest, "close", lambda: None)()
            return self._counted(self._passes())
        source = self._passes()
        if start is not None and self._num_to_skip(start):
            if self._is_reproducible(start):
                self._skip(source, self._num_to_skip(start))
            else:
                logger.warning(f"{self._cannot_continue()} It starts over, with other data.")
        return self._counted(source)

    def restart(self, count: int) -> Generator[Any, None, None]:
        """Begins another pass, after datapoint number `count`; the iterator of `begin` was closed.

        A dataflow without a state cannot be brought to later positions by counting any more.
        """
        self.count, self._restarted = count, True
        return self._counted(self._passes(begun=iter(self._ds)))

    def flow_state(self) -> Optional[Dict[str, Any]]:
        """Returns the state of the dataflow after the last datapoint; None if it keeps none."""
        if not self._is_stateless:
            try:
                return self._ds.state_dict()
            except StateNotKept:
                self._is_stateless = True  # do not ask again after every datapoint
        return None

    def position(self) -> Dict[str, Any]:
        return self.position_of(self.count, self.flow_state())

    def position_of(self, count: int, flow_state: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        """Returns the position of a count and of what was `flow_state()` there."""
        return {
            "count": count,
            "flow": flow_state,
            "seeded": bool(self._ds.seeded) and not self._restarted,
            "callback": self._is_callback,
        }

    def start(self) -> Dict[str, Any]:
        """Returns the position at which it begins."""
        return self.position_of(0, None) if self._start is None else self._start

    def _counted(self, source: Generator[Any, None, None]) -> Generator[Any, None, None]:
        with closing(source):
            for datapoint in source:
                if datapoint is not END_OF_PASS:
                    self.count += 1
                yield datapoint

    def _passes(self, rest: bool = False, begun: Any = None) -> Generator[Any, None, None]:
        """Yields pass after pass; the first may be the rest of one, perhaps empty, or be begun."""
        while True:
            self.num_in_pass = 0
            one_pass, begun = begun or iter(self._ds), None
            try:
                for datapoint in one_pass:
                    self.num_in_pass += 1
                    yield datapoint
                    if self.num_in_pass == self._pass_length:
                        next(one_pass, None)  # what ends here knows it only when it is asked
                        break
            finally:
                if hasattr(one_pass, "close"):
                    one_pass.close()
            if not self.num_in_pass and not rest:
                raise DataFlowEmpty(
                    f"{self._name} ended without a single datapoint. Check what it reads from, "
                    "filters that drop everything, and generators, which can be iterated only once."
                )
            if self.num_in_pass and self._pass_length is not None:
                yield END_OF_PASS
            if not self._infinite:
                return
            rest = False

    def _skip(self, source: Generator[Any, None, None], count: int) -> None:
        logger.warning(
            f"{self._name} keeps no state: its first {count} datapoints are made again from its "
            "seed. Give it state_dict() and load_state_dict() to save the time."
        )
        try:
            with get_tqdm(total=count, desc="Skipping data") as bar:
                for _ in islice(source, count):
                    bar.update()
                    self._check_stop()
        except BaseException:
            source.close()
            raise

    def _num_to_skip(self, position: Dict[str, Any]) -> int:
        """How many datapoints come before a position that has no state of the dataflow."""
        is_begin = self._is_callback or self._pass_length is not None
        return 0 if is_begin else position["count"]

    def _is_reproducible(self, position: Dict[str, Any]) -> bool:
        has_state = position["flow"] is not None or self._is_callback
        return bool(has_state or (position["seeded"] and self._ds.seeded))

    def _cannot_continue(self) -> str:
        try:
            self._ds.state_dict()
            why = "There was no state when the run was saved."
        except StateNotKept as error:
            why = str(error)
        return (
            f"{self._name} cannot continue where it was, and its data cannot be made again, "
            f"because no seed was fixed or it comes from outside of the program. {why}"
        )


def _is_callback(ds: Any) -> bool:
    """Whether a dataflow, or one that it is made from, is a callback, which saves its own state."""
    return isinstance(ds, Callback) or ds is not None and _is_callback(getattr(ds, "ds", None))
