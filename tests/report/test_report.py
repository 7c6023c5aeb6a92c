"""The page about a log directory: what it shows, and that no text in the directory breaks it."""

import json
import re
from html.parser import HTMLParser

import pytest

from tensorpack.report import write_report
from tensorpack.report._charts import Line, card, number_text
from tensorpack.utils._directory_lock import DirectoryLock

EVIL = "\"><script>alert('x')</script>&amp;"
PNG = b"\x89PNG\r\n\x1a\n"


class Page(HTMLParser):
    """A page that is parsed: its tags are checked to be closed, its text is collected."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.text, self.tags, self.images, self._open = "", [], [], []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(re.sub(r"<path([^>]*)/>", r"<path\1></path>", self.source))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.images += [value for name, value in attrs if name == "src"]
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += "" if self._open[-1:] == ["style"] else data


def write_stats(directory, *epochs):
    numbers = [{"epoch_num": i, "global_step": 10 * i} for i in range(1, len(epochs) + 1)]
    epochs = [{**number, **epoch} for number, epoch in zip(numbers, epochs)]
    (directory / "stats.json").write_text(json.dumps(epochs))


def write_record(directory, *attempts, **about_all):
    (directory / "run.json").write_text(json.dumps({**about_all, "attempts": attempts}))


def page_of(directory):
    return Page(write_report(str(directory)))


def coordinates(svg):
    path = re.search('class="line" d="([^"]*)"', svg).group(1)
    return [tuple(map(float, point.split())) for point in re.split("[ML]", path) if point]


def ticks(svg):
    return re.findall('class="up">([^<]*)</text>', svg)


def test_the_result_comes_first_then_the_circumstances(tmp_path):
    start = "2026-01-31T12:00:00Z"
    first = {"started": start, "seconds": 60, "result": "stopped", "step": 20}
    gpu = {"name": "H", "memory": 1e9}
    facts = {
        "command": ["python", "train.py", "--name", "a b"],
        "result": "failed",
        "message": "ValueError: no",
        "seconds": 3600.0,
        "step": 1234567,
        "git": {"commit": "c" * 40, "branch": "main", "dirty": True},
        "machine": {"cpu": "Quick", "cores": 4, "memory": 8e9, "gpus": [gpu]},
        "training": {"trainer": "T", "input": ["Q(F)"], "first_step": 20, "seed": None},
    }
    parameters = [["fc/W", [3, 4], "float32"], ["s", [], "float16"]]
    write_record(tmp_path, first, facts, parameters=parameters)
    page = page_of(tmp_path)
    places = [page.text.index(part) for part in ("failed", "ValueError: no", "Command")]
    assert places == sorted(places) and 'class="badge failed">failed' in page.source
    for part in (
        "step 1234567, time 1 hour 1 minute",
        "python train.py --name 'a b'",
        f"commit {'c' * 40}, branch main, dirty True",
        "cpu Quick, cores 4, memory 8.0 GB, gpus name H, memory 1.0 GB",
        "trainer T, input Q(F)",
        "not fixed: this run cannot be repeated exactly",
        "2 variables, 13 numbers",
        "started 2026-01-31T12:00:00Z, step 20, result stopped; step",
    ):
        assert part in page.text, part


@pytest.mark.parametrize("locked, result", [(True, "running"), (False, "lost")])
def test_the_lock_tells_whether_a_run_lives(tmp_path, locked, result):
    with DirectoryLock(str(tmp_path)) as lock:
        if not locked:
            lock.release()
        write_record(tmp_path, {"host": "h"})
        assert f'class="badge {result}">{result}<' in page_of(tmp_path).source


def test_curves_are_grouped_and_resumes_are_marked(tmp_path):
    write_stats(
        tmp_path,
        *[
            {"lr": 1, "cost": 2 / i, "val-cost": 3 / i, "score": i, "param-summary/W": i}
            for i in range(1, 6)
        ],
    )
    write_record(tmp_path, *({"training": {"first_step": step}} for step in (0, 30)))
    page = page_of(tmp_path)
    names = ["Scores (1)", "Costs and errors (1)", "Others (1)", "Statistics of"]
    assert [page.text.index(name) for name in names] == sorted(map(page.text.index, names))
    assert page.tags.count("svg") == 4  # the cost of training and of validation share one
    assert page.source.count('class="mark"') == 4
    assert re.search('class="axis"[^>]*>cost</text>', page.source)
    assert "cost: last 0.4, from 0.4 to 2" in page.text and "val-cost, step 50: 0.6" in page.text


@pytest.mark.parametrize(
    "names, charts",
    [
        (("train-error-top1", "val-error-top1"), 1),
        (("loss", "loss_val"), 1),
        (("a/cost", "b/cost"), 2),
        (("latest_cost", "cost"), 2),
    ],
)
def test_scalars_that_differ_in_their_data_alone_share_a_chart(tmp_path, names, charts):
    write_stats(tmp_path, dict.fromkeys(names, 1))
    assert page_of(tmp_path).tags.count("svg") == charts


def test_several_runs_share_charts_and_have_a_colour_each(tmp_path):
    folders = [tmp_path / "a" / "run", tmp_path / "b" / "run"]
    for i, folder in enumerate(folders):
        folder.mkdir(parents=True)
        write_stats(folder, {"cost": i, "val_cost": i}, {"cost": i + 5})
    path = write_report([str(folder) for folder in folders])
    page = Page(path)
    assert path == str(tmp_path / "report.html") and page.tags.count("svg") == 2
    assert "a/run: last 5, from 0 to 5" in page.text and "b/run: last 6" in page.text
    assert page.source.count('<g class="c1">') == 2


def test_everything_is_escaped(tmp_path):
    folder = tmp_path / EVIL.replace("/", "")
    folder.mkdir()
    write_stats(folder, {EVIL: 1, f"{EVIL}2": None})
    (folder / "log.log").write_text(f"a line {EVIL}\n")
    (folder / f"{EVIL.replace('/', '')}.png").write_bytes(PNG)
    (folder / "time_reports.jsonl").write_text(json.dumps({"text": EVIL}))
    values = dict.fromkeys(("result", "message", "checkpoint", "host", "started", "ended"), EVIL)
    values.update(command=[EVIL], git={"commit": EVIL, "branch": EVIL}, versions={EVIL: EVIL})
    values.update(machine={"cpu": EVIL}, training={"model": EVIL, "seed": EVIL})
    write_record(folder, values)
    page = page_of(folder)
    assert "script" not in page.tags and page.text.count(EVIL) > 12


@pytest.mark.parametrize("name", ["run.json", "stats.json", "log.log", "time_reports.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\xff\0", b"[", b'{"a":'])
def test_damaged_files_are_left_out(tmp_path, name, content):
    (tmp_path / "log.log").write_text("the log\n")
    (tmp_path / name).write_bytes(content)
    page_of(tmp_path)


def test_the_whole_epochs_of_a_truncated_file_are_drawn(tmp_path):
    write_stats(tmp_path, {"score": 1}, {"score": 2}, {"score": 3})
    text = (tmp_path / "stats.json").read_text()
    (tmp_path / "stats.json").write_text(text[:-20])
    page = page_of(tmp_path)
    assert "its first 2 epochs" in page.text and "last 2, from 1 to 2" in page.text


def test_the_newest_picture_of_each_series_is_shown(tmp_path):
    for epoch in (1, 999, 1000):
        for index in range(2):
            (tmp_path / f"W-ep{epoch:03d}-{index}.png").write_bytes(PNG)
    (tmp_path / "log.log").write_text("")
    page = page_of(tmp_path)
    assert len(page.images) == 2 and page.images[0].startswith("data:image/png;base64,")
    assert "W-ep1000-0.png" in page.text and "W-ep1000-1.png" in page.text


def test_the_ends_of_the_log_and_of_the_time_reports_are_shown(tmp_path):
    (tmp_path / "log.log").write_text("begun\n" + "line\n" * 100 + "the end\n")
    (tmp_path / "time_reports.jsonl").write_text('{"text": "old"}\n{"text": "stepping"}\n{"te')
    page = page_of(tmp_path)
    assert "the end" in page.text and "begun" not in page.text
    assert "stepping" in page.text and "old" not in page.text


def test_what_is_no_log_directory_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="/x"):
        write_report(str(tmp_path / "x"))
    with pytest.raises(ValueError, match="give the log directory of a training"):
        write_report(str(tmp_path))


def svg_of(*values):
    """The chart of values over the steps 0, 25, 50 and so on."""
    points = [(25 * i, value) for i, value in enumerate(values)]
    return card("x", [Line("x", 0, points)], (0, 25 * len(values) - 25))


def test_points_lie_where_their_values_are_and_a_gap_breaks_the_line():
    svg = svg_of(0.0, 2.5, None, 7.5)
    (x0, y0), (x1, y1), (x2, y2) = coordinates(svg)
    assert x2 - x0 == pytest.approx(3 * (x1 - x0), abs=0.2) and x0 < x1
    assert y0 - y2 == pytest.approx(3 * (y0 - y1), abs=0.2) and y0 > y1
    assert re.search(r'd="M[^ML]*L[^ML]*M[^ML]*"', svg)


def test_decades_have_a_logarithmic_axis():
    svg = svg_of(*[10.0**-i for i in range(5)])
    heights = [y for _, y in coordinates(svg)]
    assert ticks(svg) == ["1e-4", "1e-3", "1e-2", "1e-1", "1e0"]
    assert heights[1] - heights[0] == pytest.approx(heights[4] - heights[3], abs=0.2)


@pytest.mark.parametrize(
    "values, texts",
    [
        ([0, 100], ["0", "20", "40", "60", "80", "100"]),
        ([1000, 1000.2], ["1000", "1000.05", "1000.1", "1000.15", "1000.2"]),
        ([0, 2e6], ["0", "500k", "1M", "1.5M", "2M"]),
        ([3.0, 3.0], ["2.7", "2.8", "2.9", "3", "3.1", "3.2", "3.3"]),
        ([1e-320, 5e-324], ["-1", "-0.5", "0", "0.5", "1"]),
        ([None, None], ["-1", "-0.5", "0", "0.5", "1"]),
    ],
)
def test_ticks_can_be_told_apart(values, texts):
    assert ticks(svg_of(*values)) == texts


def test_numbers_in_few_characters():
    numbers = [0, 7, 12345, 123456, 2.5e6, 0.00123, -1e12, 1000.1]
    expected = ["0", "7", "12.35k", "123.5k", "2.5M", "0.00123", "-1T", "1000"]
    assert [number_text(number) for number in numbers] == expected


def test_a_path_of_a_picture_gets_the_curves(tmp_path):
    pytest.importorskip("matplotlib")
    write_stats(tmp_path, {"cost": 1, "val_cost": None, "param-summary/W": 1}, {"cost": 2})
    path = write_report(str(tmp_path), str(tmp_path / "x.png"))
    with open(path, "rb") as file:
        assert file.read(len(PNG)) == PNG
