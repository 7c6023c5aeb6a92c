"""Draws the pictures of docs/augmentors.md: each augmentor applied to one picture.

On the picture lie a box (yellow), three points (red) and the outline of a mask (white). Where an
augmentor says nothing of one of them, it is missing. The result is the same in each run.

    python docs/draw_augmentors.py [FOLDER]
"""

import re
import sys
from pathlib import Path

import cv2
import numpy as np

from tensorpack.dataflow import imgaug

WIDTH, HEIGHT = 120, 90  # of the picture
CELL, TEXT, COLUMNS = 128, 26, 5
BOX = [[15, 26, 66, 84]]
POINTS = [[40.5, 30.5], [92.5, 22.5], [84.5, 76.5]]
PAPER, INK, YELLOW, RED, WHITE = (
    (245, 245, 245),
    (60, 60, 60),
    (0, 215, 255),
    (40, 40, 230),
    (255,) * 3,
)
EIGENVALUES = [55.5, 4.8, 1.2]
EIGENVECTORS = [[0.41, 0.72, -0.57], [-0.81, 0.0, -0.58], [0.42, -0.69, -0.58]]  # in BGR


def families():
    """Returns the augmentors to draw, by the name of their picture."""
    black = imgaug.ConstantBackgroundFiller(0)
    small = imgaug.Resize((54, 72))
    anchors = [(0.3, 0.3), (0.7, 0.3), (0.5, 0.7)]
    return {
        "geometry": [
            imgaug.Identity(),
            imgaug.Flip(horiz=True, prob=1),
            imgaug.Transpose(prob=1),
            imgaug.Resize((60, 120)),
            imgaug.ResizeShortestEdge(70),
            imgaug.RandomResize((0.5, 1.0), aspect_ratio_thres=0.4),
            imgaug.Shift(0.3, 0.3),
            imgaug.Rotation(40, center_range=(0.5, 0.5)),
            imgaug.RotationAndCropValid(25),
            imgaug.Affine(scale=(0.7, 1.2), rotate_max_deg=20, shear=20, border_value=128),
            imgaug.GaussianDeform(anchors, (HEIGHT, WIDTH), randrange=30),
        ],
        "crop": [
            imgaug.RandomCrop((60, 80)),
            imgaug.CenterCrop((60, 80)),
            imgaug.RandomCropRandomShape(50, 40),
            imgaug.RandomCropAroundBox(0.2),
            imgaug.GoogleNetRandomCropAndResize((0.3, 1.0), target_shape=100),
            imgaug.RandomCutout(30, 40),
            (imgaug.CenterPaste, [small, imgaug.CenterPaste((100, 120), black)]),
            (imgaug.RandomPaste, [small, imgaug.RandomPaste((100, 120), black)]),
        ],
        "colour": [
            imgaug.Hue((40, 140), rgb=False),
            imgaug.Saturation(0.9, rgb=False),
            imgaug.Brightness(80),
            imgaug.BrightnessScale((0.4, 1.6)),
            imgaug.Contrast((0.3, 0.6)),
            imgaug.Gamma(),
            imgaug.Lighting(0.8, EIGENVALUES, EIGENVECTORS),
            imgaug.Grayscale(),
            imgaug.ColorSpace(cv2.COLOR_BGR2LAB),
            imgaug.Clip(80, 180),
        ],
        "noise": [
            imgaug.GaussianBlur((2, 6)),
            imgaug.JpegNoise((5, 10)),
            imgaug.GaussianNoise(20),
            imgaug.SaltPepperNoise(),
        ],
    }


def picture():
    """Returns a house on a hill, and the mask of the house."""
    img = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    img[:] = np.linspace((230, 170, 110), (240, 215, 190), HEIGHT)[:, np.newaxis]
    cv2.circle(img, (92, 22), 11, (90, 210, 250), -1)
    cv2.ellipse(img, (60, 100), (95, 35), 0, 0, 360, (90, 160, 80), -1)
    cv2.circle(img, (84, 62), 11, (60, 120, 50), -1)
    cv2.rectangle(img, (83, 70), (86, 78), (50, 80, 110), -1)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    roof = np.array([[18, 52], [40, 30], [62, 52]], np.int32)
    for canvas, wall, top in ((img, (190, 200, 225), (60, 60, 180)), (mask, 1, 1)):
        cv2.rectangle(canvas, (23, 52), (57, 80), wall, -1)
        cv2.fillPoly(canvas, [roof], top)
    cv2.rectangle(img, (35, 62), (44, 80), (70, 90, 120), -1)
    cv2.rectangle(img, (48, 58), (54, 65), (200, 160, 90), -1)
    return img, mask


def drawn(augmentor):
    """Returns the augmented picture with what lies on it, uint8 BGR."""
    img, mask = picture()
    augmentor.use_rng(np.random.RandomState(8))
    img, tfm = augmentor.augment_return_params(img)
    img = np.ascontiguousarray(imgaug.ToUint8().augment(img))
    if img.ndim == 2 or img.shape[2] == 1:
        img = cv2.cvtColor(img, cv2.COLOR_GRAY2BGR)
    mask, boxes, points = (
        applied(tfm.apply_segmentation, mask),
        applied(tfm.apply_box, np.array(BOX, np.float64)),
        applied(tfm.apply_coords, np.array(POINTS)),
    )
    if mask is not None:
        outlines = cv2.findContours(
            np.ascontiguousarray(mask), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
        )
        cv2.drawContours(img, outlines[-2], -1, WHITE, 1)
    for x1, y1, x2, y2 in [] if boxes is None else np.floor(boxes).astype(int).tolist():
        cv2.rectangle(img, (x1, y1), (x2 - 1, y2 - 1), YELLOW, 1)
    for x, y in [] if points is None else np.floor(points).astype(int).tolist():
        cv2.circle(img, (x, y), 3, WHITE, -1)
        cv2.circle(img, (x, y), 2, RED, -1)
    return img


def applied(method, value):
    try:
        return method(value)
    except NotImplementedError:
        return None


def lines_of(name):
    """Returns a name in one or two lines that fit in a cell."""
    words = re.findall("[A-Z][a-z0-9]*", name)
    lines = [""]
    for word in words:
        if len(lines[-1] + word) > 19:
            lines.append("")
        lines[-1] += word
    return lines


def sheet(augmentors):
    """Returns a picture of several augmentors with their names."""
    rows = -(-len(augmentors) // COLUMNS)
    columns = min(COLUMNS, len(augmentors))
    canvas = np.full((rows * (CELL + TEXT), columns * CELL, 3), PAPER, np.uint8)
    for number, each in enumerate(augmentors):
        kind, augmentor = type(each), each
        if isinstance(each, tuple):
            kind, augmentor = each[0], imgaug.AugmentorList(each[1])
        img = drawn(augmentor)
        top, left = number // COLUMNS * (CELL + TEXT), number % COLUMNS * CELL
        y, x = top + (CELL - img.shape[0]) // 2, left + (CELL - img.shape[1]) // 2
        canvas[y : y + img.shape[0], x : x + img.shape[1]] = img
        for line, text in enumerate(lines_of(kind.__name__)):
            at = (left + 4, top + CELL + 8 + 12 * line)
            cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.34, INK, 1, cv2.LINE_AA)
    return canvas


def main(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, augmentors in families().items():
        path = Path(folder) / f"augmentors-{name}.png"
        if not cv2.imwrite(str(path), sheet(augmentors), [cv2.IMWRITE_PNG_COMPRESSION, 9]):
            raise OSError(f"{path} cannot be written.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images")
