"""Augmentors of images, which move coordinates, boxes and masks along with them."""

from .base import (
    AugmentationError,
    Augmentor,
    AugmentorList,
    ImageAugmentor,
    PhotometricAugmentor,
)
from .blur import GaussianBlur
from .convert import ColorSpace, Grayscale, ToFloat32, ToUint8
from .imgproc import Brightness, BrightnessScale, Clip, Contrast, Gamma, Hue, Lighting, Saturation
from .meta import Identity, MapImage, RandomApplyAug, RandomChooseAug, RandomOrderAug
from .misc import Flip, RandomResize, Resize, ResizeShortestEdge, Transpose
from .noise import GaussianNoise, JpegNoise, SaltPepperNoise
from .normalize import MeanVarianceNormalize, MinMaxNormalize
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
    "Brightness",
    "BrightnessScale",
    "Clip",
    "ColorSpace",
    "Contrast",
    "CropTransform",
    "Flip",
    "FlipTransform",
    "Gamma",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Hue",
    "Identity",
    "ImageAugmentor",
    "JpegNoise",
    "Lighting",
    "MapImage",
    "MeanVarianceNormalize",
    "MinMaxNormalize",
    "PhotometricAugmentor",
    "PhotometricTransform",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomOrderAug",
    "RandomResize",
    "Resize",
    "ResizeShortestEdge",
    "ResizeTransform",
    "SaltPepperNoise",
    "Saturation",
    "ToFloat32",
    "ToUint8",
    "Transform",
    "TransformFactory",
    "TransformList",
    "Transpose",
    "TransposeTransform",
    "WarpAffineTransform",
]

__path__.append(f"{__path__[0]}/../../_addresses/dataflow/imgaug")  # modules under their old names
