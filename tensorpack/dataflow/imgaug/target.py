"""What a component of a datapoint is to an augmentor, and how it follows the image."""

from typing import Any, Optional

from .transform import Transform

_METHODS = {
    "image": "apply_image",
    "mask": "apply_segmentation",
    "keypoints": "apply_coords",
    "boxes": "apply_box",
}


class Target:
    """A kind of data that follows an image, with an interpolation and a border of its own.

    Args:
      kind: "image", "mask" (`[h, w]` or `[h, w, c]`, values of pixels move but do not change),
        "keypoints" (floats `[N, 2]` of (x, y)) or "boxes" (floats `[N, 4]` of (x1, y1, x2, y2)).
      interp, fill: of images and masks, see `Transform.with_options`.

    Raises:
      ValueError: there is no such kind, or it has no such options.
    """

    def __init__(self, kind: str, interp: Optional[int] = None, fill: Any = None) -> None:
        if kind not in _METHODS:
            raise ValueError(f"Target: kind is one of {', '.join(_METHODS)}; got {kind!r}.")
        self.kind, self.interp, self.fill = kind, interp, fill
        self.method = _METHODS[kind]
        self.has_options = not (interp is None and fill is None)
        if self.has_options and kind not in ("image", "mask"):
            raise ValueError(f"Target({kind!r}): only images and masks have interp and fill.")

    def apply(self, tfm: Transform, value: Any) -> Any:
        """Returns the transformed component."""
        tfm = tfm.with_options(self.interp, self.fill) if self.has_options else tfm
        return getattr(tfm, self.method)(value)
