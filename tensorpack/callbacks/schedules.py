"""Sets hyper-parameters by a list of points in time: epochs or steps."""

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from tensorpack.utils.checks import as_count

from .param import HyperParam
from .param_setters import HyperParamSetter


class ScheduledHyperParamSetter(HyperParamSetter):
    """Sets a hyper-parameter by a list of points in time.

    If the schedule was changed before a run is resumed, the value of the new schedule is set.

    ::

        schedule=[(2, 0.1), (4, 0.5)]
        epoch                      1    2    3    4    5    6
        after it, interp=None           0.1       0.5
        after it, "linear"              0.1  0.3  0.5

    Args:
      schedule: pairs of an epoch and the value from its end on; epoch 0 means from the beginning.
      interp: "linear" to interpolate between the points, None for steps. Before the first and
        after the last point nothing is set.
      step_based: whether the points are global steps instead of epochs.
      set_at_beginning: whether a run that starts after a point sets the value in force then.
    """

    def __init__(
        self,
        param: Union[HyperParam, str],
        schedule: Sequence[Tuple[int, float]],
        interp: Optional[str] = None,
        step_based: bool = False,
        set_at_beginning: bool = True,
    ) -> None:
        super().__init__(param)
        if interp not in (None, "linear"):
            raise ValueError(f'interp must be None or "linear", got {interp!r}.')
        points = {
            (as_count("A schedule", "the time", when, 0), float(value)) for when, value in schedule
        }
        self.schedule = sorted(points)
        if len(dict(points)) < len(points):
            raise ValueError(f"A schedule has one value for each time, got {self.schedule}.")
        self._interp = interp
        self._step_based = step_based
        self._set_at_beginning = set_at_beginning

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), **self._plan()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        if any(state[name] != value for name, value in self._plan().items()):
            self._began = False  # the schedule was changed: its value in force is set

    def _plan(self) -> Dict[str, Any]:
        points = [list(point) for point in self.schedule]
        return {"schedule": points, "interp": self._interp, "step_based": self._step_based}

    def _get_value_to_set(self) -> Optional[float]:
        now = self.global_step if self._step_based else self.epoch_num
        continues = not self._began and now > 0  # an earlier run
        passed = [point for point in self.schedule if point[0] <= now]
        if not passed or (continues and not self._set_at_beginning):
            return None
        start, value = passed[-1]
        if start < now and self._interp == "linear" and len(passed) < len(self.schedule):
            end, then = self.schedule[len(passed)]
            return value + (then - value) * (now - start) / (end - start)
        return value if continues or start == now else None

    def _trigger_epoch(self) -> None:
        if not self._step_based:
            self.trigger()

    def _trigger_step(self) -> None:
        if self._step_based:
            self.trigger()
