"""Summaries of tensors: moving averages of scalars, and pictures of parameters and activations.

All tags are exact: the log and TensorBoard show them as given; they are never made unique. Only the
main training tower is summarised; in any other these functions do nothing. The ops are under the
name scope `summaries/`, so no name of the model is taken.
"""

import re
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.naming import MOVING_SUMMARY_OPS_KEY

from .common import PerGraph, precise, root_variable
from .tower import get_current_tower_context, in_main_training_tower


class _MovingAverage(NamedTuple):
    value: tf.Tensor
    state: tf.Variable
    decay: float
    collection: str


_averages: PerGraph[Dict[str, _MovingAverage]] = PerGraph(dict)  # tag -> average
_half_squares: PerGraph[Dict[str, tf.Tensor]] = PerGraph(dict)  # by tensor, where known


def add_moving_summary(
    *tensors: Any,
    v: Any = None,
    decay: float = 0.95,
    collection: str = MOVING_SUMMARY_OPS_KEY,
    summary_collections: Optional[Iterable[str]] = None,
) -> List[tf.Tensor]:
    """Maintains and summarises a moving average of each scalar tensor.

    With `x_t` the value of the tensor at the update number t, counted from 1::

        biased_t  = decay * biased_{t-1} + (1 - decay) * x_t        biased_0 = 0
        average_t = biased_t / (1 - decay^t)

    so the average is not drawn towards zero at the start: `average_1 = x_1`. It is 0 before the
    first update. A value that is NaN makes the average NaN, and it stays so. A run of the session
    that both updates and reads an average reads the value from before the update: the summaries
    of a step have the average over the steps before it.

    The state is one non-trainable variable `EMA/{tag}`, float32 `[2]`, saved with the model. The
    tag is the name of the variable, or of the tensor's op inside its tower (with `_k` for output k
    > 0). A tensor that has its average already keeps that one.

    Args:
      *tensors: numeric scalars, variables among them, or lists of them.
      v: the same, the name of the first one in 2017.
      decay: in [0, 1), the share of the old average that is kept at an update.
      collection: name of the collection that gets one update op for each tensor.
      summary_collections: where the summaries go; `SUMMARIES` by default.

    Returns:
      The averages, float32 scalars, one for each tensor; nothing outside the main training tower.
    """
    tensors = tf.nest.flatten([tensors, [] if v is None else v])
    scalars = [_tensor_or_variable(x) for x in tensors]
    for x in scalars:
        if x.shape.ndims != 0:
            raise ValueError(f"add_moving_summary takes scalars, so reduce {x} by tf.reduce_mean.")
    if not in_main_training_tower():
        return []
    options = decay, collection, summary_collections
    return [add_tagged_moving_summary(tag_of_tensor(x), x, *options) for x in scalars]


def add_tagged_moving_summary(
    tag: str,
    scalar: Union[tf.Tensor, tf.Variable],
    decay: float = 0.95,
    collection: str = MOVING_SUMMARY_OPS_KEY,
    summary_collections: Optional[Iterable[str]] = None,
) -> tf.Tensor:
    """Does the work of `add_moving_summary` for one scalar, under a tag of the caller's choice."""
    averages = _averages.get()
    if tag in averages:
        average = averages[tag]
        if (average.decay, average.collection) != (decay, collection):
            raise ValueError(
                f"{tag!r} has a moving average with decay {average.decay} in "
                f"{average.collection!r}, so it cannot have another with {decay} in {collection!r}."
            )
        return average.value
    name, zeros = op_name_of_tag(tag), tf.zeros_initializer()
    with tf.control_dependencies(None), tf.device(scalar.device):
        # The biased average, and the sum of the weights of what went into it. What is read of a
        # resource variable does not change when it is updated.
        state = root_variable(f"EMA/{name}", [2], tf.float32, zeros, use_resource=True)
    with tf.name_scope(None), tf.name_scope(f"summaries/{name}/"), tf.device(scalar.device):
        before = state.read_value()  # one for both: in a run with an update, it comes before it
        observed = tf.stack([tf.cast(scalar, tf.float32), 1.0])
        update = state.assign_sub((before - observed) * (1.0 - decay), read_value=False)
        biased, weight = tf.unstack(before)
        value = tf.div_no_nan(biased, weight, name="average")
    tf.add_to_collection(collection, update)
    create_scalar_summary(tag, value, summary_collections)
    averages[tag] = _MovingAverage(value, state, decay, collection)
    return value


def average_states(graph: Optional[tf.Graph] = None) -> List[tf.Variable]:
    """Returns the variables with the states of all moving averages of a graph."""
    return [average.state for average in _averages.get(graph).values()]


def create_scalar_summary(
    name: str, v: Any, collections: Optional[Iterable[str]] = None
) -> tf.Tensor:
    """Adds a summary of a numeric scalar under exactly this tag; returns it, a string scalar."""
    make = partial(tf.raw_ops.ScalarSummary, tags=name)
    return _add_summary(make, op_name_of_tag(name), v, collections)


def create_histogram_summary(
    name: str, v: Any, collections: Optional[Iterable[str]] = None
) -> tf.Tensor:
    """Adds a histogram of a numeric tensor of any shape; otherwise as `create_scalar_summary`."""
    make = partial(tf.raw_ops.HistogramSummary, tag=name)
    return _add_summary(make, op_name_of_tag(name) + "-histogram", v, collections)


