"""Gradient processors: what happens to gradients between their computation and the update.

A processor maps a list of (gradient, variable) to another. `apply_grad_processors` in
`optimizer.py` puts a chain of them into an optimizer.
"""

import inspect
import re
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checks import as_list, as_positive

from .common import PerGraph
from .summary import add_tagged_moving_summary, create_histogram_summary, half_square
from .symbolic_functions import print_stat, rms
from .tower import in_main_training_tower

# A gradient is a tensor, `tf.IndexedSlices` where only some rows were used, or None.
Gradient = Any
GradVars = List[Tuple[Gradient, Any]]


class GradientProcessor:
    """Base of all processors. Override `_process`.

    Attributes:
      by_tower: whether the result depends on nothing but the gradients and the names of their
        variables, so that several towers with the same gradients may each compute it.
    """

    by_tower = False

    def process(self, grads: Sequence[Tuple[Gradient, Any]]) -> GradVars:
        """Returns the processed list of (gradient, variable).

        All ops go under one name scope, named after the class, however often this is called for a
        graph.
        """
        # A subclass of a user may not call a constructor of ours.
        scopes = self.__dict__.setdefault("_scopes", PerGraph(list)).get()
        with tf.name_scope(scopes[0] if scopes else type(self).__name__) as scope:
            if not scopes:
                scopes.append(scope)
            return self._process(list(grads))

    def _process(self, grads: GradVars) -> GradVars:
        """Override: receives and returns a list of (gradient, variable)."""
        raise NotImplementedError(f"{type(self).__name__} must override _process().")


class FilterNoneGrad(GradientProcessor):
    """Drops the variables that have no gradient."""

    by_tower = True

    def __init__(self, verbose: bool = True) -> None:
        self._verbose = verbose

    def _process(self, grads: GradVars) -> GradVars:
        without = [var.op.name for grad, var in grads if grad is None]
        if without and self._verbose:
            logger.warn(f"No gradient w.r.t. {len(without)} variables: {', '.join(without)}")
        return [(grad, var) for grad, var in grads if grad is not None]


class GlobalNormClip(GradientProcessor):
    """Scales all gradients down together, so that their joint L2 norm is at most `global_norm`.

    With n the joint norm, each gradient is multiplied by `global_norm / n` where n is larger than
    `global_norm`, and left alone where it is not. If n is not finite, all gradients become NaN. In
    n, as in that of TensorFlow, each use of a row counts by itself (`tf.gather`), before they are
    added up; a worker of a `CollectiveTrainer` has them added up already.
    """

    by_tower = True

    def __init__(self, global_norm: float) -> None:
        self._norm = as_positive(self, "global_norm", global_norm)

    def _process(self, grads: GradVars) -> GradVars:
        halves = [half_square(values_of(grad)) for grad, _ in grads if grad is not None]
        norm = tf.sqrt(tf.reduce_sum(tf.stack(halves)) * 2.0)
        exceeds = tf.logical_not(norm <= self._norm)  # which is true of NaN, too
        factor = tf.where(tf.is_finite(norm), self._norm / norm, float("nan"))
        scale = _times_if(exceeds, factor)
        clipped = [(map_values(grad, scale), var) for grad, var in grads]
        # To be summarised without reading them again: 1 % of an update of the DQN on two cores.
        ratio = tf.square(tf.where(exceeds, factor, tf.ones_like(factor)))
        for grad, half in zip([grad for grad, _ in clipped if grad is not None], halves):
            half_square(values_of(grad), half * ratio)
        return clipped


class MapGradient(GradientProcessor):
    """Applies a function to the gradients of the variables whose names match.

    Args:
      func: called as `func(gradient)`, or as `func(gradient, variable)` if it needs two
        arguments; returns the new gradient, or None to drop the variable. A sparse gradient comes
        as `tf.IndexedSlices`.
      regex: must match the whole name of the variable, without `:0`.
    """

    def __init__(self, func: Callable[..., Optional[Gradient]], regex: str = ".*") -> None:
        self._func = _with_two_arguments(func)
        self._regex = re.compile(regex)

    def _process(self, grads: GradVars) -> GradVars:
        processed = []
        matching = {id(var) for _, var in grads if self._regex.fullmatch(var.op.name)}
        if not matching:
            logger.warn(f"{type(self).__name__}: no variable matches {self._regex.pattern!r}.")
        for grad, var in grads:
            mapped = grad
            if grad is not None and id(var) in matching:
                mapped = self._func(grad, var)
            if grad is None or mapped is not None:
                processed.append((mapped, var))
        return processed


