import functools
import os
import random

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import (
    CheckpointCorrupt,
    CheckpointStore,
    copy_checkpoint,
    find_restore_point,
    newest_valid,
    save_checkpoint_vars,
    verify,
)
from tensorpack.tfutils.sessinit import SaverRestore
from tensorpack.utils.checkpoints import NoValidCheckpoint, files
from tensorpack.utils.checkpoints.files import read_manifest

INDEX, DATA, MANIFEST = ".index", ".data-00000-of-00001", ".manifest.json"


def writer(value):
    """Writes a checkpoint whose two variables are full of `value`."""
    arrays = {"a": np.full([300], value, np.float32), "b/c": np.int64(value)}
    return functools.partial(save_checkpoint_vars, arrays)


def value_of(prefix):
    """The value that all variables of a checkpoint have; they do not disagree."""
    reader = tf.train.load_checkpoint(prefix)
    values = {*reader.get_tensor("a").tolist(), int(reader.get_tensor("b/c"))}
    assert len(values) == 1, values
    return values.pop()


def make(directory, *steps, **options):
    store = CheckpointStore(str(directory), **options)
    for step in steps:
        store.save(step, writer(step))
    return store


def names(directory):
    return sorted(os.listdir(str(directory)))


def steps(directory):
    return sorted(int(n[6:-6]) for n in names(directory) if n[:6] == "model-" and n[-6:] == INDEX)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_what_is_written_over_a_checkpoint_takes_its_manifest_along(tmp_path):
    make(tmp_path, 1)
    prefix = str(tmp_path / "model-1")
    save_checkpoint_vars({"a": np.float32([5])}, prefix)
    verify(prefix)
    assert newest_valid(str(tmp_path)) == prefix
    assert read_manifest(prefix) is None


class TestSaving:
    def test_the_files_and_the_manifest(self, tmp_path):
        prefix = make(tmp_path / "new" / "deep").save(7, writer(7))
        assert prefix == str(tmp_path / "new" / "deep" / "model-7")
        files = [f"model-7{suffix}" for suffix in (DATA, INDEX, MANIFEST)]
        assert names(tmp_path / "new" / "deep") == ["checkpoint", *files]
        assert value_of(prefix) == 7
        verify(prefix)
        content = read_manifest(prefix)
        assert (content["step"], content["tensorflow"]) == (7, tf.__version__)
        assert content["variables"] == {
            "a": {"dtype": "float32", "shape": [300]},
            "b/c": {"dtype": "int64", "shape": []},
        }
        assert set(content["files"]) == {INDEX, DATA}
        assert content["files"][DATA]["size"] == 300 * 4 + 8

    def test_one_is_replaced_by_a_later_save_of_its_step(self, tmp_path):
        store = make(tmp_path, 1, 2)
        store.save(1, writer(11))
        assert (value_of(str(tmp_path / "model-1")), steps(tmp_path)) == (11, [1, 2])
        assert newest_valid(str(tmp_path)) == str(tmp_path / "model-1")
        assert not [name for name in names(tmp_path) if "replaced" in name]

    @pytest.mark.parametrize(
        "existing, in_the_way",
        [
            ([1], "model-2.data-00000-of-00001"),
            ([1], "model-2.index"),
            ([1, 2], "model-2.replaced.index"),
        ],
    )
    @pytest.mark.fault_row(17)
    def test_a_failing_save_changes_nothing(self, tmp_path, existing, in_the_way):
        store = make(tmp_path, *existing)
        before = contents(tmp_path)
        (tmp_path / in_the_way / "full").mkdir(parents=True)
        with pytest.raises(OSError):
            store.save(2, writer(22))
        assert contents(tmp_path) == before
        assert value_of(str(tmp_path / "model-1")) == 1

    @pytest.mark.parametrize("which", range(8))
    @pytest.mark.parametrize("step", [2, 3])
    @pytest.mark.fault_row(20)
    def test_a_failed_fsync_is_a_failed_save(self, tmp_path, monkeypatch, step, which):
        store = make(tmp_path, 1, 2)
        before, count, fsync = contents(tmp_path), [], os.fsync

        def failing(descriptor):
            count.append(descriptor)
            if len(count) == which + 1:
                raise OSError(5, "Input/output error")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", failing)
        if which < (6 if step == 3 else 7):
            with pytest.raises(OSError, match="Input/output"):
                store.save(step, writer(33))
            after = contents(tmp_path)
            if which == (5 if step == 3 else 6):  # the pointer has its name already
                after["checkpoint"] = before["checkpoint"]
            assert after == before
            assert newest_valid(str(tmp_path)) == str(tmp_path / "model-2")
        else:
            store.save(step, writer(33))
            assert len(count) <= which
            assert value_of(str(tmp_path / f"model-{step}")) == 33

    def test_what_cannot_be_read_back_is_a_failed_save(self, tmp_path):
        def garbage(prefix):
            for suffix in (INDEX, DATA):
                with open(prefix + suffix, "wb") as file:
                    file.write(b"garbage" * 100)

        with pytest.raises(OSError, match="cannot be read"):
            make(tmp_path).save(1, garbage)
        assert names(tmp_path) == []


