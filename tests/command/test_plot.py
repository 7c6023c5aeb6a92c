"""`tensorpack plot` draws scalars of runs, each or as a band of several."""

import io
import json
import sys

import pytest

from tensorpack.command import plot
from tensorpack.command._text_plot import Look, axis_text, draw_text
from tensorpack.runs.curves import make_band, smooth


@pytest.fixture
def write_run(tmp_path):
    def write(name, costs, step=10, **more):
        (tmp_path / name).mkdir(parents=True)
        epochs = [
            {"epoch_num": i, "global_step": i * step, "cost": cost, "hours": i / 4, **more}
            for i, cost in enumerate(costs, start=1)
        ]
        (tmp_path / name / "stats.json").write_text(json.dumps(epochs))
        return tmp_path / name

    return write


def scalars_of(done):
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)["scalars"]


def test_a_band_of_a_pattern(tensorpack, write_run, tmp_path):
    write_run("fast-1", [4, 2, 1])
    write_run("fast-2", [2, 2, 3, 9])
    write_run("slow", [5.0], step=20)
    found = scalars_of(
        tensorpack("plot", f"fast={tmp_path}/fast-*", tmp_path / "slow", "-s", "cost", "--json")
    )
    assert found == {
        "cost": {
            "fast": {
                "x": [10, 20, 30],
                "mean": [3, 2, 2],
                "low": [2, 2, 1],
                "high": [4, 2, 3],
                "runs": 2,
            },
            "slow": {"x": [20], "mean": [5], "low": [5], "high": [5], "runs": 1},
        }
    }


def test_runs_without_a_step_in_common_are_said(tensorpack, write_run, tmp_path):
    write_run("apart-1", [4, 2])
    write_run("apart-2", [3], step=50)
    done = tensorpack("plot", f"apart={tmp_path}/apart-*", write_run("run", [1, 2]), "-s", "cost")
    assert (done.code, done.err) == (0, "skipped: no step is in all runs of apart, for cost\n")


def test_steps_are_written_out(tensorpack, write_run):
    done = tensorpack("plot", write_run("run", [2.0, 1.0], step=1234567), "-s", "cost")
    assert "2 at 1234567 " in done.out and "1 at 2469134" in done.out


def test_runs_of_other_steps_are_interpolated():
    band = make_band([([0, 10], [0, 10]), ([5, 15], [0, 10]), ([], [])])
    assert (band.x, band.low, band.high) == ([5, 10], [0, 5], [5, 10])
    assert (band.mean, band.runs) == ([2.5, 7.5], 2)


@pytest.mark.parametrize(
    "axis, x",
    [("step", [10, 20]), ("epoch", [1, 2]), ("time", [0.25, 0.5]), ("hours", [0.25, 0.5])],
)
def test_axes(tensorpack, write_run, axis, x):
    run = write_run("run", [4, 2])
    found = scalars_of(tensorpack("plot", run, "-s", "cost", "--json", "-x", axis))
    assert found["cost"]["run"]["x"] == x


def test_points_are_in_the_order_of_the_axis(tensorpack, write_run):
    run = write_run("run", [4, 2, 3])
    found = scalars_of(tensorpack("plot", run, "-s", "epoch_num", "--json", "-x", "cost"))
    assert (found["epoch_num"]["run"]["x"], found["epoch_num"]["run"]["mean"]) == (
        [2, 3, 4],
        [2, 3, 1],
    )


def test_smoothing_counts_the_first_value_no_more_than_later_ones():
    assert smooth([3, 3, 3], 0.9) == pytest.approx([3, 3, 3])
    assert smooth([1, 0], 0.5) == pytest.approx([1, 1 / 3])
    assert smooth([1, 5], 0.0) == [1, 5]


def test_the_usual_scalars_and_patterns(tensorpack, write_run):
    run = write_run("run", [1, 2], validation_error=0.5, lr=0.1, nan=None, text="x")
    assert list(scalars_of(tensorpack("plot", run, "--json"))) == ["validation_error", "cost"]
    found = scalars_of(tensorpack("plot", run, "--json", "-s", "v*", "-s", "lr"))
    assert list(found) == ["validation_error", "lr"]
    listed = json.loads(tensorpack("plot", run, "--list", "--json").out)["scalars"]
    assert listed.keys() == {"cost", "epoch_num", "global_step", "hours", "lr", "validation_error"}


