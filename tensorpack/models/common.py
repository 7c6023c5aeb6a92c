"""The old address of `layer_register` and related names, see `registry.py` and `tflayer.py`."""

from .registry import (
    VariableHolder,
    disable_layer_logging,
    get_registered_layer,
    layer_register,
)
from .tflayer import rename_tflayer_get_variable

__all__ = [
    "VariableHolder",
    "disable_layer_logging",
    "get_registered_layer",
    "layer_register",
    "rename_tflayer_get_variable",
]
