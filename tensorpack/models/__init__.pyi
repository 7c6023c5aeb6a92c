"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .batch_norm import BatchNorm as BatchNorm
from .batch_norm import BatchRenorm as BatchRenorm
from .conv2d import Conv2D as Conv2D
from .conv2d import Conv2DTranspose as Conv2DTranspose
from .conv2d import Conv3D as Conv3D
from .conv2d import Deconv2D as Deconv2D
from .conv2d import DepthwiseConv2D as DepthwiseConv2D
from .fc import FullyConnected as FullyConnected
from .layer_norm import GroupNorm as GroupNorm
from .layer_norm import InstanceNorm as InstanceNorm
from .layer_norm import LayerNorm as LayerNorm
from .linearwrap import ConcatWith as ConcatWith
from .linearwrap import LinearWrap as LinearWrap
from .nonlin import BNReLU as BNReLU
from .nonlin import LeakyReLU as LeakyReLU
from .nonlin import Maxout as Maxout
from .nonlin import PReLU as PReLU
from .nonlin import SoftMax as SoftMax
from .pool import AvgPooling as AvgPooling
from .pool import AvgPooling3D as AvgPooling3D
from .pool import BilinearUpSample as BilinearUpSample
from .pool import FixedUnPooling as FixedUnPooling
from .pool import GlobalAvgPooling as GlobalAvgPooling
from .pool import ImageSample as ImageSample
from .pool import MaxPooling as MaxPooling
from .pool import MaxPooling3D as MaxPooling3D
from .registry import VariableHolder as VariableHolder
from .registry import disable_layer_logging as disable_layer_logging
from .registry import get_registered_layer as get_registered_layer
from .registry import layer_register as layer_register
from .regularize import Dropout as Dropout
from .regularize import l1_regularizer as l1_regularizer
from .regularize import l2_regularizer as l2_regularizer
from .regularize import regularize_cost as regularize_cost
from .regularize import regularize_cost_from_collection as regularize_cost_from_collection
from .shape_utils import StaticDynamicAxis as StaticDynamicAxis
from .shape_utils import StaticDynamicShape as StaticDynamicShape
from .tflayer import rename_tflayer_get_variable as rename_tflayer_get_variable

__all__: List[str]
