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
from .crop import (
    CenterCrop,
    GoogleNetRandomCropAndResize,
    RandomCrop,
    RandomCropAroundBox,
    RandomCropRandomShape,
    RandomCutout,
    perturb_BB,
)
from .deform import (
    GaussianDeform,
    RemapTransform,
)
from .external import (
    Albumentations,
    IAAugmentor,
)
from .geometry import (
    Affine,
    Rotation,
    RotationAndCropValid,
    Shift,
    ShiftTransform,
)
from .imgproc import Brightness, BrightnessScale, Clip, Contrast, Gamma, Hue, Lighting, Saturation
from .meta import Identity, MapImage, RandomApplyAug, RandomChooseAug, RandomOrderAug
from .misc import Flip, RandomResize, Resize, ResizeShortestEdge, Transpose
from .noise import GaussianNoise, JpegNoise, SaltPepperNoise
from .normalize import MeanVarianceNormalize, MinMaxNormalize
from .paste import (
    BackgroundFiller,
    CenterPaste,
    ConstantBackgroundFiller,
    PasteTransform,
    RandomPaste,
)
from .target import Target
from .transform import (
    CropTransform,
    FlipTransform,
    NoOpTransform,
    PhotometricTransform,
    ResizeTransform,
    Transform,
    TransformFactory,
    TransformList,
    TransposeTransform,
    WarpAffineTransform,
)

__all__ = [
    "Affine",
    "Albumentations",
    "AugmentationError",
    "Augmentor",
    "AugmentorList",
    "BackgroundFiller",
    "Brightness",
    "BrightnessScale",
    "CenterCrop",
    "CenterPaste",
    "Clip",
    "ColorSpace",
    "ConstantBackgroundFiller",
    "Contrast",
    "CropTransform",
    "Flip",
    "FlipTransform",
    "Gamma",
    "GaussianBlur",
    "GaussianDeform",
    "GaussianNoise",
    "GoogleNetRandomCropAndResize",
    "Grayscale",
    "Hue",
    "IAAugmentor",
    "Identity",
    "ImageAugmentor",
    "JpegNoise",
    "Lighting",
    "MapImage",
    "MeanVarianceNormalize",
    "MinMaxNormalize",
    "NoOpTransform",
    "PasteTransform",
    "PhotometricAugmentor",
    "PhotometricTransform",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomCrop",
    "RandomCropAroundBox",
    "RandomCropRandomShape",
    "RandomCutout",
    "RandomOrderAug",
    "RandomPaste",
    "RandomResize",
    "RemapTransform",
    "Resize",
    "ResizeShortestEdge",
    "ResizeTransform",
    "Rotation",
    "RotationAndCropValid",
    "SaltPepperNoise",
    "Saturation",
    "Shift",
    "ShiftTransform",
    "Target",
    "ToFloat32",
    "ToUint8",
    "Transform",
    "TransformFactory",
    "TransformList",
    "Transpose",
    "TransposeTransform",
    "WarpAffineTransform",
    "perturb_BB",
]
