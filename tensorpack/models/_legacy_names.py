"""Argument names of layers in scripts of 2017, and the later names that the layers use internally.

The order of positional arguments needs no translation: the layers keep the order of 2017, and the
later order is a prefix of it wherever later scripts may pass arguments by position.
"""

from typing import Dict

from tensorpack.tfutils.argscope import Converted, Renaming

_INPUTS: Dict[str, str] = {"x": "inputs"}
WEIGHTS: Dict[str, str] = {
    "W_init": "kernel_initializer",
    "b_init": "bias_initializer",
    "nl": "activation",
}
_CONVOLUTION = {**_INPUTS, **WEIGHTS, "kernel_shape": "kernel_size", "stride": "strides"}
_POOLING: Dict[str, str] = {**_INPUTS, "shape": "pool_size", "stride": "strides"}
_AFFINE: Dict[str, str] = {
    "use_bias": "center",
    "use_scale": "scale",
    "gamma_init": "gamma_initializer",
}

# Layer -> other name of an argument -> internal name.
RENAMED: Dict[str, Renaming] = {
    **dict.fromkeys("BNReLU BilinearUpSample ConcatWith FixedUnPooling".split(), _INPUTS),
    **dict.fromkeys("GlobalAvgPooling LeakyReLU Maxout PReLU SoftMax".split(), _INPUTS),
    "AvgPooling": _POOLING,
    "BatchNorm": {
        **_INPUTS,
        **_AFFINE,
        "use_local_stat": "training",
        "decay": "momentum",
        "internal_update": Converted("ema_update", lambda on: "internal" if on else "default"),
    },
    "BatchRenorm": {**_INPUTS, **_AFFINE, "decay": "momentum"},
    "Conv2D": {**_CONVOLUTION, "out_channel": "filters"},
    "Conv2DTranspose": {**_CONVOLUTION, "out_channel": "filters", "out_shape": "filters"},
    "DepthwiseConv2D": _CONVOLUTION,
    # The second positional argument has always meant the probability to keep.
    "Dropout": {
        **_INPUTS,
        "is_training": "training",
        "rate": Converted("keep_prob", lambda rate: 1.0 - rate),
    },
    "FullyConnected": {**_INPUTS, **WEIGHTS, "out_dim": "units"},
    "GroupNorm": {**_INPUTS, **_AFFINE, "group": "groups"},
    "InstanceNorm": {**_INPUTS, **_AFFINE},
    "LayerNorm": {**_INPUTS, **_AFFINE},
    "MaxPooling": _POOLING,
}
