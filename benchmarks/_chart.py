"""The picture in docs/performance.md: how many times as fast as others, a dot for each ratio."""

import math
from html import escape

from _report import Row, number
from figures import FIGURES

WIDTH, EDGE, LINE, ROW = 480, 14, 18, 38  # pixels; narrow enough for a phone
TICKS = (0.2, 0.5, 1, 2, 5, 10, 20)
# Greys and colours that are read on white and on black.
STYLE = """text { font: 13px sans-serif; fill: #787878 } .head { font-weight: bold }
.up { text-anchor: middle } .end { text-anchor: end } line { stroke: #787878; opacity: 0.35 }
.one { opacity: 1 } .ahead { fill: #3a83d6 } .behind { fill: #d9731a }"""


def ratios(results):
    """Label -> ratios of ours to something bare, and the same to other libraries."""
    bare, others = {}, {}
    for name in (name for name in FIGURES if name in results["runs"]):
        title = FIGURES[name].title.partition(" / ")[0]
        for row in (Row(**fields) for fields in results["runs"][name]["rows"]):
            other = row.what.partition(" / ")[2].partition(",")[0]
            if not row.unit and other and not other.isdigit():
                label = f"{name.partition('-')[0]} {title} / {other}"
                dots = (bare if other.startswith("bare") else others).setdefault(label, [])
                dots.append(1 / row.value if row.target.startswith("<=") else row.value)
    return bare, others


def draw(results):
    """The picture as SVG; takes what `_report.markdown` does."""
    drawn, y = [], 0
    for title, rows in zip(("bare calls", "other libraries"), ratios(results)):
        y += ROW
        drawn.append(f'<text x="0" y="{y}" class="head">How many times as fast as {title}</text>')
        y -= LINE // 2
        for label, dots in rows.items():
            y += ROW
            drawn.append(f'<text x="0" y="{y}">{escape(label)}</text>')
            ends = dict.fromkeys([number(min(dots)), number(max(dots))])
            drawn.append(f'<text x="{WIDTH}" y="{y}" class="end">{" to ".join(ends)}</text>')
            for tick in TICKS:
                place = f'x1="{_x(tick):.0f}" x2="{_x(tick):.0f}" y1="{y + 5}" y2="{y + 19}"'
                drawn.append(f'<line {place} class="{"one" if tick == 1 else "other"}"/>')
            for dot in dots:
                kind = "ahead" if dot >= 1 else "behind"
                drawn.append(f'<circle cx="{_x(dot):.1f}" cy="{y + 12}" r="5" class="{kind}"/>')
        y += LINE
        for tick in TICKS:
            drawn.append(f'<text x="{_x(tick):.0f}" y="{y + 15}" class="up">{tick:g}</text>')
    size = f'viewBox="0 0 {WIDTH} {y + LINE}" width="{WIDTH}" height="{y + LINE}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, f"<style>{STYLE}</style>", *drawn, "</svg>", ""])


def _x(ratio):
    first, last = math.log(TICKS[0]), math.log(TICKS[-1])
    return EDGE + (math.log(ratio) - first) / (last - first) * (WIDTH - 2 * EDGE)
