"""Augmentors of images, which move coordinates, boxes and masks along with them."""

from .base import (
    AugmentationError,
    Augmentor,
    AugmentorList,
    ImageAugmentor,
    PhotometricAugmentor,
)
from .meta import Identity, MapImage, RandomApplyAug, RandomChooseAug, RandomOrderAug
from .misc import Flip, RandomResize, Resize, ResizeShortestEdge, Transpose
from .transform import (
    CropTransform,
    FlipTransform,
    PhotometricTransform,
    ResizeTransform,
    Transform,
    TransformFactory,
    TransformList,
    TransposeTransform,
    WarpAffineTransform,
)

__all__ = [
    "AugmentationError",
    "Augmentor",
    "AugmentorList",
    "CropTransform",
    "Flip",
    "FlipTransform",
    "Identity",
    "ImageAugmentor",
    "MapImage",
    "PhotometricAugmentor",
    "PhotometricTransform",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomOrderAug",
    "RandomResize",
    "Resize",
    "ResizeShortestEdge",
    "ResizeTransform",
    "Transform",
    "TransformFactory",
    "TransformList",
    "Transpose",
    "TransposeTransform",
    "WarpAffineTransform",
]
