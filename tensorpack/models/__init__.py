"""Layers for TensorFlow graphs: named, with default arguments and shape log, in both spellings.

`__init__.pyi` has the names for editors.
"""

from importlib import import_module

_NAMES = {  # module -> its public names; then run scripts/public_names
    "batch_norm": "BatchNorm BatchRenorm",
    "conv2d": "Conv2D Conv2DTranspose Conv3D Deconv2D DepthwiseConv2D",
    "fc": "FullyConnected",
    "layer_norm": "GroupNorm InstanceNorm LayerNorm",
    "linearwrap": "ConcatWith LinearWrap",
    "nonlin": "BNReLU LeakyReLU Maxout PReLU SoftMax",
    "pool": (
        "AvgPooling AvgPooling3D BilinearUpSample FixedUnPooling GlobalAvgPooling ImageSample "
        "MaxPooling MaxPooling3D"
    ),
    "registry": "VariableHolder disable_layer_logging get_registered_layer layer_register",
    "regularize": (
        "Dropout l1_regularizer l2_regularizer regularize_cost regularize_cost_from_collection"
    ),
    "shape_utils": "StaticDynamicAxis StaticDynamicShape",
    "tflayer": "rename_tflayer_get_variable",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
for _module in _NAMES:  # which registers the layers
    import_module(f"{__name__}.{_module}")
