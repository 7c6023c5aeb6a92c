"""`tensorpack.train.model_desc` of older versions; see `tensorpack.graph_builder`."""

from tensorpack.graph_builder import (
    ModelDesc,
    ModelDescBase,
)

__all__ = [
    "ModelDesc",
    "ModelDescBase",
]
