"""Image grids for display. Needs OpenCV; colour maps need matplotlib."""

import io
import itertools
import os
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .fs import mkdir_p
from .optional import require

_BOX_COLOUR = (218, 120, 40)
_LABEL_COLOUR = (255, 255, 255)
_ESCAPE = "\x1b"

_ClickCallback = Callable[[np.ndarray, int, int], Any]


def interactive_imshow(
    img: np.ndarray,
    lclick_cb: Optional[_ClickCallback] = None,
    rclick_cb: Optional[_ClickCallback] = None,
    **kwargs: Callable[[np.ndarray], Any],
) -> None:
    """Shows an image in a window until a key is pressed: `s` saves it as out.png, `x` exits.

    Args:
      img: [H, W] or [H, W, 3] BGR.
      lclick_cb, rclick_cb: called with (img, x, y) at a left and at a right click.
      **kwargs: `key_cb_<c>=f` calls `f(img)` when key c is pressed.
    """
    cv2 = require("cv2")
    clicks = {cv2.EVENT_LBUTTONUP: lclick_cb, cv2.EVENT_RBUTTONUP: rclick_cb}

    def on_mouse(event: int, x: int, y: int, *_: Any) -> None:
        callback = clicks.get(event)
        if callback is not None:
            callback(img, x, y)

    cv2.imshow("tensorpack", img)
    cv2.setMouseCallback("tensorpack", on_mouse)
    while True:
        name = chr(cv2.waitKey(-1) & 0xFF)
        if f"key_cb_{name}" in kwargs:
            kwargs[f"key_cb_{name}"](img)
        elif name == "s":
            cv2.imwrite("out.png", img)
        elif name == "x":
            raise SystemExit(0)
        elif name in ("q", _ESCAPE):
            break
    cv2.destroyWindow("tensorpack")


def stack_patches(
    patch_list: Sequence[np.ndarray],
    nr_row: int,
    nr_col: int,
    border: Optional[int] = None,
    pad: bool = False,
    bgcolor: Any = 255,
    viz: bool = False,
    lclick_cb: Optional[Callable[[int], Any]] = None,
) -> np.ndarray:
    """Arranges images in a grid, row by row; empty cells show the background.

    Args:
      patch_list: images [H, W], [H, W, 1] or [H, W, 3]; of one size unless `pad`.
      nr_row, nr_col: rows and columns of the grid.
      border: pixels between images; by default a tenth of the longer side, at most 10.
      pad: whether to centre smaller images in cells of the largest size.
      bgcolor: the background, a number or three (BGR).
      viz: whether to show the grid in a window.
      lclick_cb: called with the index of an image at a click on it.

    Returns:
      uint8 [rows, columns, 3], BGR.
    """
    patches = [_to_bgr(patch) for patch in patch_list]
    sizes = {patch.shape for patch in patches}
    if len(sizes) > 1 and not pad:
        raise ValueError(f"The images have different sizes {sorted(sizes)}: resize, or pad=True.")
    height, width = max(size[0] for size in sizes), max(size[1] for size in sizes)
    border = _default_border(height, width) if border is None else border
    grid = np.empty((nr_row * (height + border), nr_col * (width + border), 3), np.uint8)
    grid[:] = bgcolor
    for index, patch in enumerate(patches):
        row, col = divmod(index, nr_col)
        top = row * (height + border) + (height - patch.shape[0]) // 2
        left = col * (width + border) + (width - patch.shape[1]) // 2
        grid[top : top + patch.shape[0], left : left + patch.shape[1]] = patch
    grid = grid[: grid.shape[0] - border, : grid.shape[1] - border]

    def on_click(img: np.ndarray, x: int, y: int) -> None:
        index = y // (height + border) * nr_col + x // (width + border)
        if lclick_cb is not None and index < len(patches):
            lclick_cb(index)

    if viz:
        interactive_imshow(grid, lclick_cb=on_click)
    return grid


