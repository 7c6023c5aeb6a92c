"""Changes what `tf.get_variable` gives inside a block: frozen, remapped or custom variables."""

from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Iterator, List

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import accepts_old_keywords

from .common import PerGraph

frozen_variables: PerGraph[List[tf.Variable]] = PerGraph(list)  # trainable, and yet not trained


@accepts_old_keywords(fn="custom_getter")
@contextmanager
def custom_getter_scope(custom_getter: Callable[..., Any]) -> Iterator[None]:
    """Sends every `tf.get_variable` in the block through a getter; all scopes stay as they are.

    Args:
      custom_getter: called as `custom_getter(getter, name, *args, **kwargs)`, where `getter` is
        what would have been called without it (an outer custom getter, in the end TensorFlow's).
    """
    # Not a `tf.variable_scope` of the same scope, which forgets at its end the names of layers that
    # were made in it, so that those of others after it are the same.
    scope = tf.get_variable_scope()
    outer = scope.custom_getter

    def both(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return custom_getter(partial(outer, getter), *args, **kwargs)

    scope.set_custom_getter(custom_getter if outer is None else both)
    try:
        yield
    finally:
        scope.set_custom_getter(outer)


def remap_variables(fn: Callable[[Any], Any]) -> Any:
    """Returns a context in which `tf.get_variable` gives `fn(variable)`, a variable or a tensor."""

    def custom(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return fn(getter(*args, **kwargs))

    return custom_getter_scope(custom)


def freeze_variables(stop_gradient: bool = True, skip_collection: bool = False) -> Any:
    """Returns a context whose variables are not to be trained.

    Args:
      stop_gradient: whether `tf.get_variable` gives tensors that no gradient passes. Then variables
        that are made inside have no regularizer, and `regularize_cost` leaves them out. Those with
        `trainable=False`, such as the moving statistics of `BatchNorm`, are assigned to as before.
      skip_collection: whether new variables stay out of `TRAINABLE_VARIABLES`. They are weights
        nevertheless (`MODEL_VARIABLES`), which `InitFrom` loads and a predictor needs, and can
        still be trained by an optimizer that is given them by hand.
    """

    def custom(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        stops = stop_gradient and kwargs.get("trainable") is not False
        if stops:
            kwargs["regularizer"] = None
        if skip_collection:
            kwargs["trainable"] = False
            collections = kwargs.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
            kwargs["collections"] = sorted({*collections, tf.GraphKeys.MODEL_VARIABLES})
        before = len(tf.trainable_variables())
        variable = getter(*args, **kwargs)
        if not stops:
            return variable
        frozen_variables.get().extend(tf.trainable_variables()[before:])  # none if it is reused
        return tf.stop_gradient(variable)

    return custom_getter_scope(custom)


# Their names of 2017; `remap_get_variable` never worked then.
freeze_get_variable = freeze_variables
remap_get_variable = remap_variables
replace_get_variable = custom_getter_scope
