"""Sets hyper-parameters by a list of points in time: epochs, steps, or samples, which it counts.

A step has as many samples as all towers together take in it, so a schedule in samples is the same
for any batch size and any number of towers. In a schedule in steps or epochs, both change it.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.dependency import dependency_of_targets
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_count_or_none, check_kind

from .base import Callback
from .param import HyperParam
from .param_setters import HyperParamSetter

_Schedule = Sequence[Tuple[int, float]]


class _ByPoints(HyperParamSetter):
    """Has points in time; a subclass says what the time is, and when to look at it."""

    def __init__(
        self, param: Union[HyperParam, str], schedule: _Schedule, interp: Optional[str]
    ) -> None:
        super().__init__(param)
        if interp not in (None, "linear"):
            raise ValueError(f'interp must be None or "linear", got {interp!r}.')
        times = [as_count("A schedule", "the time", when, least=0) for when, _ in schedule]
        if not times or len(set(times)) < len(times):
            raise ValueError(
                "A schedule is a list of (time, value) with different times from 0 on, got "
                f"{list(schedule)}."
            )
        self._interp = interp
        self.schedule = sorted((int(when), float(value)) for when, value in schedule)

    def _value_at(self, now: int, in_force: bool) -> Optional[float]:
        """Returns the value to set at exactly this time, or None; one that was to be set before
        counts if it is `in_force`.
        """
        passed = [point for point in self.schedule if point[0] <= now]
        if not passed:
            return None
        start, value = passed[-1]
        if start < now and self._interp == "linear" and len(passed) < len(self.schedule):
            end, then = self.schedule[len(passed)]
            return value + (then - value) * (now - start) / (end - start)
        return value if in_force or start == now else None


class ScheduledHyperParamSetter(_ByPoints):
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
        schedule: _Schedule,
        interp: Optional[str] = None,
        step_based: bool = False,
        set_at_beginning: bool = True,
    ) -> None:
        super().__init__(param, schedule, interp)
        self._step_based = step_based
        self._set_at_beginning = set_at_beginning
        self._changed = False  # since the state that was loaded

    def _before_train(self) -> None:
        super()._before_train()
        if self._changed and self._set_at_beginning:
            self._apply(self._noted(self._value_at(self._now(), True)))
        self._changed = False

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), **self._plan()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._changed = any(state[name] != value for name, value in self._plan().items())

    def _plan(self) -> Dict[str, Any]:
        points = [list(point) for point in self.schedule]
        return {"schedule": points, "interp": self._interp, "step_based": self._step_based}

    def _now(self) -> int:
        return self.global_step if self._step_based else self.epoch_num

    def _get_value_to_set(self) -> Optional[float]:
        now = self._now()
        continues = not self._began and now > 0  # an earlier run
        if continues and not self._set_at_beginning:
            return None
        return self._value_at(now, continues)

    def _trigger_epoch(self) -> None:
        if not self._step_based:
            self.trigger()

    def _trigger_step(self) -> None:
        if self._step_based:
            self.trigger()

    def _moment(self) -> str:
        return f"global_step {self.global_step}" if self._step_based else super()._moment()


class SampleCounter(Callback):
    """Counts the samples that a run, with those that it resumes, has trained on.

    It puts the scalar `samples` after each epoch, and logs in words what a step and an epoch are. A
    step has the first dimension of the first input that has one, summed over the training towers
    of this process. Each step is asked for it, so batches of different sizes count exactly. A step
    that was cut off does not count.

    Args:
      samples_per_step: by default the graph says it; not in a group, or if a step is several ops.
      pass_size: how many samples a pass over the data has, to tell how many passes an epoch is.
      max_samples: ends the training, in order, after the epoch in which so many are reached.

    Attributes:
      count: how many samples there have been.
    """

    puts_scalars = True
    _chief_only = False  # schedules of all workers may depend on it

    def __init__(
        self,
        samples_per_step: Optional[int] = None,
        pass_size: Optional[int] = None,
        max_samples: Optional[int] = None,
    ) -> None:
        self._per_step = as_count_or_none(self, "samples_per_step", samples_per_step)
        self._pass_size = as_count_or_none(self, "pass_size", pass_size)
        self._max = as_count_or_none(self, "max_samples", max_samples)
        self.count = 0
        self._request: Optional[tf.train.SessionRunArgs] = None

    @property
    def passes(self) -> float:
        """How many passes over the data `count` is; needs `pass_size`."""
        if self._pass_size is None:
            raise ValueError("Give SampleCounter(pass_size=...) to count passes over the data.")
        return self.count / self._pass_size

    def _setup_graph(self) -> None:
        self._told = False
        if self._per_step is not None:
            return
        sizes = self._sizes()
        if not sizes:
            raise ValueError(
                "SampleCounter finds no batch that a step of this trainer takes: its step is not "
                "one op, or the model has no input with a dimension. Give samples_per_step."
            )
        self._request = tf.train.SessionRunArgs(sizes)

    def _sizes(self) -> List[tf.Tensor]:
        """Returns the batch size of each training tower."""
        step, towers = self.trainer.step_op, self.trainer.towers
        found = []
        for tower in [] if step is None or towers is None else towers.training():
            for each in tower.inputs:
                # asking for what the step does not need could take a datapoint of its own
                if each.shape.ndims and dependency_of_targets([step], each):
                    found.append(tf.shape(each, out_type=tf.int64)[0])
                    break
        return found

    def _before_train(self) -> None:
        self._counted_step = self.global_step

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return None if self.global_step == self._counted_step else self._request

    def _after_run(self, ctx: tf.train.SessionRunContext, values: Any) -> None:
        if self.global_step == self._counted_step:
            return
        self._counted_step = self.global_step
        sizes = [self._per_step or 0]
        if self._request is not None:
            sizes = [int(size) for size in values.results]
        self.count += sum(sizes)
        if not self._told:
            self._told = True
            self._tell(sizes)

    def _tell(self, sizes: Sequence[int]) -> None:
        steps = self.trainer.steps_per_epoch
        epoch = sum(sizes) * steps
        towers = f" ({' + '.join(map(str, sizes))})" if len(sizes) > 1 else ""
        text = f"A step takes {sum(sizes)} samples{towers}, an epoch of {steps} steps {epoch}"
        if self._pass_size is not None:
            text += f", which is {epoch / self._pass_size:.4g} passes over {self._pass_size}"
        logger.info(text + ".")

    def _trigger(self) -> None:
        self.trainer.monitors.put_scalar("samples", self.count)

    def check_over(self) -> None:
        if self._max is not None and self.count >= self._max:
            raise StopTraining(f"{self.count} samples have been reached, of {self._max}.")

    def ended(self, message: str) -> bool:
        """As that of `EarlyStop`."""
        mine = message.startswith(f"StopTraining: {self.count} samples have been reached, of ")
        return mine and self._max is not None and self.count >= self._max

    def state_dict(self) -> Dict[str, Any]:
        return {"samples": self.count}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.count = state["samples"]


class SampleScheduledHyperParamSetter(_ByPoints):
    """Sets a hyper-parameter by a list of points in samples, after each step.

    The value depends on nothing but the count: that of a resumed run continues, and a schedule that
    was changed in between is in force from its first step on.

    Args:
      interp: as in `ScheduledHyperParamSetter`.
      schedule: pairs of a number of samples and the value from there on; 0 means from the
        beginning. Before the first of them nothing is set.
      counter: the `SampleCounter` of the run, which is another of its callbacks.
    """

    def __init__(
        self,
        param: Union[HyperParam, str],
        schedule: _Schedule,
        counter: SampleCounter,
        interp: Optional[str] = None,
    ) -> None:
        super().__init__(param, schedule, interp)
        self._counter = check_kind("counter", counter, SampleCounter)

    def _setup_graph(self) -> None:
        super()._setup_graph()
        if self._must_agree and self._counter._per_step is None:
            raise ValueError(
                f"{self} cannot set {self.param.readable_name}: each of the workers that train "
                "together counts its own samples. Give SampleCounter(samples_per_step=...)."
            )

    def _before_train(self) -> None:
        self._began = True
        self._set()

    def _get_value_to_set(self) -> Optional[float]:
        value = self._value_at(self._counter.count, True)
        return None if value == self._last else value

    def _trigger_step(self) -> None:
        self._set()

    def _trigger_epoch(self) -> None:
        pass

    def _moment(self) -> str:
        return f"{self._counter.count} samples"
