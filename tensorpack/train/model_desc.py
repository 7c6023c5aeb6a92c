"""Where later scripts find the model descriptions; they live in `tensorpack.graph_builder`."""

from tensorpack.graph_builder import ModelDesc, ModelDescBase

__all__ = ["ModelDesc", "ModelDescBase"]