def gen_stack_patches(
    patch_list: Sequence[np.ndarray],
    nr_row: Optional[int] = None,
    nr_col: Optional[int] = None,
    border: Optional[int] = None,
    max_width: int = 1000,
    max_height: int = 1000,
    bgcolor: Any = 255,
    viz: bool = False,
    lclick_cb: Optional[Callable[[int], Any]] = None,
) -> Iterator[np.ndarray]:
    """Yields grids of images, page by page; the last one may have empty cells.

    Args:
      patch_list, border, bgcolor, viz: see `stack_patches`; the images have one size.
      nr_row, nr_col: of a page; by default as many as fit into `max_height` and `max_width` pixels.
      lclick_cb: called with the index of an image in `patch_list` at a click on it.
    """
    if not len(patch_list):
        return
    height, width = np.asarray(patch_list[0]).shape[:2]
    border = _default_border(height, width) if border is None else border
    rows = nr_row or max(1, (max_height + border) // (height + border))
    cols = nr_col or max(1, (max_width + border) // (width + border))
    for start in range(0, len(patch_list), rows * cols):
        page = patch_list[start : start + rows * cols]

        def on_click(index: int, start: int = start) -> None:
            if lclick_cb is not None:
                lclick_cb(start + index)

        yield stack_patches(page, rows, cols, border, False, bgcolor, viz, on_click)


def dump_dataflow_images(
    df: Any,
    index: int = 0,
    batched: bool = True,
    number: int = 1000,
    output_dir: Optional[str] = None,
    scale: float = 1,
    resize: Optional[Tuple[int, int]] = None,
    viz: Optional[Tuple[int, int]] = None,
    flipRGB: bool = False,
) -> int:
    """Writes images of a dataflow as `000.jpg`, `001.jpg`, ..., or shows them in grids, or both.

    Args:
      df: a DataFlow; its state is reset first, and it is read once.
      index: the component with the image or, if `batched`, a batch of images; a key of dicts.
      number: the maximum number of images.
      output_dir: the directory to write to; created if missing.
      scale: factor for the values.
      resize: (width, height) in pixels; by default images are not resized.
      viz: (rows, columns) of the grids to show.
      flipRGB: whether the images are RGB instead of BGR.

    Returns:
      the number of images.
    """
    cv2 = require("cv2")
    if output_dir is not None:
        mkdir_p(output_dir)
    page: List[np.ndarray] = []
    count = 0
    df.reset_state()
    components = (datapoint[index] for datapoint in df)
    images = itertools.chain.from_iterable(components) if batched else components
    for image in itertools.islice(images, number):
        image = _to_bgr(np.clip(np.asarray(image, dtype=np.float32) * scale, 0, 255))
        image = image[:, :, ::-1] if flipRGB else image
        if resize is not None:
            image = cv2.resize(np.ascontiguousarray(image), tuple(resize))
        if output_dir is not None:
            path = os.path.join(output_dir, f"{count:03d}.jpg")
            if not cv2.imwrite(path, image):  # OpenCV gives no reason
                raise OSError(f"Cannot write {path}. Check the free space and the permissions.")
        count += 1
        page.append(image)
        if viz is not None and len(page) == viz[0] * viz[1]:
            stack_patches(page, *viz, viz=True)
            page = []
    if viz is not None and page:
        stack_patches(page, *viz, viz=True)
    return count


def intensity_to_rgb(
    intensity: np.ndarray, cmap: str = "cubehelix", normalize: bool = False
) -> np.ndarray:
    """Returns intensities as colours, float32 [H, W, 3] in [0, 255], RGB.

    Args:
      intensity: [H, W], in [0, 1] unless `normalize`.
      cmap: a colour map of matplotlib.
      normalize: whether to stretch the values to [0, 1].
    """
    intensity = np.asarray(intensity, dtype=np.float32)
    if normalize:
        low, high = intensity.min(), intensity.max()
        intensity = (intensity - low) / (high - low) if high > low else intensity - low
    colours = require("matplotlib.cm", "matplotlib").ScalarMappable(cmap=cmap).get_cmap()
    return (colours(intensity)[:, :, :3] * 255).astype(np.float32)


def pyplot2img(plt: Any) -> np.ndarray:
    """Returns a figure, or the current one of the module `matplotlib.pyplot`, as an image, uint8
    [H, W, 3] BGR.
    """
    file = io.BytesIO()
    plt.savefig(file, format="png")
    file.seek(0)
    image = require("matplotlib.pyplot", "matplotlib").imread(file)  # RGBA in [0, 1]
    return (255 * image[:, :, 2::-1]).round().astype(np.uint8)


def draw_boxes(
    im: np.ndarray,
    boxes: np.ndarray,
    labels: Optional[Sequence[str]] = None,
    color: Optional[Tuple[int, int, int]] = None,
) -> np.ndarray:
    """Returns a copy of an image with boxes, uint8 [H, W, 3], BGR.

    Args:
      im: [H, W] or [H, W, 3].
      boxes: [N, 4], each (x1, y1, x2, y2) in pixels, inside the image.
      labels: one text per box.
      color: of the boxes, BGR.
    """
    cv2 = require("cv2")
    image = np.ascontiguousarray(_to_bgr(im))
    boxes = np.asarray(boxes, dtype=np.int64).reshape(-1, 4)
    height, width = image.shape[:2]
    for number, (x1, y1, x2, y2) in enumerate(boxes.tolist()):
        last = min(x2, width - 1), min(y2, height - 1)
        cv2.rectangle(image, (x1, y1), last, color or _BOX_COLOUR, 1)
        if labels is not None:
            place, font = (x1, max(y1 - 3, 10)), cv2.FONT_HERSHEY_SIMPLEX
            cv2.putText(image, labels[number], place, font, 0.4, _LABEL_COLOUR, 1, cv2.LINE_AA)
    return image


def _default_border(height: int, width: int) -> int:
    return min(10, max(height, width) // 10)


def _to_bgr(image: np.ndarray) -> np.ndarray:
    """Returns a new uint8 [H, W, 3] of a grey or colour image."""
    image = np.asarray(image)
    if image.ndim == 2:
        image = image[:, :, np.newaxis]
    image = np.clip(image, 0, 255).astype(np.uint8)
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
