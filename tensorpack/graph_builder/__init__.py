"""Builds the training graph of a model description."""

from .model_desc import InputDesc, ModelDesc, ModelDescBase

__all__ = ["InputDesc", "ModelDesc", "ModelDescBase"]
