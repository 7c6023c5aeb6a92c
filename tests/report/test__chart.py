import re

import pytest

from tensorpack.report._chart import Line, draw_chart, number_text, smoothed


def coordinates(svg, kind="now"):
    path = re.search(f'class="line {kind}" d="([^"]*)"', svg).group(1)
    return [tuple(map(float, each.split())) for each in re.split("[ML]", path) if each]


def ticks(svg):
    texts = re.findall(r"<text[^>]*?(up)?\"?>([^<]*)</text>", svg)
    return [text for up, text in texts if up], [text for up, text in texts if not up]


def test_points_lie_where_their_values_are():
    places = coordinates(draw_chart("x", [Line([(0, 0.0), (50, 5.0), (100, 10.0)])]))
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x0 < x1 < x2 and y0 > y1 > y2
    assert x1 - x0 == pytest.approx(x2 - x1) and y0 - y1 == pytest.approx(y1 - y2)


def test_a_gap_breaks_the_line():
    svg = draw_chart("x", [Line([(0, 1.0), (1, 2.0), (2, None), (3, 3.0), (4, 1.0)])])
    assert re.search(r'class="line now" d="M[^ML]*L[^ML]*M[^ML]*L[^ML]*"', svg)


def test_long_lines_keep_their_peaks_and_become_short():
    points = [(i, 100.0 if i == 7777 else 0.0) for i in range(20000)]
    places = coordinates(draw_chart("x", [Line(points)]))
    assert len(places) < 400
    assert min(y for _, y in places) == pytest.approx(10, abs=1)


def test_only_noise_is_smoothed_and_the_average_does_not_lag():
    steady = [(i, float(i)) for i in range(100)]
    assert "raw" not in draw_chart("x", [Line(steady)])
    noisy = [(i, float(i % 2)) for i in range(100)]
    assert "raw" in draw_chart("x", [Line(noisy)])
    assert smoothed(steady, 11) == steady
    assert smoothed(steady, 11, every=7) == steady[::7]
    assert smoothed([(0, 1.0), (1, None), (2, 3.0)], 3) == [(0, 1.0), (1, None), (2, 3.0)]


def test_decades_have_a_logarithmic_axis():
    svg = draw_chart("x", [Line([(i, 10.0**-i) for i in range(5)])])
    up, _ = ticks(svg)
    assert up == ["1e-4", "1e-3", "1e-2", "1e-1", "1e0"]
    heights = [y for _, y in coordinates(svg)]
    assert heights[1] - heights[0] == pytest.approx(heights[4] - heights[3], abs=0.2)


@pytest.mark.parametrize(
    "values, texts",
    [
        ([0, 100], ["0", "25", "50", "75", "100"]),
        ([1000, 1000.2], ["1000.00", "1000.05", "1000.10", "1000.15", "1000.20"]),
        ([0, 2e6], ["0.0", "0.5M", "1.0M", "1.5M", "2.0M"]),
    ],
)
def test_ticks_can_be_told_apart(values, texts):
    up, _ = ticks(draw_chart("x", [Line(list(enumerate(map(float, values))))]))
    assert up == texts


def test_numbers_in_few_characters():
    numbers = [0, 7, 12345, 123456, 2.5e6, 0.00123, -1e12, 1000.1, None, float("nan")]
    expected = ["0", "7", "12345", "123k", "2.5M", "0.00123", "-1T", "1000.1", "-", "-"]
    assert [number_text(each) for each in numbers] == expected


def test_charts_of_one_span_can_be_compared():
    span, marks = (0.0, 100.0), [50.0, 200.0]
    whole = draw_chart("x", [Line([(0, 1.0), (100, 2.0)])], marks, span)
    half = draw_chart("x", [Line([(50, 1.0), (100, 2.0)])], marks, span)
    middle = coordinates(half)[0][0]
    assert middle == pytest.approx(sum(x for x, _ in coordinates(whole)) / 2, abs=0.1)
    assert whole.count('class="mark"') == 1 and f'd="M{middle:.1f} ' in whole
