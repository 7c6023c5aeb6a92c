"""`tensorpack inspect` tells what is in archives and checkpoints, and what would load into what."""

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


def test_archives(tensorpack, archive, tmp_path):
    done = tensorpack("inspect", archive)
    rows = [line.split("  ") for line in done.out.splitlines()]
    rows = [[field.strip() for field in row if field.strip()] for row in rows]
    assert done.code == 0 and rows[0] == [str(archive)]
    assert ["conv0/W", "float32 [3, 3, 1, 16]", "576 B"] in rows
    assert ["fc/b", "float64 [4]", "32 B"] in rows
    assert ["step", "int64 []", "8 B"] in rows
    assert rows[-1] == ["3 variables, 149 numbers, 616 B"]


def test_what_would_load_into_what(tensorpack, archive, tmp_path):
    other = tmp_path / "other.npz"
    arrays = {"conv0/W/Adam": np.zeros(1), "conv0/W": np.zeros((3, 3, 1, 8), "float32")}
    np.savez(str(other), new=np.zeros(1), step=np.int32(0), **arrays)
    done = tensorpack("inspect", archive, other)
    assert done.code == 1
    assert [line.split("  ")[-1].strip() for line in done.out.splitlines()[2:]] == [
        "DOES NOT FIT",
        "only in the first: left out",
        "missing: keeps its initial value",
        "loaded, cast",
        "1 DOES NOT FIT, 1 only in the first: left out, 1 missing: keeps its initial value, "
        "1 loaded, cast",
        "and 1 that only training uses (--all)",
    ]
    same = tensorpack("inspect", archive, archive)
    assert (same.code, same.out.splitlines()[-1]) == (0, "3 loaded")
    np.savez(str(other), **{"net/fc/b": np.ones(4), "global_step": np.int64(7)})
    done = tensorpack("inspect", archive, other)
    assert done.code == 1 and "SaverRestore(path, prefix='net')" in done.out


def test_what_only_training_uses_is_left_out(tensorpack, tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"W": np.zeros(2), "W/Adam": np.zeros(2), "global_step": np.int64(3)}
    np.savez(str(path), **arrays)
    done = tensorpack("inspect", path)
    assert done.out.startswith(f"{path}, of step 3\n")
    assert done.out.endswith(
        "\n1 variables, 2 numbers, 16 B\n"
        "and what only training uses (--all): 2 variables, 3 numbers, 24 B\n"
    )
    assert "W/Adam" not in done.out
    assert "W/Adam" in tensorpack("inspect", path, "--all").out


def test_paths_that_cannot_be_used(tensorpack, archive, tmp_path):
    done = tensorpack("inspect", tmp_path / "weigths.npz")
    assert done.code == 2 and "Did you mean weights.npz?" in done.err
    archive.write_bytes(archive.read_bytes()[:-9])
    done = tensorpack("inspect", archive)
    assert done.code == 2 and "is damaged" in done.err


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

    prefix = os.path.join(log_dir, "model-2")
    for path in (log_dir, prefix + ".state", os.path.join(log_dir, "checkpoint")):
        done = tensorpack("inspect", path, "--check")
        lines = done.out.splitlines()
        assert (done.code, lines[0]) == (0, f"{prefix}, of step 2")
        assert lines[-2:] == [
            "The files are as they were written.",
            "A run can be resumed from it.",
        ]
    assert "\nweight      float32 []         4 B\n" in done.out
    shutil.rmtree(os.path.join(log_dir, "segments"))
    assert "loses what was in 1 missing files of segments" in tensorpack("inspect", log_dir).out
    data = prefix + ".data-00000-of-00001"
    with open(data, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    assert tensorpack("inspect", log_dir).code == 0
    done = tensorpack("inspect", data, "--check")
    assert done.code == 1 and "is damaged (the checksum of" in done.out


@needs_tensorflow
def test_checkpoints_of_other_programs(tensorpack, tmp_path):
    from tensorpack.compat import tfv1 as tf

    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("W", initializer=tf.ones([2, 3]), use_resource=False)
        tf.train.create_global_step()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, f"{tmp_path}/model-5", write_meta_graph=False)
        one_file = tf.train.Saver(write_version=tf.train.SaverDef.V1)  # the format of 2016
        one_file.save(session, f"{tmp_path}/old", write_meta_graph=False, write_state=False)
    done = tensorpack("inspect", tmp_path, "--check")
    assert done.code == 0 and done.out.startswith(f"{tmp_path}/model-5, of step 0\n")
    assert "W           float32 [2, 3]     24 B" in done.out
    assert done.out.endswith(
        "No checksums.\nNo state: its weights can be loaded, a run cannot be resumed from it.\n"
    )
    assert "W           float32 [2, 3]     24 B" in tensorpack("inspect", tmp_path / "old").out
