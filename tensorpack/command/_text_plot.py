"""Draws curves in a terminal: in dots of braille, or in letters where these cannot be shown."""

import math
from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

# Bits of the dots in a character of braille, from the upper left: two columns of four.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE, _BAR = 0x2800, "\u2501"
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
    (left, right), (low, high) = (_range(values) for values in zip(*points))
    dotted = look.braille and (look.colour or len(curves) == 1)
    wide, tall = (2, 4) if dotted else (1, 1)  # dots in a character
    cells: Dict[Tuple[int, int], Tuple[int, int]] = {}  # column, row: dots, the last curve
    for number, (xs, ys) in enumerate(curves.values()):
        across = [(x - left) / (right - left) * (look.width * wide - 1) for x in xs]
        down = [(high - y) / (high - low) * (look.height * tall - 1) for y in ys]
        for x, y in _on_lines([(round(x), round(y)) for x, y in zip(across, down)]):
            dots, _ = cells.get((x // wide, y // tall), (0, 0))
            cells[x // wide, y // tall] = dots | _DOTS[y % tall][x % wide], number

    def mark(number: int, dot: str) -> str:
        text = dot if dotted else _LETTERS[number % len(_LETTERS)]
        return f"\033[{_COLOURS[number % len(_COLOURS)]}m{text}\033[0m" if look.colour else text

    def character(place: Tuple[int, int]) -> str:
        dots, number = cells.get(place, (0, 0))
        return mark(number, chr(_BRAILLE + dots)) if dots else " "

    rows = [
        "".join(character((x, y)) for x in range(look.width)).rstrip() for y in range(look.height)
    ]
    legend = [f"{mark(number, _BAR)} {name}" for number, name in enumerate(curves)]
    return "\n".join(
        [title, *_with_axes(rows, (low, high), (left, right), x_label, look)]
        + (["  ".join(legend)] if len(curves) > 1 else [])
    )


def _on_lines(points: Sequence[Tuple[int, int]]) -> Iterator[Tuple[int, int]]:
    """Yields what lies on the lines between points that follow each other."""
    for (x0, y0), (x1, y1) in zip([*points[:1], *points], points):
        count = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(count + 1):
            yield round(x0 + (x1 - x0) * i / count), round(y0 + (y1 - y0) * i / count)


def _range(values: Sequence[float]) -> Tuple[float, float]:
    low, high = min(values), max(values)
    margin = (abs(low) / 2 or 1.0) if low == high else 0.0
    return low - margin, high + margin


def _with_axes(
    rows: List[str],
    y_range: Tuple[float, float],
    x_range: Tuple[float, float],
    x_label: str,
    look: Look,
) -> List[str]:
    (low, high), (left, right) = y_range, x_range
    last = len(rows) - 1
    values = {at: high - (high - low) * at / last for at in (0, len(rows) // 2)}
    texts = {at: axis_text(each, high - low) for at, each in {**values, last: low}.items()}
    margin = max(map(len, texts.values()))
    bar, corner, dash = ("\u2502", "\u2514", "\u2500") if look.braille else ("|", "+", "-")
    begin, end = axis_text(left, right - left), axis_text(right, right - left)
    room = max(look.width - len(begin) - len(end), len(x_label) + 2)
    return [
        *(f"{texts.get(at, ''):>{margin}} {bar}{row}" for at, row in enumerate(rows)),
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
