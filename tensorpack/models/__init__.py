"""Layers for TensorFlow graphs: named, with default arguments and shape log, in both spellings."""

from .batch_norm import BatchNorm
from .conv2d import Conv2D, Conv2DTranspose, Deconv2D
from .fc import FullyConnected
from .layer_norm import InstanceNorm, LayerNorm
from .linearwrap import LinearWrap
from .nonlin import BNReLU, LeakyReLU, Maxout, PReLU
from .pool import AvgPooling, FixedUnPooling, GlobalAvgPooling, MaxPooling
from .registry import (
    VariableHolder,
    disable_layer_logging,
    get_registered_layer,
    layer_register,
)
from .regularize import (
    Dropout,
    l1_regularizer,
    l2_regularizer,
    regularize_cost,
    regularize_cost_from_collection,
)
from .shapes import ConcatWith

__all__ = [
    "AvgPooling",
    "BNReLU",
    "BatchNorm",
    "ConcatWith",
    "Conv2D",
    "Conv2DTranspose",
    "Deconv2D",
    "Dropout",
    "FixedUnPooling",
    "FullyConnected",
    "GlobalAvgPooling",
    "InstanceNorm",
    "LayerNorm",
    "LeakyReLU",
    "LinearWrap",
    "MaxPooling",
    "Maxout",
    "PReLU",
    "VariableHolder",
    "disable_layer_logging",
    "get_registered_layer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_register",
    "regularize_cost",
    "regularize_cost_from_collection",
]
