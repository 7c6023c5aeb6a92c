"""Image grids for display. Needs OpenCV; colour maps need matplotlib."""

import io
import itertools
import os
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

import numpy as np

from .fs import mkdir_p
from .optional import require

_WINDOW = "tensorpack"
_BOX_COLOUR = (218, 120, 40)
_LABEL_COLOUR = (255, 255, 255)

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

    cv2.imshow(_WINDOW, img)
    cv2.setMouseCallback(_WINDOW, on_mouse)
    key = ""
    while key not in ("q", "\x1b"):  # escape
        key = chr(cv2.waitKey(-1) & 0xFF)
        if f"key_cb_{key}" in kwargs:
            kwargs[f"key_cb_{key}"](img)
            key = ""
        elif key == "s":
            cv2.imwrite("out.png", img)
        elif key == "x":
            raise SystemExit(0)
    cv2.destroyWindow(_WINDOW)


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
    """Returns images in a grid, row by row, uint8 [rows, columns, 3] BGR.

    Args:
      patch_list: images [H, W], [H, W, 1] or [H, W, 3]; of one size unless `pad`.
      nr_row, nr_col: rows and columns of the grid; empty cells show the background.
      border: pixels between images; by default a tenth of the longer side, at most 10.
      pad: whether to centre smaller images in cells of the largest size.
      bgcolor: the background, a number or three (BGR).
      viz: whether to show the grid in a window.
      lclick_cb: called with the index of an image at a click on it.
    """
    patches = [_to_bgr(patch) for patch in patch_list]
    sizes = sorted({patch.shape[:2] for patch in patches})
    if len(sizes) > 1 and not pad:
        raise ValueError(f"The images have different sizes {sizes}: resize, or pad=True.")
    height, width = np.max(sizes, axis=0)
    border = _border(height, width) if border is None else border
    cell_height, cell_width = height + border, width + border
    grid = np.empty((nr_row * cell_height - border, nr_col * cell_width - border, 3), np.uint8)
    grid[:] = bgcolor
    for index, patch in enumerate(patches):
        row, col = divmod(index, nr_col)
        top = row * cell_height + (height - patch.shape[0]) // 2
        left = col * cell_width + (width - patch.shape[1]) // 2
        grid[top : top + patch.shape[0], left : left + patch.shape[1]] = patch

    def on_click(img: np.ndarray, x: int, y: int) -> None:
        index = y // cell_height * nr_col + x // cell_width
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
    """Yields grids of images of one size, page by page; see `stack_patches` for the arguments.

    By default a page has as many rows and columns as fit into `max_height` and `max_width` pixels.
    `lclick_cb` gets the index in `patch_list`.
    """
    if not len(patch_list):
        return
    height, width = np.asarray(patch_list[0]).shape[:2]
    border = _border(height, width) if border is None else border
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
    df.reset_state()
    components = (datapoint[index] for datapoint in df)
    arrays = itertools.chain.from_iterable(components) if batched else components
    arrays = (_to_bgr(np.asarray(array, np.float32) * scale) for array in arrays)
    images = itertools.islice(arrays, number)
    count = 0
    page_size = int(np.prod(viz or 1))
    for page in iter(lambda: list(itertools.islice(images, page_size)), []):
        if flipRGB:
            page = [np.ascontiguousarray(image[:, :, ::-1]) for image in page]
        if resize is not None:
            page = [cv2.resize(image, tuple(resize)) for image in page]
        for image in page:
            path = os.path.join(output_dir or "", f"{count:03d}.jpg")
            count += 1
            # OpenCV gives no reason
            if output_dir is not None and not cv2.imwrite(path, image):
                raise OSError(f"Cannot write {path}. Check the free space and the permissions.")
        if viz is not None:
            stack_patches(page, *viz, viz=True)
    return count


def intensity_to_rgb(
    intensity: np.ndarray, cmap: str = "cubehelix", normalize: bool = False
) -> np.ndarray:
    """Returns intensities [H, W] as colours, float32 [H, W, 3] in [0, 255], RGB.

    They are in [0, 1], or are stretched to it by `normalize`; `cmap` is a colour map of matplotlib.
    """
    intensity = np.asarray(intensity, dtype=np.float32)
    if normalize:
        intensity = intensity - intensity.min()
        intensity /= intensity.max() or 1
    colours = require("matplotlib.cm", "matplotlib").ScalarMappable(cmap=cmap).get_cmap()
    return (colours(intensity)[:, :, :3] * 255).astype(np.float32)


def pyplot2img(plt: Any) -> np.ndarray:
    """Returns a figure, or the current one of `matplotlib.pyplot`, as uint8 [H, W, 3] BGR."""
    file = io.BytesIO()
    plt.savefig(file, format="png")
    return require("cv2").imdecode(np.frombuffer(file.getbuffer(), np.uint8), 1)


def draw_boxes(
    im: np.ndarray,
    boxes: np.ndarray,
    labels: Optional[Sequence[str]] = None,
    color: Optional[Tuple[int, int, int]] = None,
) -> np.ndarray:
    """Returns a copy of an image [H, W] or [H, W, 3] with boxes, uint8 [H, W, 3] BGR.

    Boxes [N, 4] are (x1, y1, x2, y2) in pixels, inside the image; `color` is BGR, and there is a
    text in `labels` for each box.
    """
    cv2 = require("cv2")
    image = np.ascontiguousarray(_to_bgr(im))
    height, width = image.shape[:2]
    for i, (x1, y1, x2, y2) in enumerate(np.asarray(boxes, np.int64).reshape(-1, 4).tolist()):
        corner = min(x2, width - 1), min(y2, height - 1)
        cv2.rectangle(image, (x1, y1), corner, color or _BOX_COLOUR, 1)
        if labels is not None:
            origin, font = (x1, max(y1 - 3, 10)), cv2.FONT_HERSHEY_SIMPLEX
            cv2.putText(image, labels[i], origin, font, 0.4, _LABEL_COLOUR, 1, cv2.LINE_AA)
    return image


def _border(height: int, width: int) -> int:
    return min(10, max(height, width) // 10)


def _to_bgr(image: np.ndarray) -> np.ndarray:
    """Returns a new uint8 [H, W, 3] of a grey or colour image."""
    image = np.atleast_3d(np.clip(image, 0, 255).astype(np.uint8))
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
