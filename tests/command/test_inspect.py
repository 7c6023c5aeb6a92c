"""`tensorpack inspect` tells what is in archives and checkpoints, and what would load into what."""

import json
import os
import shutil

import numpy as np
import pytest

from tests.conftest import HAS_TENSORFLOW

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "weights.npz"
    arrays = {"conv0/W:0": np.zeros((3, 3, 1, 16), "float32"), "fc/b:0": np.ones(4, "float64")}
    np.savez(str(path), step=np.int64(7), **arrays)
    return path


def test_an_archive(tensorpack, archive):
    done = tensorpack("inspect", archive)
    assert done.code == 0
    rows = [line.split("  ") for line in done.out.splitlines()]
    rows = [[field.strip() for field in row if field.strip()] for row in rows]
    assert ["conv0/W", "float32", "3 x 3 x 1 x 16", "576 B"] in rows
    assert ["fc/b", "float64", "4", "32 B"] in rows
    assert ["step", "int64", "scalar", "8 B"] in rows
    assert rows[-1] == ["3 variables, 149 numbers, 616 B"]


def test_json_selected_and_sorted(tensorpack, archive):
    done = tensorpack("inspect", archive, "--json", "--sort", "size", "--select", "/")
    found = json.loads(done.out)
    assert list(found["variables"]) == ["conv0/W", "fc/b"]
    assert found["variables"]["fc/b"] == {"dtype": "float64", "shape": [4], "nbytes": 32}
    assert (found["path"], found["format"]) == (str(archive), "npz")


def test_what_would_load_into_what(tensorpack, archive, tmp_path):
    other = tmp_path / "other.npz"
    arrays = {
        "conv0/W/Adam": np.zeros(1),
        "conv0/W": np.zeros((3, 3, 1, 8), "float32"),
        "fc/b": np.ones((2, 2), "float64"),
    }
    np.savez(str(other), new=np.zeros(1), step=np.int32(0), **arrays)
    done = tensorpack("inspect", archive, other, "--json")
    assert done.code == 1
    assert json.loads(done.out)["variables"] == {
        "conv0/W": "DOES NOT FIT",
        "fc/b": "DOES NOT FIT: ignore_mismatch=True reshapes it",
        "new": "missing: keeps its initial value",
        "step": "loaded, cast",
    }
    shown = tensorpack("inspect", archive, "--model", other).out
    assert "1 DOES NOT FIT, 1 DOES NOT FIT: ignore_mismatch=True reshapes it" in shown
    same = tensorpack("inspect", archive, archive)
    assert (same.code, same.out.splitlines()[-1]) == (0, "3 loaded")


def test_a_dictionary_in_an_npy_file(tensorpack, tmp_path):
    np.save(str(tmp_path / "a.npy"), {"fc/W:0": np.zeros((2, 3), np.float32)})
    done = tensorpack("inspect", tmp_path / "a.npy")
    assert done.code == 0 and done.out.endswith("1 variables, 6 numbers, 24 B\n")


def test_what_only_training_uses_is_left_out(tensorpack, tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"W": np.zeros(2), "W/Adam": np.zeros(2), "global_step": np.zeros(2)}
    np.savez(str(path), **arrays)
    done = tensorpack("inspect", path)
    assert done.out.endswith(
        "\n1 variables, 2 numbers, 16 B\n"
        "and what only training uses (--all): 2 variables, 4 numbers, 32 B\n"
    )
    assert "W/Adam" not in done.out
    assert "W/Adam" in tensorpack("inspect", path, "--all").out
    np.savez(str(tmp_path / "b.npz"), W=np.ones(2))
    done = tensorpack("inspect", tmp_path / "b.npz", path)
    assert (done.code, done.out.splitlines()[-2:]) == (
        0,
        ["1 loaded", "and 2 that only training uses (--all)"],
    )
    assert tensorpack("inspect", tmp_path / "b.npz", path, "--all").code == 1


def test_a_scope_is_found(tensorpack, tmp_path):
    step = {"global_step": np.int64(7)}  # which most checkpoints have
    np.savez(str(tmp_path / "a.npz"), **{"fc/W": np.zeros(1), **step})
    np.savez(str(tmp_path / "b.npz"), **{"net/fc/W": np.zeros(1), **step})
    done = tensorpack("inspect", tmp_path / "a.npz", tmp_path / "b.npz")
    assert done.code == 1
    assert "SaverRestore(path, prefix='net')" in done.out