class TestDeleting:
    @pytest.mark.parametrize("given, kept", [(3, [3, 4, 5]), (1, [4, 5]), (0, [1, 2, 3, 4, 5])])
    def test_the_newest_are_kept_at_least_two_and_0_is_all(self, tmp_path, given, kept):
        make(tmp_path, 1, 2, 3, 4, 5, max_to_keep=given)
        assert steps(tmp_path) == kept
        assert any("model-2" in name for name in names(tmp_path)) == (2 in kept)

    def test_one_is_kept_every_so_often(self, tmp_path):
        hours = [0]
        store = CheckpointStore(str(tmp_path), 2, 3, lambda: hours[-1] * 3600)
        # step    1  2  3  4  5  6  7  8  9
        # hour    1  2  3  4  5  6  7  8  9     kept for ever: 3 and 6; the last two anyway
        for step in range(1, 10):
            hours.append(step)
            store.save(step, writer(step))
        assert steps(tmp_path) == [3, 6, 8, 9]


class TestStart:
    def test_own_leftovers_go_and_nothing_else(self, tmp_path):
        make(tmp_path, 1)
        unknown = ["a.unfinished", "model-x.unfinished", "model-2.data-00000-of-00001"]
        kept = names(tmp_path) + unknown
        for name in kept + ["model-2.unfinished.index", "model-2.unfinished_temp_1/part"]:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.open("ab").close()
        (tmp_path / "checkpoint.unfinished").touch()  # of an earlier version
        (tmp_path / ".checkpoint.17-0123abcd.tmp").touch()
        (tmp_path / "model-1.replaced.index.unfinished").touch()
        CheckpointStore(str(tmp_path))
        assert names(tmp_path) == sorted(kept)

    def test_the_rest_of_a_deletion_goes(self, tmp_path):
        make(tmp_path, 1, 2, 3, max_to_keep=2)
        make(tmp_path, 1)
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model-3"\n')
        os.remove(str(tmp_path / "model-1.index"))
        os.remove(str(tmp_path / "model-3.index"))  # this one is named, so it is not removed
        CheckpointStore(str(tmp_path))
        assert not list(tmp_path.glob("model-1.*"))
        assert len(list(tmp_path.glob("model-3.*"))) == 2

    @pytest.mark.fault_row(19)
    def test_what_a_kill_in_replacing_has_left_is_found_and_ended_by_the_run_that_resumes(
        self, tmp_path
    ):
        store = make(tmp_path, 1, 2, 3, 4)
        for step in (1, 2, 3, 4):
            copy_checkpoint(store.path_of(step), store.path_of(step) + ".replaced")
        for name in ("model-4.index", "model-3.replaced.index", "checkpoint"):
            os.remove(str(tmp_path / name))
        flip(tmp_path / ("model-2" + DATA))  # while its earlier one is whole
        before = contents(tmp_path)
        store = make(tmp_path)
        assert {name for name in before if name not in contents(tmp_path)} == {
            f"model-3.replaced{suffix}" for suffix in (DATA, MANIFEST)
        }
        os.remove(str(tmp_path / "model-3.index"))
        assert newest_valid(str(tmp_path)) == store.path_of(4) + ".replaced"
        store.resume_from(store.path_of(4) + ".replaced")
        assert tf.train.latest_checkpoint(str(tmp_path)) == store.path_of(4)
        assert newest_valid(str(tmp_path)) == store.path_of(4) and value_of(store.path_of(4)) == 4
        left = {name.rpartition(".replaced")[0] for name in names(tmp_path) if "replaced" in name}
        assert left == {"model-2"}
        store.save(2, writer(22))
        assert value_of(newest_valid(str(tmp_path))) == 22
        assert not list(tmp_path.glob("*.replaced.*"))


def truncate(path, share=0.5):
    data = path.read_bytes()
    path.write_bytes(data[: min(int(len(data) * share), len(data) - 1)])


def flip(path, seed=0):
    data = bytearray(path.read_bytes())
    bit = random.Random(seed).randrange(len(data) * 8)
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(data))


def swap(path):
    other = path.with_name(path.name.replace("model-3", "model-2"))
    ours, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(ours)


DAMAGES = [functools.partial(truncate, share=share) for share in (0, 0.01, 0.5, 1)]
DAMAGES += [functools.partial(flip, seed=seed) for seed in range(64)]
DAMAGES += [os.remove, swap]


