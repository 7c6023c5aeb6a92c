"""The softmax with a learned temperature."""

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_positive

from ._checks import check_floating
from ._legacy_names import RENAMED
from .registry import VariableHolder, layer_register

__all__ = ["SoftMax"]


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
    inputs = check_floating("SoftMax", tf.convert_to_tensor(inputs))
    variables = VariableHolder()
    if use_temperature:
        first = 1.0 / as_positive("SoftMax", "temperature_init", temperature_init)
        variables.invtemp = tf.get_variable(
            "invtemp", [], inputs.dtype.base_dtype, tf.constant_initializer(first)
        )
        inputs = inputs * variables.invtemp
    output = tf.nn.softmax(inputs, name="output")
    output.variables = variables
    return output
