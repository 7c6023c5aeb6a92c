"""Updates moving averages and passes the summaries of the graph to the monitors."""

from collections import deque
from operator import attrgetter
from typing import Any, Dict, Optional, Sequence, Set

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count, as_names
from tensorpack.utils.naming import MOVING_SUMMARY_OPS_KEY

from .base import Callback
from .graph import ProcessTensors, RunUpdateOps


class MovingAverageSummary(RunUpdateOps):
    """Runs the ops that `add_moving_summary` put into a collection along with every run of the
    hooked session, or only with runs of a `train_op`, where a step has several runs.
    """

    _op_name = "maintain_moving_averages"
    _message = "Maintain moving average summary of {count} tensors."

    def __init__(self, collection: str = MOVING_SUMMARY_OPS_KEY, train_op: Any = None) -> None:
        super().__init__(collection)
        self._train_op = train_op

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        if self._train_op is not None and ctx.original_args.fetches is not self._train_op:
            return None
        return super()._before_run(ctx)


def MergeAllSummaries(
    period: int = 0, run_alone: bool = False, key: Optional[str] = "summaries"
) -> Callback:
    """Returns a callback that puts the summaries of a collection into the monitors every epoch.

    Summaries of trainable variables and constants alone have the values from after the step.

    Args:
      period: do so after every so many steps of an epoch as well; 0 for never.
      run_alone: compute them in a run of their own after the step, instead of along with it. Then
        summaries that need a datapoint take one more from the input.
      key: name of the collection.
    """
    steps = as_count("MergeAllSummaries", "period", period, least=0)
    kind = _SummariesAlone if run_alone else _SummariesWithStep
    return kind(steps, tf.GraphKeys.SUMMARIES if key is None else key)


class _Summaries(Callback):
    name_scope = "MergeAllSummaries"
    sets_up_last = True  # others may add summaries while they are set up

    def __init__(self, period: int, key: str) -> None:
        self._period = period
        self._key = key

    def _setup_graph(self) -> None:
        self._merged = _merge(tf.get_collection(self._key))

    def _due_in_epoch(self, local_step: int) -> bool:
        return (local_step + 1) % self._period == 0

    def __str__(self) -> str:
        return "MergeAllSummaries"


class _SummariesWithStep(_Summaries):
    _last = -1  # the step whose summaries are the last ones put
    _due = False

    def _setup_graph(self) -> None:
        # Along with the step, they would be computed before its update or after it, as it happens.
        summaries, ops = tf.get_collection(self._key), _ops_of_parameters(self.graph)
        self._merged = _merge([summary for summary in summaries if summary.op not in ops])
        self._of_parameters = _merge([summary for summary in summaries if summary.op in ops])

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        trainer = self.trainer
        step = trainer.local_step
        due = step == trainer.steps_per_epoch - 1 or self._period > 0 and self._due_in_epoch(step)
        self._due = due and trainer.global_step != self._last  # only the first run of a step
        if not self._due:
            return None
        self._last = trainer.global_step
        return self._merged

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        if not self._due:
            return
        summary = run_values.results or b""
        if self._of_parameters is not None:
            summary += self.trainer.hooked_sess.run_unseen(self._of_parameters)
        if summary:
            self.trainer.monitors.put_summary(summary)

    def state_dict(self) -> Dict[str, Any]:
        return {"last": self._last}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._last = state["last"]


def _ops_of_parameters(graph: tf.Graph) -> Set[tf.Operation]:
    """Returns the ops that read trainable variables and constants, and depend on nothing else."""
    variables = {var.op for var in tf.trainable_variables()}
    ops, op_of = set(variables), attrgetter("op")
    for op in graph.get_operations():  # each after its inputs, but for loops
        inputs = {*map(op_of, op.inputs), *op.control_inputs}
        if inputs <= ops and not op.type.startswith("Placeholder"):
            reads = op.type in ("Identity", "ReadVariableOp")
            if reads if inputs & variables else not op.op_def.is_stateful:
                ops.add(op)
    return ops


def _merge(summaries: Sequence[tf.Tensor]) -> Optional[tf.Tensor]:
    # Unlike tf.summary.merge, this takes a tag that was given twice.
    return tf.strings.join(summaries) if summaries else None


class _SummariesAlone(_Summaries):
    def _trigger_step(self) -> None:
        step = self.local_step
        if self._period and self._due_in_epoch(step) and step != self.trainer.steps_per_epoch - 1:
            self.trigger()

    def _trigger(self) -> None:
        if self._merged is not None:
            summary = self.trainer.hooked_sess.run_unseen(self._merged)
            self.trainer.monitors.put_summary(summary)


class SimpleMovingAverage(ProcessTensors):
    """Puts the mean of scalar tensors over the last `window_size` steps into the monitors, once in
    so many steps, as `{name}/SMA`.
    """

    def __init__(self, tensors: Sequence[str], window_size: int) -> None:
        names = as_names(self, "tensors", tensors)
        super().__init__(names, lambda *values: self._window.append(values))
        size = as_count(self, "window_size", window_size)
        self._window: deque[Sequence[float]] = deque(maxlen=size)

    def _setup_graph(self) -> None:
        super()._setup_graph()
        for tensor in self._fetches:
            if tensor.shape.as_list() != []:
                raise ValueError(
                    f"SimpleMovingAverage needs scalars, {tensor.name} has shape {tensor.shape}."
                )

    def _trigger_step(self) -> None:
        size = self._window.maxlen or 1
        if len(self._window) < size or self.global_step % size != 0:
            return
        for tensor, values in zip(self._fetches, zip(*self._window)):
            mean = sum(float(value) for value in values) / size
            self.trainer.monitors.put_scalar(f"{tensor.op.name}/SMA", mean)

    def state_dict(self) -> Dict[str, Any]:
        window = np.array([list(values) for values in self._window], np.float64)
        return {"window": window.reshape(len(self._window), len(self._names))}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        window = state["window"]
        if window.ndim != 2 or window.shape[1] != len(self._names):
            raise ValueError(
                f"SimpleMovingAverage has {len(self._names)} tensors, the saved window has shape "
                f"{list(window.shape)}: give it the tensors of the earlier run."
            )
        self._window.clear()
        self._window.extend(window.tolist())