@pytest.mark.parametrize(
    "args, text",
    [
        (["-s", "cots"], "No run has a scalar 'cots'. Did you mean cost?"),
        (["-x", "hour"], "stats.json has nothing for --x hour. Did you mean hours?"),
        (["--smooth", "1"], "'1' is not a number from 0 up to below 1"),
        (["-o", "none/x.png"], "There is no directory 'none'"),
        (["-o", "x.what"], "Give a name such as curves.svg."),
    ],
)
def test_what_cannot_be_drawn(tensorpack, write_run, args, text):
    pytest.importorskip("matplotlib")
    done = tensorpack("plot", write_run("run", [1, 2]), *args)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_directories_without_a_run(tensorpack, write_run, tmp_path):
    run = write_run("logs/run", [1, 2])
    done = tensorpack("plot", tmp_path / "logs")
    assert done.code == 2 and f"There are runs in {run}: give these" in done.err
    done = tensorpack("plot", tmp_path / "lgs")
    assert done.code == 2 and "Did you mean logs?" in done.err
    done = tensorpack("plot", tmp_path / "logs", run)
    assert done.code == 0 and done.err.startswith("skipped: ")


def test_a_file_that_is_cut_off(tensorpack, write_run):
    run = write_run("run", [4, 2, 1])
    text = (run / "stats.json").read_text()
    (run / "stats.json").write_text(text[:-20])
    assert scalars_of(tensorpack("plot", run, "--json"))["cost"]["run"]["mean"] == [4, 2]
    (run / "stats.json").write_text("[")
    assert "has no epoch yet" in tensorpack("plot", run).err


def test_in_the_terminal(tensorpack, write_run):
    run = write_run("run", [4, 2, 1])
    done = tensorpack("plot", run, "--ascii")
    assert done.out.splitlines()[0] == "cost"
    last = [each.strip() for each in done.out.splitlines()[-1].split("  ") if each.strip()]
    assert last == ["cost", "run", "1", "1 at 30", "4 at 10", "1 at 30"]


def test_a_terminal_that_has_only_ascii(monkeypatch):
    for encoding, braille in (("ascii", False), ("utf-8", True)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "__stdout__", stream)
        assert plot._look(False).braille == braille
        assert plot._look(True) == Look(68, 14, False, False)


