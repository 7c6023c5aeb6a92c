"""`make gpu-check`: steps that fail or cannot be run; and layers in both orders."""

import gpu_check
import nchw
import pytest

from tensorpack.compat import is_tfv2


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Runs the check with these steps and this many GPUs; returns the code and the rows."""

    def check(steps, gpus, *flags):
        monkeypatch.setattr(gpu_check, "STEPS", steps)
        monkeypatch.setattr(gpu_check, "get_num_gpu", lambda: gpus)
        with pytest.raises(SystemExit) as stop:
            gpu_check.main(["--only", ",".join(steps), "--logs", str(tmp_path), *flags])
        return stop.value.code, [line.split() for line in capsys.readouterr().out.splitlines()[2:]]

    return check


def fails(args):
    """Prints a row, then ends as a program does that has failed."""
    yield "a row"
    raise RuntimeError("ended with 1:\nlines\nout of memory")


def test_without_a_gpu_nothing_is_run_and_nothing_claimed(check):
    code, rows = check({"one": fails, "two": fails}, 0)
    assert code == 1 and [row[:3] for row in rows] == [
        [name, "not", "run"] for name in ("one", "two")
    ]
    code, rows = check({"one": lambda args: ["a row"]}, 0, "--anywhere")
    assert code == 0 and rows == [["one", "ok", "0", "s", "a", "row"]]


def test_the_next_step_runs_whatever_became_of_one(check, tmp_path):
    steps = {"first": fails, "towers": gpu_check.towers, "last": lambda args: ["1", "2"]}
    code, rows = check(steps, 1)
    assert code == "failed: first"
    assert [row[:2] for row in rows] == [
        ["first", "ok"],
        ["first", "failed"],
        ["towers", "not"],
        ["last", "ok"],
        ["last", "ok"],
    ]
    assert "out of memory" in " ".join(rows[1]) and "two GPUs" in " ".join(rows[2])
    assert "lines\nout of memory" in (tmp_path / "first.txt").read_text(encoding="utf-8")


def test_a_precision_that_is_not_there_is_no_failure_and_others_are_named(check, monkeypatch):
    def bare(seconds, flags):
        if "bf16" in flags:
            raise RuntimeError("precision='bf16' has no effect here: TensorFlow")
        if "--xla" in flags:
            raise RuntimeError("no compiler")
        return 200.0

    monkeypatch.setattr(gpu_check, "bare", bare)
    monkeypatch.setattr(gpu_check, "whole", lambda steps, rom, flags: 150.0)
    code, rows = check({"rates": gpu_check.rates}, 1)
    text = [" ".join(row) for row in rows]
    assert "fp32: bare 200.0 updates/s; main job 150.0 (0.75); with staging 150.0 (0.75)" in text[0]
    assert "refused" in text[1] and "fp16: bare 200.0" in text[2] and "refused" in text[3]
    assert "failed" in text[4] and "fp16 --xla: no compiler" in text[4]
    assert code == "failed: rates"


@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has no such layers on CPUs")
@pytest.mark.parametrize("name", nchw.LAYERS)
def test_layers_in_both_orders_are_the_same(name):
    shape = nchw.VOLUME if name == "Conv3D" else nchw.IMAGE
    assert nchw.difference(nchw.LAYERS[name], shape) < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has no such layers on CPUs")
def test_a_network_with_channels_first_is_exported(tmp_path):
    assert nchw.export(tmp_path) == ["frozen.pb", "serving"]
