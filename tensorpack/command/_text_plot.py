"""Draws curves in a terminal: in dots of braille, or in letters where these cannot be shown."""

import math
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

# Bits of the dots in a character of braille, from the upper left: two columns of four.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800
_COLOURS = (34, 33, 32, 35, 36, 31)  # blue, yellow, green, magenta, cyan, red
_LETTERS = "*o+x#@%&abcdefghijklmnop"


class Look(NamedTuple):
    """How to draw.

    Attributes:
      width, height: of the area with the curves, in characters.
      braille: whether there is a font for it.
      colour: whether curves are told apart by colours of a terminal.
    """

    width: int
    height: int
    braille: bool
    colour: bool


Curves = Mapping[str, Tuple[Sequence[float], Sequence[float]]]  # name to x and y


def draw_text(title: str, curves: Curves, x_label: str, look: Look) -> str:
    """Returns lines with a plot, its axes, and the names of the curves if there are several."""
    points = [(x, y) for xs, ys in curves.values() for x, y in zip(xs, ys)]
    if not points:
        return f"{title}: no values"
    left, right = _range([x for x, _ in points])
    low, high = _range([y for _, y in points])
    dotted = look.braille and (look.colour or len(curves) == 1)
    columns, rows = look.width * (2 if dotted else 1), look.height * (4 if dotted else 1)
    canvas = _Canvas(look, dotted)
    for number, (xs, ys) in enumerate(curves.values()):
        at = [
            (
                round((x - left) / (right - left) * (columns - 1)),
                round((high - y) / (high - low) * (rows - 1)),
            )
            for x, y in zip(xs, ys)
        ]
        canvas.draw(number, at)
    return "\n".join(
        [title, *_with_axes(canvas.lines(), (low, high), (left, right), x_label, look)]
        + ([_legend(list(curves), look, dotted)] if len(curves) > 1 else [])
    )


class _Canvas:
    """Characters, each with the dots and the number of the last curve in it."""

    def __init__(self, look: Look, dotted: bool) -> None:
        self._look, self._dotted = look, dotted
        self._cells: Dict[Tuple[int, int], Tuple[int, int]] = {}  # column, row: dots, curve

    def draw(self, number: int, points: Sequence[Tuple[int, int]]) -> None:
        """Draws lines between the points of a curve."""
        for (x0, y0), (x1, y1) in zip([*points[:1], *points], points):
            count = max(abs(x1 - x0), abs(y1 - y0), 1)
            for i in range(count + 1):
                x, y = round(x0 + (x1 - x0) * i / count), round(y0 + (y1 - y0) * i / count)
                self._dot(x, y, number)

    def _dot(self, x: int, y: int, number: int) -> None:
        if not self._dotted:
            self._cells[x, y] = (0, number)
            return
        dots = self._cells.get((x // 2, y // 4), (0, 0))[0]
        self._cells[x // 2, y // 4] = (dots | _DOTS[y % 4][x % 2], number)

    def lines(self) -> List[str]:
        """Returns the characters of each row."""
        return [
            "".join(self._character(x, y) for x in range(self._look.width)).rstrip()
            for y in range(self._look.height)
        ]

    def _character(self, x: int, y: int) -> str:
        if (x, y) not in self._cells:
            return " "
        dots, number = self._cells[x, y]
        text = chr(_BRAILLE + dots) if self._dotted else _LETTERS[number % len(_LETTERS)]
        return _coloured(text, number) if self._look.colour else text


def _coloured(text: str, number: int) -> str:
    return f"\033[{_COLOURS[number % len(_COLOURS)]}m{text}\033[0m"


def _range(values: Sequence[float]) -> Tuple[float, float]:
    low, high = min(values), max(values)
    if low == high:
        margin = abs(low) / 2 or 1.0
        return low - margin, high + margin
    return low, high


def _with_axes(
    lines: List[str],
    y_range: Tuple[float, float],
    x_range: Tuple[float, float],
    x_label: str,
    look: Look,
) -> List[str]:
    (low, high), (left, right) = y_range, x_range
    marks = {0: high, len(lines) // 2: high - (high - low) * (len(lines) // 2) / (len(lines) - 1)}
    marks[len(lines) - 1] = low
    texts = {row: axis_text(value, high - low) for row, value in marks.items()}
    margin = max(map(len, texts.values()))
    bar, corner, dash = ("\u2502", "\u2514", "\u2500") if look.braille else ("|", "+", "-")
    drawn = [f"{texts.get(row, ''):>{margin}} {bar}{line}" for row, line in enumerate(lines)]
    begin, end = axis_text(left, right - left), axis_text(right, right - left)
    room = max(look.width - len(begin) - len(end), len(x_label) + 2)
    return [
        *drawn,
        f"{'':>{margin}} {corner}{dash * look.width}",
        f"{'':>{margin}}  {begin}{x_label.center(room)}{end}",
    ]


def axis_text(value: float, extent: float) -> str:
    """Returns a number with the digits that tell it apart from others on an axis."""
    if value == round(value) and abs(value) < 1e7:
        return f"{value:.0f}"
    largest = max(abs(value), abs(extent), 1e-300)
    digits = 3 + max(0, math.floor(math.log10(largest)) - math.floor(math.log10(extent or largest)))
    return f"{value:.{min(digits, 9)}g}"


def _legend(names: List[str], look: Look, dotted: bool) -> str:
    shown = []
    for number, name in enumerate(names):
        mark = "\u2501" if dotted else _LETTERS[number % len(_LETTERS)]
        shown.append(f"{_coloured(mark, number) if look.colour else mark} {name}")
    return "  ".join(shown)
