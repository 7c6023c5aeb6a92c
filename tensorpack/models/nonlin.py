"""Activations, which are layers too: all but `SoftMax` may be the `activation` of another layer."""

from typing import Any, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count, as_number

from ._legacy_names import RENAMED
from .batch_norm import BatchNorm
from .registry import VariableHolder, layer_register


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["PReLU"])
def PReLU(inputs: tf.Tensor, init: float = 0.001, name: Optional[str] = "output") -> tf.Tensor:
    """Rectifies with a learned slope: `max(x, 0) + alpha * min(x, 0)`.

    Variable: `alpha`, a scalar.

    With a scope name, `PReLU("prelu", x)`, the variable is `prelu/alpha`. As the activation of
    another layer (`activation=PReLU`, or `nl=PReLU.symbolic_function`) it belongs to that layer:
    `conv0/alpha`.

    Reference: He et al., "Delving Deep into Rectifiers", 2015, with one slope for all channels.

    Args:
      inputs: floating, any shape.
      init: initial value of the slope.
      name: of the resulting op.

    Returns:
      A tensor like `inputs`, with the `.variables` `alpha`.
    """
    inputs = tf.convert_to_tensor(inputs)
    alpha = tf.get_variable(
        "alpha", [], inputs.dtype.base_dtype, initializer=tf.constant_initializer(init)
    )
    with tf.name_scope("prelu"):
        rectified = _prelu(inputs, tf.convert_to_tensor(alpha))
    output = tf.identity(rectified, name=name or "output")
    output.variables = VariableHolder(alpha=alpha)
    return output


@tf.custom_gradient
def _prelu(x: tf.Tensor, alpha: tf.Tensor) -> Any:
    # On a CPU each op reads and writes its whole tensors: three here, and five for the gradients.
    positive = x > 0

    def gradients(grad: tf.Tensor) -> Any:
        negative = tf.minimum(x, tf.zeros([], x.dtype))
        return tf.where(positive, grad, alpha * grad), tf.reduce_sum(grad * negative)

    return tf.where(positive, x, alpha * x), gradients


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["LeakyReLU"])
def LeakyReLU(inputs: tf.Tensor, alpha: float, name: Optional[str] = "output") -> tf.Tensor:
    """Rectifies with a fixed slope: `max(x, alpha * x)`.

    Args:
      inputs: floating, any shape.
      alpha: the slope, in [0, 1].
      name: of the resulting op, a tensor like `inputs`.
    """
    alpha = as_number("LeakyReLU", "alpha", alpha, 0, 1)
    return tf.nn.leaky_relu(tf.convert_to_tensor(inputs), alpha, name=name or "output")


@layer_register(spelling=RENAMED["Maxout"], use_scope=None)
def Maxout(inputs: tf.Tensor, num_unit: int) -> tf.Tensor:
    """Takes the maximum of each `num_unit` neighbouring channels.

    Args:
      inputs: `[..., C]`; C must be known and a multiple of `num_unit`.
      num_unit: number of channels per group.

    Returns:
      The op `<layer>/output`, `[..., C / num_unit]`.
    """
    inputs = tf.convert_to_tensor(inputs)
    num_unit = as_count("Maxout", "num_unit", num_unit)
    channels = inputs.shape.as_list()[-1] if inputs.shape.ndims else None
    if channels is None or channels % num_unit:
        raise ValueError(
            f"Maxout: the number of channels must be a known multiple of {num_unit}; "
            f"got {inputs.name} with shape {inputs.shape}."
        )
    groups = [channels // num_unit, num_unit]
    parted = tf.reshape(inputs, tf.concat([tf.shape(inputs)[:-1], groups], 0))
    output = tf.reduce_max(parted, -1, name="output")
    output.set_shape(inputs.shape[:-1].concatenate(groups[0]))
    return output


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["BNReLU"])
def BNReLU(inputs: Any, name: Optional[str] = None) -> tf.Tensor:
    """Applies BatchNorm in the scope `bn`, then ReLU; usable as the activation of another layer.

    Args:
      inputs: `[N, C]` or `[N, H, W, C]`.
      name: of the resulting op, a tensor like `inputs`.
    """
    return tf.nn.relu(BatchNorm("bn", inputs), name=name)


@layer_register(spelling=RENAMED["SoftMax"])
def SoftMax(
    inputs: tf.Tensor, use_temperature: bool = False, temperature_init: float = 1.0
) -> tf.Tensor:
    """Turns the last axis into probabilities: `softmax(x / temperature)`.

    Variable, only with a temperature: `invtemp`, a scalar, the inverse of the temperature.

    Args:
      inputs: floating `[..., C]`.
      use_temperature: whether to divide by a temperature that is learned.
      temperature_init: the temperature at first, above 0.

    Returns:
      The op `<layer>/output`, like `inputs`; with a temperature it has the `.variables` `invtemp`.
    """
    inputs = tf.convert_to_tensor(inputs)
    variables = VariableHolder()
    if use_temperature:
        variables.invtemp = tf.get_variable(
            "invtemp", [], inputs.dtype.base_dtype, tf.constant_initializer(1.0 / temperature_init)
        )
        inputs = inputs * variables.invtemp
    output = tf.nn.softmax(inputs, name="output")
    output.variables = variables
    return output
