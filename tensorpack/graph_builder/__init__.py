"""From one description of a model to the graph that trains it."""

from .model_desc import InputDesc, ModelDesc, ModelDescBase

__all__ = ["InputDesc", "ModelDesc", "ModelDescBase"]
