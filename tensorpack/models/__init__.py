"""Layers for TensorFlow graphs: named, with default arguments and shape log, in both spellings."""

from .batch_norm import BatchNorm, BatchRenorm
from .conv2d import Conv2D, Conv2DTranspose, Conv3D, Deconv2D
from .depthwise_conv2d import DepthwiseConv2D
from .fc import FullyConnected
from .image_sample import ImageSample
from .layer_norm import GroupNorm, InstanceNorm, LayerNorm
from .linearwrap import LinearWrap
from .nonlin import BNReLU, LeakyReLU, Maxout, PReLU
from .pool import (
    AvgPooling,
    AvgPooling3D,
    BilinearUpSample,
    FixedUnPooling,
    GlobalAvgPooling,
    MaxPooling,
    MaxPooling3D,
)
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
from .shape_utils import StaticDynamicAxis, StaticDynamicShape
from .shapes import ConcatWith
from .softmax import SoftMax
from .tflayer import rename_tflayer_get_variable

__all__ = [
    "AvgPooling",
    "AvgPooling3D",
    "BNReLU",
    "BatchNorm",
    "BatchRenorm",
    "BilinearUpSample",
    "ConcatWith",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Deconv2D",
    "DepthwiseConv2D",
    "Dropout",
    "FixedUnPooling",
    "FullyConnected",
    "GlobalAvgPooling",
    "GroupNorm",
    "ImageSample",
    "InstanceNorm",
    "LayerNorm",
    "LeakyReLU",
    "LinearWrap",
    "MaxPooling",
    "MaxPooling3D",
    "Maxout",
    "PReLU",
    "SoftMax",
    "StaticDynamicAxis",
    "StaticDynamicShape",
    "VariableHolder",
    "disable_layer_logging",
    "get_registered_layer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_register",
    "regularize_cost",
    "regularize_cost_from_collection",
    "rename_tflayer_get_variable",
]

__path__.append(f"{__path__[0]}/../_addresses/models")  # modules under their old names
