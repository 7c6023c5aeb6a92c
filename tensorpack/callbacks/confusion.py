"""Which classes a classifier takes for which others: scalars, a matrix and the worst mistakes."""

import heapq
import os
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic
from tensorpack.utils.checks import as_count, as_list
from tensorpack.utils.optional import require
from tensorpack.utils.viz import stack_patches

from ._images import to_png
from .inference import Inferencer

_MOST_SCALARS, _MOST_DRAWN, _MOST_LETTERS = 10, 30, 18
_CELL, _TILE, _SIDE, _COLUMNS = 44, 128, 112, 6  # pixels, and images in a row
_RIGHT, _WRONG = np.array([31, 119, 180]), np.array([214, 39, 40])  # colours of a full cell


class ConfusionMatrix(Inferencer):
    """Counts which classes are taken for which, and draws that and the worst mistakes, by OpenCV.

    The scalars are `{prefix}_accuracy`, `{prefix}_balanced_accuracy`, the mean over classes, and
    with at most 10 classes `{prefix}_accuracy/{class}`. Classes without examples do not count.

    Each validation writes `{prefix}_confusion.png`, whose rows are true classes, and
    `{prefix}_mistakes.png` to the log directory, for `tensorpack report`, and gives them to the
    monitors. Of more than 30 classes, those with the most mistakes are drawn.

    Args:
      predicted: name of the scores, float `[batch, classes]`, such as logits or probabilities, or
        of the predicted classes, int `[batch]`.
      label: name of the true classes, int `[batch]`; may be an input of the model.
      classes: the names of the classes, in order; by default their numbers.
      image: name of the images, `[batch, height, width, 1 or 3]` in RGB; None to draw no mistakes.
      most_mistakes: how many are drawn, the largest score above that of the true class first.
      prefix: of the names.

    Attributes:
      counts: (true class, predicted class) -> number, of the last validation.
    """

    def __init__(
        self,
        predicted: str,
        label: str = "label",
        classes: Optional[Sequence[str]] = None,
        *,
        image: Optional[str] = None,
        most_mistakes: int = 24,
        prefix: str = "validation",
    ) -> None:
        require("cv2")
        self._names = [predicted, label] + ([] if image is None else [image])
        self._classes = None if classes is None else [*map(str, as_list(self, "classes", classes))]
        self._most = as_count(self, "most_mistakes", most_mistakes)
        self.prefix = prefix
        self._before_inference()

    def _before_inference(self) -> None:
        self.counts: Dict[Tuple[int, int], int] = Counter()
        self._mistakes: List[Any] = []  # a heap, the smallest mistake first
        self._wrong = 0

    def _get_fetches(self) -> List[str]:
        return self._names

    def _on_fetches(self, results: List[Any]) -> None:
        scores, true = np.asarray(results[0]), np.asarray(results[1])
        predicted = scores.argmax(axis=1) if scores.ndim == 2 and scores.shape[1] else scores
        for name, value in zip(self._names, (predicted, true)):
            if value.shape != true.shape or true.ndim != 1 or value.dtype.kind not in "iub":
                raise ValueError(
                    f"{self} takes int [batch], or scores [batch, classes], but {name!r} has "
                    f"{value.dtype} {list(value.shape)}, for labels of shape {list(true.shape)}."
                )
            number = np.inf if self._classes is None else len(self._classes)
            if value.size and not 0 <= value.min() <= value.max() < number:
                ends = f"{value.min()} to {value.max()}"
                raise ValueError(f"{name!r} has classes from {ends}, of {number} classes.")
        self.counts.update(zip(true.tolist(), predicted.tolist()))
        for index in np.flatnonzero(predicted != true) if len(results) == 3 else ():
            pair, margin = (int(true[index]), int(predicted[index])), 0.0
            if scores.ndim == 2:
                margin = float(scores[index, pair[1]]) - float(scores[index, pair[0]])
            self._wrong += 1
            key = np.inf if np.isnan(margin) else margin, -self._wrong  # of equal ones the first
            push = heapq.heappush if len(self._mistakes) < self._most else heapq.heappushpop
            push(self._mistakes, (key, _thumbnail(results[2][index]), *pair))

    def _after_inference(self) -> Dict[str, float]:
        totals: Dict[int, int] = Counter()
        for (true, _), count in self.counts.items():
            totals[true] += count
        if not totals:
            return {}
        recalls = {each: self.counts[each, each] / totals[each] for each in sorted(totals)}
        begin, right = f"{self.prefix}_accuracy", sum(self.counts[each, each] for each in totals)
        scalars = {begin: right / sum(totals.values())}
        scalars[f"{self.prefix}_balanced_accuracy"] = sum(recalls.values()) / len(recalls)
        if len(self._classes or recalls) <= _MOST_SCALARS:
            scalars.update({f"{begin}/{self._name(each)}": recalls[each] for each in recalls})
        self._put("confusion", self._draw_matrix(totals))
        if len(self._names) == 3:
            self._put("mistakes", self._draw_mistakes())
        return scalars

    def _name(self, number: int) -> str:
        return str(number) if self._classes is None else self._classes[number]

    def _draw_matrix(self, totals: Dict[int, int]) -> np.ndarray:
        mistakes: Dict[int, int] = Counter()  # of each class that occurs
        for pair, count in self.counts.items():
            mistakes.update(dict.fromkeys(pair, count if pair[0] != pair[1] else 0))
        shown = sorted(sorted(mistakes, key=lambda each: (-mistakes[each], each))[:_MOST_DRAWN])
        names = [self._name(each)[:_MOST_LETTERS] for each in shown]
        margin = 7 * max(map(len, names)) + 30
        picture = np.full((margin + _CELL * len(shown),) * 2 + (3,), 255, np.uint8)
        for row, true in enumerate(shown):
            place = margin + _CELL * row
            _paste(picture, _text(f"is {names[row]}"), place + 15, 4)
            column_name = np.rot90(_text(f"as {names[row]}"))
            _paste(picture, column_name, max(0, margin - 4 - column_name.shape[0]), place + 15)
            for column, other in enumerate(shown):
                count = self.counts.get((true, other), 0)
                full = _RIGHT if true == other else _WRONG
                colour = 255 + count / max(totals[true], 1) * (full - 255)
                cell = np.full((_CELL - 1, _CELL - 1, 3), colour.astype(np.uint8))
                _paste(cell, _text(f"{count:.5g}" if count else "", colour), 15, 4)
                _paste(picture, cell, place, margin + _CELL * column)
        return picture

    def _draw_mistakes(self) -> np.ndarray:
        tiles = []
        for _, image, true, other in sorted(self._mistakes, key=lambda each: each[0], reverse=True):
            tiles.append(np.full((_TILE + 36, _TILE, 3), 255, np.uint8))
            _paste(tiles[-1], image, (_TILE - image.shape[0]) // 2, (_TILE - image.shape[1]) // 2)
            _paste(tiles[-1], _text(f"is {self._name(true)}"), _TILE + 2, 0)
            _paste(tiles[-1], _text(f"as {self._name(other)}"), _TILE + 18, 0)
        tiles = tiles or [_text("no mistakes")]
        columns = min(len(tiles), _COLUMNS)
        return stack_patches(tiles, -(-len(tiles) // columns), columns, border=6)

    def _put(self, what: str, picture: np.ndarray) -> None:
        name = f"{self.prefix}_{what}"
        self.trainer.monitors.put_image(name, picture)
        directory = logger.get_logger_dir()
        if directory is not None:
            write_atomic(os.path.join(directory, name.replace("/", "-") + ".png"), to_png(picture))


def _thumbnail(image: Any) -> np.ndarray:
    """Returns an image as uint8 `[h, w, 3]`, the longer side `_SIDE`; floats are stretched."""
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] not in (1, 3) or not image.size:
        raise ValueError(
            "ConfusionMatrix: the images must be [batch, height, width, 1 or 3], but one has the "
            f"shape {list(image.shape)}. Name a tensor of images, or give image=None."
        )
    if image.dtype != np.uint8:
        image = np.nan_to_num(image.astype(np.float32))
        image = ((image - image.min()) * (255 / max(np.ptp(image), 1e-12))).astype(np.uint8)
    cv2 = require("cv2")
    longest = max(image.shape[:2])
    size = [max(1, round(side * _SIDE / longest)) for side in image.shape[1::-1]]
    how = cv2.INTER_AREA if longest > _SIDE else cv2.INTER_NEAREST
    return cv2.resize(image.repeat(3 // image.shape[2], axis=2), tuple(size), interpolation=how)


def _text(text: str, background: Any = 255) -> np.ndarray:
    cv2 = require("cv2")  # whose fonts have ASCII alone
    text = text[: _MOST_LETTERS + 3].encode("ascii", "replace").decode("ascii")
    patch = np.full((15, 7 * len(text) + 4, 3), background, np.uint8)
    colour = (255,) * 3 if np.mean(background) < 130 else (0,) * 3
    cv2.putText(patch, text, (0, 11), cv2.FONT_HERSHEY_SIMPLEX, 0.4, colour, 1, cv2.LINE_AA)
    return patch


def _paste(canvas: np.ndarray, patch: np.ndarray, top: int, left: int) -> None:
    target = canvas[top : top + patch.shape[0], left : left + patch.shape[1]]
    target[:] = patch[: target.shape[0], : target.shape[1]]