@pytest.mark.parametrize("columns, width", [("100", 88), ("10", 20)])
def test_a_drawing_fits_the_terminal(columns, width, monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "__stdout__", Terminal(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert plot._look(False) == Look(width, 14, True, True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert plot._look(False) == Look(width, 14, True, False)
    assert plot._look(True) == Look(width, 14, False, False)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert plot._look(False) == Look(width, 14, True, False)


def test_a_line_in_letters():
    drawn = draw_text("y", {"a": ([0, 4], [0, 2])}, "step", Look(5, 3, False, False))
    assert drawn.splitlines() == ["y", "2 |   **", "1 |  *", "0 |**", "  +-----", "   0 step 4"]


def test_lines_in_dots_and_colours():
    look = Look(2, 2, True, False)
    drawn = draw_text("y", {"a": ([0, 1], [0, 1])}, "x", look).splitlines()
    assert drawn[1:3] == ["1 \u2502 \u285c", "0 \u2502\u285c"]
    both = {"a": ([0, 1], [0, 1]), "b": ([0, 1], [1, 0])}
    assert "\033[33m" in draw_text("y", both, "x", look._replace(colour=True))
    assert draw_text("y", both, "x", look).endswith("* a  o b")
    assert draw_text("y", {"a": ([], [])}, "x", look) == "y: no values"
    assert "1.5 " in draw_text("y", {"a": ([3], [1])}, "x", look)


@pytest.mark.parametrize("values", [[1e308, -1e308], [float("nan")] * 2, [10**400, 5e-324]])
def test_numbers_that_cannot_be_drawn_are_left_out(tensorpack, write_run, tmp_path, values):
    run = write_run("run", [*values, 1, 2])
    for arguments in (["--ascii"], ["--smooth", "0.5"], ["--list"], ["-x", "cost"]):
        done = tensorpack("plot", run, "-s", "cost", *arguments)
        assert (done.code, done.err) == (0, "")
    shown = scalars_of(tensorpack("plot", run, "-s", "cost", "--json"))
    assert shown["cost"]["run"]["mean"][-2:] == [1, 2]
    (run / "stats.json").write_text('[{"global_step": NaN, "cost": 1}]')
    assert "has no epoch yet" in tensorpack("plot", run).err


def test_a_run_without_a_number_is_said_to_have_none(tensorpack, write_run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stats.json").write_text('[{"global_step": 1, "cost": null}]')
    for arguments in ([], ["-o", tmp_path / "x.svg"], ["-s", "cost"]):
        done = tensorpack("plot", tmp_path / "run", *arguments)
        assert done.code == 2 and "No run has a scalar with a finite value" in done.err


def test_numbers_on_an_axis():
    assert [axis_text(value, 1e-3) for value in (0.5011, 0.5012)] == ["0.5011", "0.5012"]
    assert axis_text(250000, 1e5) == "250000"


@pytest.mark.parametrize(
    "suffix, begin", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_picture(tensorpack, write_run, tmp_path, suffix, begin):
    pytest.importorskip("matplotlib")
    runs = [write_run("fast-1", [4, 2, 1]), write_run("fast-2", [2, 2, 3])]
    out = tmp_path / f"curves.{suffix}"
    done = tensorpack("plot", f"fast={tmp_path}/fast-*", runs[0], "-o", out, "--smooth", "0.5")
    assert (done.code, done.err) == (0, "")
    assert f"{out} shows cost." in done.out
    assert out.read_bytes().startswith(begin)
    if suffix == "svg":
        assert "smoothed by 0.5" in out.read_text()


def texts_of(svg):
    """What is drawn, from the comments that matplotlib writes before each text."""
    return [line.strip()[5:-4] for line in svg.read_text().splitlines() if "<!-- " in line]


@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are(tensorpack, write_run, tmp_path):
    pytest.importorskip("matplotlib")
    odd = ["$x$", "$\\frac$", "_hidden", "a\\$b$"]
    runs = [write_run(name, [4, 2], **{"cost_$_{$": 1}) for name in odd]
    out = tmp_path / "curves.svg"
    done = tensorpack("plot", *runs, "-o", out, "-s", "cost", "-s", "cost_*")
    assert (done.code, done.err) == (0, "")
    drawn = texts_of(out)
    for name in [*odd, "cost_$_{$"]:
        assert name in [each.strip() for each in drawn], drawn


def test_a_path_that_exists_wins_over_a_name(tensorpack, write_run, tmp_path):
    for name in ("lr=0.1", "lr=0.2", "other"):
        write_run(name, [1, 2])

    def groups(argument):
        found = scalars_of(tensorpack("plot", f"{tmp_path}/{argument}", "-s", "cost", "--json"))
        return list(found["cost"])

    assert groups("lr=0.1") == ["lr=0.1"]
    assert groups("lr=*") == ["lr=0.1", "lr=0.2"]
    named = tensorpack("plot", f"x=y={tmp_path}/lr=*", "-s", "cost", "--json")
    assert named.code == 2  # the name ends at the first "="
    found = scalars_of(tensorpack("plot", f"x={tmp_path}/lr=*", "-s", "cost", "--json"))
    assert found["cost"]["x"]["runs"] == 2


def test_without_matplotlib(tensorpack, write_run, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "matplotlib":
                raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    done = tensorpack("plot", write_run("run", [1, 2]), "-o", tmp_path / "x.png")
    assert done.code == 2
    assert "pip install matplotlib" in done.err and done.err.count("\n") == 1
