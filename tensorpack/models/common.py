"""The address of `layer_register` and related names in old scripts; they live in `registry.py`."""

from .registry import (
    VariableHolder,
    disable_layer_logging,
    get_registered_layer,
    layer_register,
)

__all__ = [
    "VariableHolder",
    "disable_layer_logging",
    "get_registered_layer",
    "layer_register",
]