@pytest.mark.fault_row(21)
class TestDamage:
    @pytest.mark.parametrize("suffix", [INDEX, DATA])
    def test_every_damage_is_named_and_passed_over(self, tmp_path, suffix, log_lines):
        make(tmp_path, 1, 2, 3)
        whole = contents(tmp_path)
        for damage in DAMAGES:
            del log_lines[:]
            damage(tmp_path / ("model-3" + suffix))
            with pytest.raises(CheckpointCorrupt) as caught:
                verify(str(tmp_path / "model-3"))
            assert caught.value.path == str(tmp_path / "model-3"), damage
            expected = "model-1" if damage is swap else "model-2"
            assert newest_valid(str(tmp_path)) == str(tmp_path / expected), damage
            warnings = [text for kind, text in log_lines if kind == "warn"]
            assert f"Skipping the checkpoint {tmp_path}/model-3: " in warnings[0], damage
            assert caught.value.reason in warnings[0]
            for name, data in whole.items():
                (tmp_path / name).write_bytes(data)
        verify(str(tmp_path / "model-3"))

    def test_a_damaged_manifest_is_passed_over_or_makes_no_difference(self, tmp_path):
        make(tmp_path, 1, 2, 3)
        path = tmp_path / ("model-3" + MANIFEST)
        whole = path.read_bytes()
        found = []
        for damage in DAMAGES[:-2]:
            damage(path)
            found.append(newest_valid(str(tmp_path)))
            assert value_of(found[-1]) == (3 if found[-1].endswith("model-3") else 2)
            path.write_bytes(whole)
        # Of a flip, what is said of a file is noticed; what is said of a variable is not.
        assert found.count(str(tmp_path / "model-2")) > len(found) / 2

    def test_without_a_manifest_its_files_have_to_be_there_and_its_index_to_end(self, tmp_path):
        prefix = str(tmp_path / "model-1")
        writer(1)(prefix)
        verify(prefix)
        assert newest_valid(str(tmp_path)) == prefix
        os.rename(prefix + DATA, prefix + ".away")
        with pytest.raises(CheckpointCorrupt, match="data-.* is missing"):
            verify(prefix)
        os.rename(prefix + ".away", prefix + DATA)
        truncate(tmp_path / "model-1.index")
        with pytest.raises(CheckpointCorrupt):
            verify(prefix)

    def test_none_at_all(self, tmp_path):
        for directory in (str(tmp_path), str(tmp_path / "missing")):
            assert (newest_valid(directory), find_restore_point(directory)) == (None, None)
        with pytest.raises(FileNotFoundError):
            verify(str(tmp_path / "model-1"))

    def test_none_that_is_whole_is_an_error_with_their_names(self, tmp_path):
        make(tmp_path, 1, 2)
        os.remove(str(tmp_path / "model-1.index"))
        truncate(tmp_path / ("model-2" + DATA))
        with pytest.raises(NoValidCheckpoint, match=r"(?s)model-2 .*bytes.*model-1 .*missing"):
            newest_valid(str(tmp_path))

    @pytest.mark.parametrize(
        "pointer",
        [
            b"",
            b"\xff\x00\x9c" * 40,
            b"model_checkpoint_path",
            b'model_checkpoint_path: "../elsewhere/model-9"\n',
            b'model_checkpoint_path: "/elsewhere/model-1"\n',
            b'model_checkpoint_path: "model-9"\n',
        ],
    )
    @pytest.mark.fault_row(22)
    def test_a_garbage_pointer(self, tmp_path, pointer, log_lines):
        make(tmp_path, 1, 2, 12)
        (tmp_path / "checkpoint").write_bytes(pointer)
        assert newest_valid(str(tmp_path)) == str(tmp_path / "model-12")
        assert [kind for kind, text in log_lines if str(tmp_path) in text][:1] == ["warn"]
        store = CheckpointStore(str(tmp_path), 2)
        store.adopt()
        store.save(13, writer(13))
        assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-13")

    @pytest.mark.fault_row(22)
    def test_the_pointer_decides_between_runs(self, tmp_path):
        make(tmp_path, 5, 6)
        make(tmp_path, 1, 2)
        assert newest_valid(str(tmp_path)) == str(tmp_path / "model-2")
        truncate(tmp_path / ("model-2" + DATA))
        assert newest_valid(str(tmp_path)) == str(tmp_path / "model-1")

    def test_a_format_of_the_future_is_named(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patched:
            patched.setattr(files, "_FORMAT", 2)
            make(tmp_path, 1)
        with pytest.raises(CheckpointCorrupt, match="has format 2, this version reads 1"):
            verify(str(tmp_path / "model-1"))


class TestCopying:
    def test_a_copy_is_whole_and_replaces(self, tmp_path):
        make(tmp_path, 1, 2)
        target = str(tmp_path / "best")
        for step in (1, 2):
            copy_checkpoint(str(tmp_path / f"model-{step}"), target)
            verify(target)
            assert (value_of(target), read_manifest(target)["step"]) == (step, step)
        left = [name for name in names(tmp_path) if name.startswith("best")]
        assert left == ["best" + DATA, "best" + INDEX, "best" + MANIFEST]


@pytest.mark.fault_row(21)
def test_restoring_compares_with_the_manifest_first(tmp_path, session):
    make(tmp_path, 1)
    tf.get_variable("a", [300])
    sess = session()
    # TensorFlow would not notice this one: no variable of the graph is in the part that is wrong.
    path = tmp_path / ("model-1" + DATA)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(CheckpointCorrupt, match="1212 bytes, its manifest says 1208"):
        SaverRestore(str(tmp_path / "model-1")).init(sess)
