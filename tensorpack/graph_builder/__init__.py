"""Builds the training graph of a model description."""

from .model_desc import InputDesc, ModelDesc, ModelDescBase

__all__ = ["InputDesc", "ModelDesc", "ModelDescBase"]

__path__.append(f"{__path__[0]}/../_addresses/graph_builder")  # modules under their old names
