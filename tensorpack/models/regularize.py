"""Regularization: dropout, and costs on the size of variables."""

import re
from typing import Any, Callable, List, Optional, Set, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import PerGraph, precise
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.tfutils.varreplace import frozen_variables
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords

from ._legacy_names import RENAMED
from .registry import layer_register

_logged_names: PerGraph[Set[str]] = PerGraph(set)  # of the variables


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["Dropout"])
def Dropout(
    inputs: tf.Tensor,
    keep_prob: Any = 0.5,
    training: Union[bool, tf.Tensor, None] = None,
    noise_shape: Any = None,
    *,
    seed: Optional[int] = None,
) -> tf.Tensor:
    """Sets random elements to zero while training, and scales the others to keep the mean.

    Args:
      inputs: floating, any shape.
      keep_prob: probability to keep an element, in (0, 1]; or give `rate`, which is 1 minus that.
      training: whether to drop, a bool or a bool scalar tensor; by default in a training tower.
      noise_shape: int32, shape of the random mask, broadcast to `inputs`; by default the shape of
        `inputs`.
      seed: of the op.

    Returns:
      A tensor like `inputs`.
    """
    inputs = tf.convert_to_tensor(inputs)
    if training is None:
        tower = get_current_tower_context()
        training = tower is not None and tower.is_training

    def drop() -> tf.Tensor:
        return tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed)

    if tf.is_tensor(training):
        return tf.cond(training, drop, lambda: tf.identity(inputs))
    return drop() if training else tf.identity(inputs)


@accepts_old_keywords(x="scale")
def l2_regularizer(scale: float, scope: Optional[str] = None) -> Callable[[Any], tf.Tensor]:
    """Returns a function of a variable: `scale * sum(w ** 2) / 2`.

    Args:
      scope: name of the resulting op, `l2_regularizer` by default.
    """
    return _scaled(tf.nn.l2_loss, scale, scope or "l2_regularizer")


@accepts_old_keywords(l="scale")
def l1_regularizer(scale: float = 0.01, scope: Optional[str] = None) -> Callable[[Any], tf.Tensor]:
    """Returns a function of a variable: `scale * sum(abs(w))`.

    Args:
      scope: name of the resulting op, `l1_regularizer` by default.
    """
    return _scaled(lambda w: tf.reduce_sum(tf.abs(w)), scale, scope or "l1_regularizer")


def regularize_cost(
    regex: str, func: Callable[[Any], tf.Tensor], name: str = "regularize_cost"
) -> tf.Tensor:
    r"""Sums `func(variable)` over trainable variables; call it after the layers. ::

        weight_cost = regularize_cost(r"^conv\d+/W$", l2_regularizer(2e-4))

    In a tower with its own variables only those count, by their names within the tower. In a tower
    that is not for training the result is zero. Each variable is logged once per graph. Those that
    `freeze_variables` stops the gradient of are left out.

    Args:
      regex: searched for in the variable's name, with and without `:0`: both `fc0/W$` and
        `fc0/W:0` select `fc0/W`. If nothing matches, a warning is logged and the cost is 0.
      func: a function of a variable that returns a scalar.
      name: of the resulting op, a scalar.
    """
    tower = get_current_tower_context()
    if tower is not None and not tower.is_training:
        return tf.constant(0.0, name=name)
    variables, start = tf.trainable_variables(), 0
    if tower is not None and tower.vs_name:
        variables, start = tower.filter_vars_by_vs_name(variables), len(f"{tower.vs_name}/")
    frozen = {id(var) for var in frozen_variables.get()}
    selected = [
        var
        for var in variables
        if id(var) not in frozen
        if re.search(regex, var.op.name[start:]) or re.search(regex, var.name[start:])
    ]
    if not selected:
        logger.warning(f"regularize_cost: no trainable variable matches {regex!r}, the cost is 0.")
        return tf.constant(0.0, name=name)
    logged = _logged_names.get()
    for var in selected:
        if var.op.name not in logged:
            logged.add(var.op.name)
            logger.detail(f"Apply regularizer for {var.name}")
    with tf.name_scope(name) as scope:
        return _sum([func(var) for var in selected], scope)


def regularize_cost_from_collection(name: str = "regularize_cost") -> tf.Tensor:
    """Sums the collection `REGULARIZATION_LOSSES`. Call it after the layers are built.

    In a tower with its own variables only its own losses count; in one that shares them, also those
    of other towers that depend on variables alone. In a tower that is not for training the result
    is zero.

    Args:
      name: of the resulting op, a scalar; zero if there are no such losses.
    """
    key = tf.GraphKeys.REGULARIZATION_LOSSES
    tower = get_current_tower_context()
    losses = tf.get_collection(key) if tower is None or tower.is_training else []
    if losses and tower is not None and (tower.vs_name or tower.index):
        in_tower = tower.get_collection_in_tower(key)
        # Shared variables are regularized in the tower that created them, and only there.
        others = [] if tower.vs_name else losses[: len(losses) - len(in_tower)]
        losses = [loss for loss in others if not _depends_on_data(loss)] + in_tower
    if not losses:
        return tf.constant(0.0, name=name)
    with tf.name_scope(name) as scope:
        return _sum(losses, scope)


def _scaled(norm: Callable[[Any], Any], scale: float, name: str) -> Callable[[Any], tf.Tensor]:
    return lambda w: tf.multiply(norm(precise(w)), scale, name=name)


def _depends_on_data(loss: tf.Tensor) -> bool:
    """Whether it is one of activations: computed from anything but variables and constants."""
    sources = {op.type for op in ancestors([loss]) if not op.inputs}
    return not sources <= {"Const", "NoOp", "VarHandleOp", "VariableV2"}


def _sum(costs: List[tf.Tensor], scope: str) -> tf.Tensor:
    """Returns the sum as the op named like the scope itself."""
    return tf.add_n([tf.cast(cost, tf.float32) for cost in costs], name=scope)