def _add_summary(make: Any, op_name: str, v: Any, collections: Optional[Iterable[str]]) -> Any:
    with tf.name_scope(None), tf.name_scope("summaries/"):
        summary = make(values=tf.convert_to_tensor(v), name=op_name)
    for key in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(key, summary)
    return summary


def _tensor_or_variable(x: Any) -> Union[tf.Tensor, tf.Variable]:
    """Converts anything but a variable, whose name the tensor of its value does not have."""
    # Not all variables of TensorFlow 2 are a tf.Variable of TensorFlow 1.
    return x if hasattr(x, "read_value") else tf.convert_to_tensor(x)


def tag_of_tensor(tensor: Union[tf.Tensor, tf.Variable]) -> str:
    """Returns the name of a variable or a tensor's op (`_k` for output k > 0) in its tower."""
    context = get_current_tower_context()
    name = tensor.op.name
    if context is not None and context.ns_name and name.startswith(context.ns_name + "/"):
        name = name[len(context.ns_name) + 1 :]
    index = getattr(tensor, "value_index", 0)  # a variable has none
    return name if index == 0 else f"{name}_{index}"


def op_name_of_tag(tag: str) -> str:
    """Returns the tag with what an op name may not contain replaced."""
    return re.sub(r"[^A-Za-z0-9_.\-/]", "_", tag).strip("/") or "summary"


def root_mean_square(x: tf.Tensor, name: Optional[str] = None) -> tf.Tensor:
    """Returns the root mean square of all elements, a float32 scalar; float64 for float64."""
    # The loss is half the sum of squares, in one pass and without a tensor of all the squares: for
    # four million elements two to three times as fast as the mean of tf.square.
    half = half_square(x)
    return tf.sqrt(half * (2.0 / tf.cast(tf.size(x), half.dtype)), name=name)


def half_square(x: tf.Tensor, half: Optional[tf.Tensor] = None) -> tf.Tensor:
    """Returns half the sum of the squares of `x`: `half`, if that was passed in any call."""
    if half is not None:
        _half_squares.get(x.graph)[x.name] = half
    half = _half_squares.get(x.graph).get(x.name)
    with tf.device(x.device):
        return tf.nn.l2_loss(precise(x)) if half is None else half


def add_tensor_summary(
    x: Any,
    types: Sequence[str],
    name: Optional[str] = None,
    collections: Optional[Iterable[str]] = None,
    main_tower_only: bool = True,
) -> None:
    """Adds summaries of a tensor, each tagged `{name}-{type}`, to `collections` or `SUMMARIES`.

    Args:
      x: a numeric tensor; a scalar for the type `scalar`.
      types: of `scalar`, `histogram`, `sparsity` (share of zeros), `mean`, `rms`.
      name: by default that of the variable, or of the tensor's op.
      main_tower_only: whether to do nothing outside the main training tower.
    """
    if main_tower_only and not in_main_training_tower():
        return
    name = tag_of_tensor(_tensor_or_variable(x)) if name is None else name
    x = tf.convert_to_tensor(x)
    for kind in types:
        tag = f"{name}-{kind}"
        if kind == "histogram":
            create_histogram_summary(tag, x, collections)
        else:
            with tf.name_scope(None), tf.name_scope("summaries/"):
                value = _STATISTICS[kind](x)
            create_scalar_summary(tag, value, collections)


def add_activation_summary(
    x: Union[tf.Tensor, tf.Variable],
    types: Union[Sequence[str], str, None] = None,
    name: Optional[str] = None,
    collections: Optional[Iterable[str]] = None,
) -> None:
    """Adds summaries of a layer's output, tagged `activation-summary/{name}-{type}`.

    Args:
      x: a numeric tensor of rank 2 or more; others are left out with a warning.
      types: a list as in `add_tensor_summary`; by default `sparsity`, `rms` and `histogram`. A
        string in this place is the name, as in 2017.
      name, collections: as in `add_tensor_summary`.
    """
    if isinstance(types, str):
        if name is not None or types in ["histogram", *_STATISTICS]:
            raise TypeError(f"types must be a list, types=[{types!r}]; or pass name={types!r}.")
        types, name = None, types
    if x.shape.ndims is not None and x.shape.ndims < 2:
        logger.warn(f"{x.name} has no activation summary: its rank is {x.shape.ndims}, below 2.")
        return
    chosen = ["sparsity", "rms", "histogram"] if types is None else types
    tag = f"activation-summary/{tag_of_tensor(x) if name is None else name}"
    add_tensor_summary(x, chosen, name=tag, collections=collections)


def add_param_summary(
    *summary_lists: Tuple[str, Sequence[str]], collections: Optional[Iterable[str]] = None
) -> None:
    """Adds summaries of trainable variables, tagged `param-summary/{variable}-{type}`.

    Args:
      *summary_lists: pairs of a regular expression, which must match the whole name of a variable
        (without `:0`), and a list of types, as in `add_tensor_summary`.
    """
    if not in_main_training_tower():
        return
    variables = tf.trainable_variables()
    for pattern, types in summary_lists:
        matching = [var for var in variables if re.fullmatch(pattern, var.op.name)]
        if not matching:
            logger.warn(f"add_param_summary: no trainable variable matches {pattern!r} so far.")
        for var in matching:
            with tf.device(var.device):
                add_tensor_summary(var, types, f"param-summary/{var.op.name}", collections)


_STATISTICS: Dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "mean": lambda x: tf.reduce_mean(precise(x)),
    "rms": root_mean_square,
    "scalar": lambda x: x,
    "sparsity": tf.nn.zero_fraction,
}
