"""`tensorpack.models.utils` of older versions; see `tensorpack.models`."""

from tensorpack.models import (
    VariableHolder,
)

__all__ = [
    "VariableHolder",
]
