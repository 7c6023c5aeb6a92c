"""Builds the training graph of a model description, for one tower or several."""

from .allreduce import allreduce_grads
from .data_parallel import DataParallelBuilder
from .model_desc import InputDesc, InputVar, ModelDesc, ModelDescBase
from .placement import LeastLoadedDeviceSetter

__all__ = [
    "DataParallelBuilder",
    "InputDesc",
    "InputVar",
    "LeastLoadedDeviceSetter",
    "ModelDesc",
    "ModelDescBase",
    "allreduce_grads",
]

__path__.append(f"{__path__[0]}/../_addresses/graph_builder")  # modules under their old names
