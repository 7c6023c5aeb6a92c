"""`tensorpack diff` compares the variables of two checkpoints."""

import json

import numpy as np
import pytest

from tensorpack.command import diff
from tests.conftest import HAS_TENSORFLOW

FIRST = {
    "W": np.array([[1, 2], [3, np.nan]], "float32"),
    "b": np.zeros(2),
    "n": np.int64(3),
    "old": np.zeros(1),
    "names": np.array(["x", "y"]),
    "empty": np.zeros((0, 3)),
}


@pytest.fixture
def archive(tmp_path):
    def write(name, **changed):
        arrays = {key: each for key, each in {**FIRST, **changed}.items() if each is not None}
        np.savez(str(tmp_path / name), **arrays)
        return tmp_path / name

    return write


def test_equal_ones(tensorpack, archive):
    done = tensorpack("diff", archive("a.npz"), archive("b.npz"))
    assert (done.code, done.out.splitlines()[-1]) == (0, "0 of 6 variables differ.")


def test_what_differs(tensorpack, archive):
    other = archive(
        "b.npz",
        W=np.array([[1, 2.5], [3, np.nan]], "float32"),
        b=np.zeros(3),
        n=np.int32(3),
        old=None,
        new=np.ones(1),
        names=np.array(["x", "z"]),
    )
    done = tensorpack("diff", archive("a.npz"), other, "--json")
    assert done.code == 1
    assert json.loads(done.out)["variables"] == {
        "W": {"what": "values differ", "max": 0.5, "mean": 0.125},
        "b": {"what": "other shape: [2], [3]"},
        "empty": {"what": "equal"},
        "n": {"what": "other dtype: int64, int32"},
        "names": {"what": "1 elements differ"},
        "new": {"what": "only in B"},
        "old": {"what": "only in A"},
    }
    shown = tensorpack("diff", archive("a.npz"), other).out
    assert "empty" not in shown and shown.endswith("6 of 7 variables differ.\n")
    assert ["W", "values differ", "0.5", "0.125"] in [
        [each.strip() for each in line.split("  ") if each.strip()] for line in shown.splitlines()
    ]


def test_tolerance_and_select(tensorpack, archive):
    other = archive("b.npz", b=np.array([0, 1e-6]), old=None)
    options = ["--select", "^[bWn]", "--tolerance"]
    assert tensorpack("diff", archive("a.npz"), other, *options, "1e-5").code == 0
    assert tensorpack("diff", archive("a.npz"), other, *options, "1e-7").code == 1
    assert tensorpack("diff", archive("a.npz"), other, *options, "-1").code == 2
    done = tensorpack("diff", archive("a.npz"), other, "--select", "nmes")
    assert done.code == 2 and "Did you mean names?" in done.err
    assert tensorpack("diff", archive("a.npz"), other, "--select", "(").code == 2


def test_a_nan_on_one_side_is_infinitely_far(tensorpack, archive):
    other = archive("b.npz", b=np.array([0, np.nan]))
    found = json.loads(tensorpack("diff", archive("a.npz"), other, "--json").out)["variables"]["b"]
    assert found == {"what": "values differ", "max": None, "mean": None}
    assert "inf" in tensorpack("diff", archive("a.npz"), other).out


@pytest.mark.parametrize(
    "ours, theirs, largest",
    [
        (np.int64(2**53), np.int64(2**53 + 1), 1.0),
        (np.int64(-(2**63)), np.int64(2**63 - 1), 2.0**64),
        (np.uint64(2**64 - 1), np.uint64(2**64 - 2), 1.0),
        (np.uint8(3), np.uint8(250), 247.0),
        (np.bool_(True), np.bool_(False), 1.0),
        (np.longdouble(1), np.nextafter(np.longdouble(1), np.longdouble(2)), None),
        (np.array([1, 2], "datetime64[s]"), np.array([1, 3], "datetime64[s]"), None),
    ],
)
def test_values_are_compared_before_they_are_cast(
    tensorpack, archive, ours, theirs, largest, monkeypatch
):
    monkeypatch.setattr(diff, "_PIECE", 1)
    first, second = archive("a.npz", x=ours), archive("b.npz", x=theirs)
    done = tensorpack("diff", first, second, "--json")
    found = json.loads(done.out)["variables"]["x"]
    assert done.code == 1, found
    assert largest is None or found == {"what": "values differ", "max": largest, "mean": largest}
    assert tensorpack("diff", first, first).code == 0


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_a_checkpoint_and_an_archive(tensorpack, tmp_path):
    import tensorflow as tf

    from tensorpack.tfutils.checkpoint import save_checkpoint_vars

    half = np.array([1, 2]).astype(tf.bfloat16.as_numpy_dtype)
    save_checkpoint_vars({"W": np.ones(2, "float32"), "h": half}, tmp_path / "model-1")
    save_checkpoint_vars({"W": np.full(2, 3, "float32"), "h": half}, tmp_path / "model-2")
    done = tensorpack("diff", tmp_path / "model-1", tmp_path / "model-2", "--json")
    assert json.loads(done.out)["variables"] == {
        "W": {"what": "values differ", "max": 2.0, "mean": 2.0},
        "h": {"what": "equal"},
    }
    save_checkpoint_vars({"W": np.ones(2, "float32")}, tmp_path / "w.npz")
    done = tensorpack("diff", tmp_path / "model-1", tmp_path / "w.npz", "--select", "W")
    assert done.code == 0
