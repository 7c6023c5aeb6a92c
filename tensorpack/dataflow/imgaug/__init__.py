"""Augmentors of images, which move coordinates, boxes and masks along with them.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "AugmentationError Augmentor AugmentorList ImageAugmentor PhotometricAugmentor",
    "crop": (
        "BackgroundFiller CenterCrop CenterPaste ConstantBackgroundFiller "
        "GoogleNetRandomCropAndResize PasteTransform RandomCrop RandomCropAroundBox "
        "RandomCropRandomShape RandomCutout RandomPaste perturb_BB"
    ),
    "geometry": (
        "Affine Flip GaussianDeform RandomResize RemapTransform Resize ResizeShortestEdge Rotation "
        "RotationAndCropValid Shift ShiftTransform Transpose"
    ),
    "imgproc": (
        "Brightness BrightnessScale Clip ColorSpace Contrast Gamma GaussianBlur Grayscale Hue "
        "Lighting MeanVarianceNormalize MinMaxNormalize Saturation ToFloat32 ToUint8"
    ),
    "meta": (
        "Albumentations IAAugmentor Identity MapImage RandomApplyAug RandomChooseAug RandomOrderAug"
    ),
    "noise": "GaussianNoise JpegNoise SaltPepperNoise",
    "transform": (
        "CropTransform FlipTransform NoOpTransform PhotometricTransform ResizeTransform Transform "
        "TransformFactory TransformList TransposeTransform WarpAffineTransform"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
