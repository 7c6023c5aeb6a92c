"""Monitors receive the scalars, images and summaries of a run; a group passes them on to all."""

import time
from array import array
from difflib import get_close_matches
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import log_once
from tensorpack.utils.checks import check_kind
from tensorpack.utils.legacy_names import give_both_names

from ._images import as_images, image_summary
from .base import Callback

__all__ = ["LastValues", "MonitorBase", "Monitors", "ScalarRecord", "TrainingMonitor"]

_SUFFIX = "-summary"  # appended to the names of summaries by older models


class ScalarRecord(float):
    """One value of a scalar, and when it was put.

    It is a number, as in the histories of 2017, and like a tuple `(global_step, value)`, as in
    later ones: it can be unpacked, indexed, and compared with a tuple. A numpy array of records has
    the values.
    """

    global_step: int

    def __new__(cls, global_step: int, value: float) -> "ScalarRecord":
        self = super().__new__(cls, value)
        self.global_step = global_step
        return self

    def __getnewargs__(self) -> Tuple[int, float]:  # type: ignore[override]
        return self.global_step, self.value

    @property
    def value(self) -> float:
        """The value alone."""
        return float(self)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.global_step, self.value))

    # It has no length: numpy before 1.19 would take it for a sequence.
    def __getitem__(self, index: Any) -> Any:
        return (self.global_step, self.value)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == other if isinstance(other, tuple) else float(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # equal to a number and to a tuple: no hash suits both

    def __repr__(self) -> str:
        return f"ScalarRecord(global_step={self.global_step}, value={self.value!r})"


class _Records(NamedTuple):
    """All values of a scalar, a few bytes each: some are put in every step."""

    steps: "array[int]"
    values: "array[float]"


class MonitorBase(Callback):
    """Receives what callbacks and the graph report, through the methods named `process...`.

    Every scalar comes twice: to `process_scalar` as a number, and in a `tf.Summary` to
    `process_summary`. A monitor overrides the one that suits it. Each method also has its name of
    2017, with `put` instead of `process`, by which it can be called and overridden too.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in "", "_event", "_image", "_scalar", "_summary":
            give_both_names(cls, f"process{name}", f"put{name}")

    def process(self, name: str, val: Any) -> None:
        """Receives a scalar; called by the default `process_scalar`."""

    def process_scalar(self, name: str, val: float) -> None:
        """Receives a scalar."""
        self.process(name, val)

    def process_image(self, name: str, val: np.ndarray) -> None:
        """Receives images, uint8 `[N, H, W, C]`."""

    def process_summary(self, summary: tf.Summary) -> None:
        """Receives a summary, with the tags that the other monitors see as well."""

    def process_event(self, evt: tf.Event) -> None:
        """Receives an event whose step and time are set."""

    put, put_scalar, put_image = process, process_scalar, process_image
    put_summary, put_event = process_summary, process_event


TrainingMonitor = MonitorBase  # the name of 2017


class LastValues(MonitorBase):
    """Keeps the last value of each scalar, until it takes them out of `_values`."""

    def __init__(self) -> None:
        self._values: Dict[str, float] = {}

    def process_scalar(self, name: str, val: float) -> None:
        self._values[name] = val

    def state_dict(self) -> Dict[str, Any]:
        return {"values": dict(self._values)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        for name, val in state["values"].items():
            self.process_scalar(name, val)


class Monitors(Callback):
    """All monitors of a run, as `trainer.monitors`; remembers every scalar, those of an earlier run
    that this one resumes included.

    Use it on the main thread. The monitors, which receive everything in their order, are callbacks
    themselves and come before the group in the list of callbacks.
    """

    _chief_only = False

    def __init__(self, monitors: Sequence[MonitorBase]) -> None:
        self._monitors = [check_kind("Each monitor", item, MonitorBase) for item in monitors]
        self._history: Dict[str, _Records] = {}

    def _setup_graph(self) -> None:
        if not self.trainer.is_chief:
            self._monitors = [monitor for monitor in self._monitors if not monitor.chief_only]

    def put_scalar(self, name: str, val: Any) -> None:
        """Passes a number, or an array with one element, to the monitors, under this name."""
        number = np.asarray(val)
        if number.size != 1 or number.dtype.kind not in "biuf":
            raise TypeError(f"The scalar {name!r} must be one number, got {val!r}.")
        value = float(number.item())
        summary = tf.Summary(value=[tf.Summary.Value(tag=name, simple_value=value)])
        for monitor in self._monitors:
            monitor.process_summary(summary)
        self._put_value(name, value)

    def put_summary(self, summary: Union[tf.Summary, bytes]) -> None:
        """Passes a summary, or its serialized form, to the monitors, and the numbers in it also as
        scalars.

        The name of a tower in front of a tag, and `-summary` at its end, are taken away before.
        """
        if isinstance(summary, bytes):
            summary = tf.Summary.FromString(summary)
        for value in check_kind("summary", summary, tf.Summary).value:
            value.tag = _clean_tag(value.tag)
        for monitor in self._monitors:
            monitor.process_summary(summary)
        for value in summary.value:
            if value.WhichOneof("value") == "simple_value":
                self._put_value(value.tag, float(value.simple_value))

    def put_image(self, name: str, val: np.ndarray) -> None:
        """Passes one or several images to the monitors, under the name as it is: `[H, W]`,
        `[H, W, C]` or `[N, H, W, C]` with C of 1, 3 (RGB) or 4. Values are clipped to [0, 255].
        """
        images = as_images(name, val)
        summary = image_summary(name, images)
        for monitor in self._monitors:
            monitor.process_image(name, images)
            monitor.process_summary(summary)

    def put_event(self, evt: tf.Event) -> None:
        """Passes an event to the monitors; its step and time are set here."""
        check_kind("evt", evt, tf.Event)
        evt.step = self.global_step
        evt.wall_time = time.time()
        for monitor in self._monitors:
            monitor.process_event(evt)

    def get_latest(self, name: str) -> float:
        """Returns the last value of a scalar; it is a KeyError if it has none yet."""
        return self.latest_record(name).value

    def latest_record(self, name: str) -> ScalarRecord:
        """As `get_latest`, with the step in which it was put."""
        if name not in self._history:
            names = ", ".join(sorted(self._history)) or "none"
            raise KeyError(f"{self._no_value(name)} Those that have: {names}.")
        records = self._history[name]
        return ScalarRecord(records.steps[-1], records.values[-1])

    def get_history(self, name: str) -> List[ScalarRecord]:
        """Returns all values of a scalar, oldest first; an empty list, with a warning, if none."""
        if name not in self._history:
            log_once(f"get_history() is empty. {self._no_value(name)}", "warn")
            return []
        records = self._history[name]
        return [*map(ScalarRecord, records.steps, records.values)]

    def state_dict(self) -> Dict[str, Any]:
        return {
            name: {"steps": np.array(steps, np.int64), "values": np.array(values, np.float64)}
            for name, (steps, values) in self._history.items()
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._history = {}
        for name, records in state.items():
            steps, values = records["steps"], records["values"]
            numbers = array("d", values.astype(np.float64).tobytes())
            self._history[name] = _Records(array("q", steps.astype(np.int64).tobytes()), numbers)

    def _no_value(self, name: str) -> str:
        close = get_close_matches(name, self._history, cutoff=0.5)
        advice = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        return f"The scalar {name!r} has no value yet.{advice}"

    def _put_value(self, name: str, value: float) -> None:
        if name not in self._history:
            self._history[name] = _Records(array("q"), array("d"))
        self._history[name].steps.append(self.global_step)
        self._history[name].values.append(value)
        for monitor in self._monitors:
            monitor.process_scalar(name, value)


def _clean_tag(tag: str) -> str:
    """Removes the tower and the suffix from the tag of a summary."""
    tower, _, rest = tag.partition("/")
    if rest and tower.startswith("tower") and tower[len("tower") :].lstrip("p").isdigit():
        tag = rest
    if tag.endswith(_SUFFIX) and tag != _SUFFIX:
        tag = tag[: -len(_SUFFIX)]
    return tag
