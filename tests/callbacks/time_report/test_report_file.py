import json

import pytest

from tensorpack.callbacks.time_report._diagnosis import Figures
from tensorpack.callbacks.time_report.report import FILENAME, append_report

FIGURES = Figures(seconds=1 / 3, steps=3, waiting=0.125, callbacks=0.5, fill=2 / 3)


def test_each_report_is_a_line_of_figures_with_four_digits(tmp_path):
    for epoch in (1, 2):
        append_report(str(tmp_path), FIGURES, {"epoch": epoch, "text": "Züge"})
    first, second = map(json.loads, (tmp_path / FILENAME).read_text().splitlines())
    assert first == {**second, "epoch": 1} and second["epoch"] == 2
    known = {"seconds": 0.3333, "steps": 3, "waiting": 0.125, "callbacks": 0.5, "fill": 0.6667}
    assert {**first, **known, "stepping": 0.375, "text": "Züge"} == first
    assert set(first) == {*FIGURES._fields, "epoch", "stepping", "text"}


def test_what_cannot_be_written_is_an_error_of_the_system(tmp_path):
    (tmp_path / FILENAME).mkdir()
    with pytest.raises(OSError):
        append_report(str(tmp_path), FIGURES, {})