def test_paths_that_cannot_be_used(tensorpack, archive, tmp_path):
    done = tensorpack("inspect", tmp_path / "weigths.npz")
    assert done.code == 2 and "Did you mean weights.npz?" in done.err
    done = tensorpack("inspect", tmp_path)
    assert done.code == 2 and f"Try {archive}." in done.err
    (tmp_path / "stats.json").write_text("[]")
    done = tensorpack("inspect", tmp_path / "stats.json")
    assert done.code == 2 and "stats.json is not a checkpoint. Give a log" in done.err
    archive.write_bytes(archive.read_bytes()[:-9])
    done = tensorpack("inspect", archive)
    assert done.code == 2 and "is damaged" in done.err
    assert done.err.count("\n") == 1


@needs_tensorflow
def test_a_run(tensorpack, log_dir):
    """Its checkpoint has a manifest and a state; what is missing or changed is found."""
    from tensorpack import Callback, DataFromList, JSONWriter, ModelSaver, SimpleTrainer
    from tensorpack.utils.checkpoints import Segments
    from tests.helpers import TinyModel, config

    class Frames(Callback):
        def state_dict(self):
            return {"frames": Segments([], [({}, {"a": np.zeros(9)})], lambda refs: None)}

    flow = DataFromList([[np.ones(2, "float32")] * 2], shuffle=False)
    options = {"model": TinyModel(), "dataflow": flow, "monitors": [JSONWriter()]}
    SimpleTrainer(config([ModelSaver(), Frames()], **options)).train()

    done = tensorpack("inspect", log_dir, "--check", "--json")
    found = json.loads(done.out)
    assert (done.code, found["step"], found["checked"]) == (0, 2, "whole")
    assert found["variables"]["weight"] == {"dtype": "float32", "shape": [], "nbytes": 4}
    assert found["state"].startswith("model-2.state (")
    assert f" with 1 files in {log_dir}/segments (" in found["state"]
    assert found["state"].endswith("): a run can be resumed from it")
    shutil.rmtree(os.path.join(log_dir, "segments"))
    assert "of which 1 are missing: a run loses" in tensorpack("inspect", log_dir).out
    assert found["path"] == os.path.join(log_dir, "model-2")
    data = os.path.join(log_dir, "model-2.data-00000-of-00001")
    with open(data, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    assert tensorpack("inspect", log_dir).code == 0
    done = tensorpack("inspect", data, "--check")
    assert done.code == 1 and "DAMAGED: the checksum of" in done.out


@needs_tensorflow
def test_a_checkpoint_in_one_file(tensorpack, tmp_path):
    """The format of 2016."""
    from tensorpack.compat import tfv1 as tf

    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("W", initializer=tf.ones([2, 3]), use_resource=False)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
        saver.save(session, str(tmp_path / "old"), write_meta_graph=False)
    shutil.copy(str(tmp_path / "old"), str(tmp_path / "old[1]"))  # for TensorFlow a pattern
    for name in "old", "old[1]":
        found = json.loads(tensorpack("inspect", tmp_path / name, "--json").out)["variables"]
        assert found == {"W": {"dtype": "float32", "shape": [2, 3], "nbytes": 24}}


@needs_tensorflow
def test_a_checkpoint_of_another_program(tensorpack, tmp_path):
    from tensorpack.tfutils.checkpoint import save_checkpoint_vars

    arrays = {"fc/W": np.zeros((2, 3), "float32"), "global_step": np.int64(30), "s": np.array("x")}
    save_checkpoint_vars(arrays, tmp_path / "model-5")
    for name in "model-5", "model-5.index", "":
        done = tensorpack("inspect", tmp_path / name, "--json")
        found = json.loads(done.out)
        assert (found["path"], found["step"]) == (str(tmp_path / "model-5"), 30)
        assert found["variables"]["fc/W"] == {"dtype": "float32", "shape": [2, 3], "nbytes": 24}
        assert found["variables"]["s"]["nbytes"] is None
        assert found["state"].startswith("none")
