"""Tests of checkpoint files: finding, reading and writing them, and saying when one is damaged."""

import os
import shutil
import tempfile

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import (
    CheckpointCorrupt,
    get_checkpoint_path,
    load_checkpoint_vars,
    restore_point_at,
    save_checkpoint_vars,
    verify,
)
from tensorpack.utils.checkpoints import get_all_checkpoints

DATA = ".data-00000-of-00001"
VALUES = {
    "conv/W": np.arange(6, dtype=np.float32).reshape(2, 3),
    "global_step": np.int64(7),
    "on": np.array([True, False]),
}


@pytest.fixture
def prefix(tmp_path):
    """A checkpoint written by TensorFlow's own saver, with its `checkpoint` file."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in VALUES.items():
            tf.get_variable(name, initializer=value)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model"), global_step=7)


def assert_same(loaded, expected):
    assert sorted(loaded) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(loaded[name], value)
        assert loaded[name].dtype == np.asarray(value).dtype


def test_all_files_of_a_checkpoint_lead_to_it_and_the_pointer_to_the_latest(
    prefix, tmp_path, log_lines
):
    files = [prefix + suffix for suffix in ("", ".index", DATA, ".state", ".manifest.json")]
    for path in [tmp_path / "checkpoint", tmp_path, *files]:
        assert get_checkpoint_path(path) == prefix
    assert log_lines[0] == ("info", f"{tmp_path}/checkpoint means the checkpoint {prefix}.")


def test_a_checkpoint_may_be_named_as_a_file_of_one(tmp_path):
    save_checkpoint_vars(VALUES, tmp_path / "best.state")
    for path in (tmp_path / "best.state", tmp_path / "best.state.index"):
        assert get_checkpoint_path(path) == str(tmp_path / "best.state")


def test_a_file_that_is_no_checkpoint_is_not_said_to_be_damaged(prefix, tmp_path):
    (tmp_path / "stats.json").write_text("[]\n")
    for load in (load_checkpoint_vars, verify, restore_point_at):
        with pytest.raises(CheckpointCorrupt) as caught:
            load(str(tmp_path / "stats.json"))
        said = str(caught.value)
        assert said.startswith(f"{tmp_path}/stats.json is not a checkpoint (")
        assert said.endswith(" a log directory or an .npz file.") and "damaged" not in said
    os.truncate(prefix + ".index", 5)
    with pytest.raises(CheckpointCorrupt, match="model-7 is damaged .* Load an earlier one"):
        load_checkpoint_vars(prefix)


@pytest.mark.parametrize("name", ["model-8", "model-8.index", "nowhere/model-7", "checkpoint"])
def test_missing_checkpoint_is_a_missing_file(prefix, tmp_path, name):
    os.remove(prefix + ".index")  # to which the pointer leads
    with pytest.raises(FileNotFoundError, match="There is no checkpoint '.*/model-[78]'"):
        get_checkpoint_path(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\x00\xffgarbage", b"foo: 3", b"\n"])
def test_pointer_without_sense_is_corrupt_and_never_a_fresh_start(prefix, tmp_path, content):
    (tmp_path / "checkpoint").write_bytes(content)
    with pytest.raises(CheckpointCorrupt) as caught:
        get_checkpoint_path(tmp_path / "checkpoint")
    assert caught.value.path == str(tmp_path / "checkpoint")


@pytest.mark.parametrize("name", ["saved", "new/folder/saved", "saved.npz"])
def test_saved_values_come_back(tmp_path, name):
    with pytest.raises(TypeError, match="w cannot be saved"):
        save_checkpoint_vars({"w": np.array([None, {}])}, tmp_path / name)
    assert os.listdir(str(tmp_path)) == []
    path = os.fsencode(tmp_path / name)
    save_checkpoint_vars({key + ":0": value for key, value in VALUES.items()}, path)
    assert_same(load_checkpoint_vars(tmp_path / name), VALUES)
    assert [each for each in os.listdir(str(tmp_path)) if "tmp" in each] == []


@pytest.mark.parametrize("path", ["saved", "saved.npz"])
def test_a_variable_may_have_any_name(tmp_path, path):
    values = {name: np.ones(2, np.float32) for name in ("allow_pickle", "file", "args", "W")}
    save_checkpoint_vars(values, tmp_path / path)
    assert_same(load_checkpoint_vars(tmp_path / path), values)


def test_an_archive_has_bfloat16_as_float32(tmp_path):
    half = np.array([1.5, 2]).astype(tf.bfloat16.as_numpy_dtype)
    save_checkpoint_vars({"w": half}, tmp_path / "saved.npz")
    assert_same(load_checkpoint_vars(tmp_path / "saved.npz"), {"w": np.float32([1.5, 2])})


def test_saved_values_are_no_pickle(tmp_path):
    with pytest.raises(ValueError, match="saved.npy: .* Write .npz"):
        save_checkpoint_vars({"W": 1.0}, tmp_path / "saved.npy")


@pytest.mark.parametrize("name", ["saved", "saved.npz"])
def test_two_names_of_one_variable_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="'W' and 'W:0' are one variable"):
        save_checkpoint_vars({"W": 1.0, "W:0": 2.0}, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.fault_row(52)
@pytest.mark.parametrize(
    "path",
    ["layers=[64,64]/saved", "a\\b/saved", "a*b?/saved", "min-error[0]", b"\xff/saved"],
    ids=repr,
)
def test_a_path_is_no_pattern(tmp_path, monkeypatch, path):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = os.path.join(str(tmp_path), os.fsdecode(path))
    save_checkpoint_vars(VALUES, str(tmp_path / "plain"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for suffix in (".index", DATA):
        os.rename(str(tmp_path / "plain") + suffix, path + suffix)
    verify(path)
    assert_same(load_checkpoint_vars(path), VALUES)
    assert os.listdir(str(tmp_path / "temporary")) == []
    os.truncate(path + DATA, 5)
    check_corrupt(path)


def test_a_folder_for_temporary_files_that_is_a_pattern_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "[12]"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    save_checkpoint_vars(VALUES, str(folder / "saved"))
    with pytest.raises(OSError, match="Set TMPDIR .*12"):
        load_checkpoint_vars(str(folder / "saved"))


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("suffix", [".index", DATA])
def test_truncated_file_is_corrupt(prefix, suffix, share):
    size = os.path.getsize(prefix + suffix)
    with open(prefix + suffix, "r+b") as file:
        file.truncate(min(int(size * share), size - 1))
    check_corrupt(prefix)


def test_flipped_bit_in_the_data_and_a_missing_file_are_corrupt(prefix, tmp_path):
    data = (tmp_path / ("model-7" + DATA)).read_bytes()
    for position in range(0, 33, 4):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        (tmp_path / ("model-7" + DATA)).write_bytes(flipped)
        check_corrupt(prefix)
    os.remove(prefix + DATA)
    check_corrupt(prefix)


def test_file_that_is_no_checkpoint_and_damaged_or_pickled_archive_are_corrupt(tmp_path):
    (tmp_path / "notes").write_text("hello")
    check_corrupt(str(tmp_path / "notes"))
    path = tmp_path / "saved.npz"
    save_checkpoint_vars(VALUES, path)
    path.write_bytes(path.read_bytes()[:-30])
    check_corrupt(str(path))
    np.savez(str(path), w=np.array([{}]))
    check_corrupt(str(path))
    shutil.copy(__file__, str(path))
    check_corrupt(str(path))
    np.save(str(tmp_path / "array.npy"), np.zeros(3))
    os.replace(str(tmp_path / "array.npy"), str(path))
    check_corrupt(str(path))
    path.write_bytes(b"")
    check_corrupt(str(path))


def check_corrupt(path):
    with pytest.raises(CheckpointCorrupt) as caught:
        load_checkpoint_vars(path)
    assert not isinstance(caught.value, tf.errors.OpError)
    assert caught.value.path == path
    assert caught.value.reason in str(caught.value)


def test_all_checkpoints_of_a_prefix_are_listed_by_step(tmp_path):
    for name in ["model-9", "model-10", "model-best", "other-3", "model"]:
        (tmp_path / (name + ".index")).touch()
    (tmp_path / "model-11.meta").touch()
    assert get_all_checkpoints(tmp_path) == [
        (str(tmp_path / "model-9"), 9),
        (str(tmp_path / "model-10"), 10),
    ]
    assert get_all_checkpoints(tmp_path, "other") == [(str(tmp_path / "other-3"), 3)]