class SummaryGradient(MapGradient):
    """Summarises gradients; passes them on as they are.

    For each variable: a moving average of the root mean square, tagged
    `SummaryGradient/{variable}/rms`, and a histogram `SummaryGradient/{variable}-grad`. A sparse
    gradient is summarised by the rows that it has. Each variable once in a graph, and only outside
    of towers or in the main training tower.

    Args:
      regex: must match the whole name of the variable.
      collections: names of the collections for the summaries; `SUMMARIES` by default.
    """

    by_tower = True

    def __init__(self, regex: str = ".*", collections: Optional[Iterable[str]] = None) -> None:
        super().__init__(self._summarise, regex)
        self._collections = collections and as_list(self, "collections", collections)

    def _summarise(self, gradient: Gradient, variable: Any) -> Gradient:
        done = _summarised_variables.get()
        name = variable.op.name
        if name in done or not in_main_training_tower():
            return gradient
        done.add(name)
        values = values_of(gradient)
        with tf.device(values.device):
            scalar = rms(values, name=f"{name}/rms")
        add_tagged_moving_summary(
            f"SummaryGradient/{name}/rms", scalar, summary_collections=self._collections
        )
        create_histogram_summary(f"SummaryGradient/{name}-grad", values, self._collections)
        return gradient


_summarised_variables: PerGraph[set] = PerGraph(set)  # names; one summary tag for each


class CheckGradient(MapGradient):
    """Makes the step fail, with the variable's name, where a gradient is not finite."""

    by_tower = True

    def __init__(self) -> None:
        super().__init__(self._check)

    def _check(self, gradient: Gradient, variable: Any) -> Gradient:
        message = f"CheckGradient: the gradient of {variable.op.name} is not finite"
        return map_values(gradient, lambda values: tf.check_numerics(values, message))


class ScaleGradient(MapGradient):
    """Multiplies gradients by a factor for each variable, as if it had its own learning rate.

    Args:
      multipliers: a pair (regex, factor), or a list of them. The first whose regex matches the
        whole name of the variable counts; a factor of 0 drops the variable.
      verbose: whether to log the factor of each variable.
      log: the name of `verbose` in 2017.
    """

    by_tower = True

    def __init__(
        self,
        multipliers: Union[Tuple[str, float], Sequence[Tuple[str, float]]],
        verbose: bool = True,
        log: Optional[bool] = None,
    ) -> None:
        super().__init__(self._scale)
        pairs: Any = multipliers
        if len(pairs) == 2 and isinstance(pairs[0], str):
            pairs = [pairs]
        self._multipliers = [(re.compile(regex), float(factor)) for regex, factor in pairs]
        self._verbose = verbose if log is None else log

    def _scale(self, gradient: Gradient, variable: Any) -> Optional[Gradient]:
        name = variable.op.name
        factor = next((f for pattern, f in self._multipliers if pattern.fullmatch(name)), None)
        if factor is None:
            return gradient
        if self._verbose:
            logger.detail(f"Apply lr multiplier {factor:g} for {name}")
        return map_values(gradient, lambda values: values * factor) if factor else None


class PrintGradient(MapGradient):
    """Prints statistics of the gradients of matching variables, as `MapGradient`, in each step."""

    def __init__(self, regex: str = ".*") -> None:
        super().__init__(self._print, regex)

    def _print(self, gradient: Gradient, variable: Any) -> Gradient:
        message = f"Gradient of {variable.op.name}"
        return map_values(gradient, lambda values: print_stat(values, message))


def values_of(gradient: Gradient) -> tf.Tensor:
    """Returns a gradient as a tensor: of a sparse one, the rows that it has."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def map_values(gradient: Gradient, func: Callable[[tf.Tensor], tf.Tensor]) -> Gradient:
    """Applies an elementwise function to a gradient, dense, sparse or None."""
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        values = func(gradient.values)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return func(gradient)


def _times_if(condition: tf.Tensor, factor: tf.Tensor) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that multiplies where a scalar condition is true, and else does not even copy."""

    def scale(values: tf.Tensor) -> tf.Tensor:
        with tf.device(values.device):
            way = tf.raw_ops.Switch(data=values, pred=condition)
            scaled = way.output_true * tf.cast(factor, values.dtype)
            return tf.raw_ops.Merge(inputs=[way.output_false, scaled]).output

    return scale


def _with_two_arguments(func: Callable[..., Any]) -> Callable[[Gradient, Any], Any]:
    try:
        inspect.signature(func).bind(None)
    except TypeError:
        return func
    except ValueError:
        pass  # a builtin that does not say
    return lambda grad, var: func(grad)
