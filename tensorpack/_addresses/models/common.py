"""`tensorpack.models.common` of older versions; see `tensorpack.models`."""

from tensorpack.models import (
    VariableHolder,
    disable_layer_logging,
    get_registered_layer,
    layer_register,
    rename_tflayer_get_variable,
)

__all__ = [
    "VariableHolder",
    "disable_layer_logging",
    "get_registered_layer",
    "layer_register",
    "rename_tflayer_get_variable",
]
