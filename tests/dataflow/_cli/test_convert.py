"""`convert` writes a file of another format, or leaves all as it was."""

import os
import pickle
import re

import numpy as np
import pytest

from tensorpack.utils._words import size_text
from tests.contracts.dataflow import assert_same
from tests.dataflow._cli.files import (
    EVERYWHERE,
    NAMES,
    change,
    load,
    needs_h5py,
    needs_lmdb,
    numbers,
    places_of_records,
    record,
    save,
)
from tests.dataflow.flows import Canary

pytest.importorskip("msgpack")


@pytest.mark.parametrize("before", EVERYWHERE)
@pytest.mark.parametrize("after", EVERYWHERE)
def test_convert(run, tmp_path, before, after):
    # a row of a dataset is a numpy scalar
    datapoints = [[np.int64(i), np.full((2, 3), i, np.float32)] for i in range(5)]
    path = save(tmp_path / f"a{before}", datapoints)
    target = tmp_path / f"b{after}"
    ran = run("convert", path, target)
    assert ran.code == 0, ran.err
    size = size_text(os.path.getsize(str(target)))
    assert ran.out.startswith(f"5 datapoints of {path} ({NAMES[before]}")
    assert ran.out.endswith(f") are in {target} ({NAMES[after]}, {size}).\n")
    assert_same(load(target), datapoints)
    assert sorted(os.listdir(str(tmp_path))) == sorted({f"a{before}", f"b{after}"})


@pytest.mark.parametrize("suffix", [".npz", ".tfrecord"])
def test_files_of_old_tensorpack_that_hold_pickles(run, tmp_path, suffix):
    path, target = tmp_path / f"old{suffix}", tmp_path / "new.npz"
    datapoints = [[i, np.arange(i + 1)] for i in range(3)]
    if suffix == ".npz":
        np.savez_compressed(str(path), buffer=np.asarray(datapoints, dtype=object))
    else:
        path.write_bytes(b"".join(record(pickle.dumps(each, 4)) for each in datapoints))
    for options in [], ["--allow-pickle", "--force"]:
        ran = run("convert", path, target, *options)
        assert "datapoints of old tensorpack, as pickles" in ran.out
        assert_same(load(target), datapoints)
    assert "datapoints of old tensorpack, as pickles" in run("show", path).out


@pytest.mark.parametrize("suffix", [".npz", ".tfrecord"])
def test_what_would_run_code_needs_the_flag(run, fails, tmp_path, suffix):
    path, target, canary = tmp_path / f"old{suffix}", tmp_path / "new.tfrecord", tmp_path / "ran"
    if suffix == ".npz":
        np.savez_compressed(str(path), buffer=np.array([[Canary(canary)]], dtype=object))
    else:
        path.write_bytes(record(pickle.dumps([Canary(canary)], 2)))
    for refused in ["show", path], ["convert", path, target]:
        assert re.search(r"a pickle that needs \w+.mkdir.*--allow-pickle", fails(*refused))
    assert not canary.exists()
    assert run("convert", path, target, "--allow-pickle").code == 0
    assert canary.is_dir() and load(target) == [[None]]


def test_nothing_is_replaced_unless_it_is_asked_for(run, fails, tmp_path):
    path, target = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.tfrecord"
    target.write_text("precious")
    assert f"{target} exists already. Give another" in fails("convert", path, target)
    assert target.read_text() == "precious"
    assert run("convert", path, target, "--force").code == 0
    assert_same(load(target), numbers(3))
    assert run("convert", path, path, "--force").code == 0  # also itself
    assert_same(load(path), numbers(3))
    assert run("convert", path, tmp_path / "new.npz", "--force").code == 0
    assert sorted(os.listdir(str(tmp_path))) == ["a.npz", "b.tfrecord", "new.npz"]


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_failure_leaves_nothing_and_takes_nothing(fails, tmp_path, options):
    path = save(tmp_path / "a.tfrecord", [[1], {"a": 2}])
    target = tmp_path / "b.npz"
    if options:
        target.write_text("precious")
    assert "Datapoint 1 has another form" in fails("convert", path, target, *options)
    assert sorted(os.listdir(str(tmp_path))) == ["a.tfrecord", *["b.npz" for _ in options]]
    assert not options or target.read_text() == "precious"


def test_a_file_that_cannot_be_replaced(fails, tmp_path, monkeypatch):
    path, target = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.npz"
    target.write_text("precious")
    real = os.replace

    def replace(source, place):
        if source.endswith(".new"):
            raise PermissionError(1, "Not now")
        real(source, place)

    monkeypatch.setattr(os, "replace", replace)
    assert "Not now" in fails("convert", path, target, "--force")
    assert sorted(os.listdir(str(tmp_path))) == ["a.npz", "b.npz"]
    assert target.read_text() == "precious"


def test_damaged_records_are_left_out_if_that_is_allowed(run, fails, tmp_path):
    path, target = save(tmp_path / "a.tfrecord", numbers(6)), tmp_path / "b.npz"
    places = list(places_of_records((tmp_path / "a.tfrecord").read_bytes()))
    for index in 0, 3:
        change(path, places[index] + 30)
    assert "record 0 at byte 0" in fails("convert", path, target)
    assert "max_errors=1 allows" in fails("convert", path, target, "--max-errors", "1")
    assert not target.exists()
    ran = run("convert", path, target, "--max-errors", "2")
    assert ran.code == 0
    assert ran.out.startswith("4 datapoints of ")
    assert "Damaged and left out: 2." in ran.out
    assert f"record 3 at byte {places[3]}" in ran.out
    assert_same(load(target), [numbers(6)[index] for index in (1, 2, 4, 5)])


@needs_h5py
def test_a_damaged_first_record_is_counted_once(run, tmp_path):
    """What is written to datasets is looked at beforehand."""
    path, target = save(tmp_path / "a.tfrecord", [[np.int64(i)] for i in range(4)]), "b.h5"
    change(path, 30)
    ran = run("convert", path, tmp_path / target, "--max-errors", "1")
    assert ran.out.startswith("3 datapoints of ") and "left out: 1." in ran.out


def test_columns_with_dtypes(run, tmp_path):
    path, target = tmp_path / "a.csv", tmp_path / "b.npz"
    path.write_text("name,size\none,1\ntwo,2\n")
    assert run("convert", path, target, "--dtypes", "str,int16").code == 0
    assert_same(load(target), [["one", np.int16(1)], ["two", np.int16(2)]])


@needs_h5py
def test_names_of_datasets(run, fails, tmp_path):
    import h5py

    image = np.zeros((2, 2))
    datapoints = [{"image": image, "label": 3}, {"label": 4, "image": image}]
    path, target = save(tmp_path / "a.tfrecord", datapoints), tmp_path / "b.h5"
    assert run("convert", path, target).code == 0
    with h5py.File(str(target), "r") as file:
        assert sorted(file) == ["image", "label"]
        assert file["label"][:].tolist() == [3, 4]
    target = tmp_path / "c.h5"
    message = fails("convert", path, target, "--paths", "one")
    assert "1 names in --paths (one), but a datapoint has 2 components: image, label" in message
    assert run("convert", path, target, "--paths", "train/x,train/y").code == 0
    again = tmp_path / "d.h5"
    assert run("convert", target, again, "--paths", "train/y").code == 0
    with h5py.File(str(again), "r") as file:
        assert list(file["train"]) == ["y"]


@needs_h5py
@pytest.mark.parametrize(
    "datapoints, message",
    [
        ([{"a": 1}, {"a": 3, "b": 4}], "Datapoint 1 is a dict of a, b, but datapoint 0 is a dict"),
        ([{"a": 1}, {"b": 2}], "Datapoint 1 is a dict of b, but datapoint 0 is a dict of a."),
        ([[1], [1], [2, 3]], "Datapoint 2 is a list of 2 components, but datapoint 0 is a list of"),
        ([[1, 2], [1]], "Datapoint 1 is a list of 1 components, but"),
        ([[1], (1,)], "Datapoint 1 is a tuple of 1 components, but datapoint 0 is a list"),
        ([[1], {0: 1}], "Datapoint 1 is a dict of 0, but datapoint 0 is a list"),
        ([[1], 1], "Datapoint 1 is a int of something else, but"),
    ],
)
def test_what_has_no_place_in_the_datasets_is_not_dropped(fails, tmp_path, datapoints, message):
    path = save(tmp_path / "a.tfrecord", datapoints)
    assert message in fails("convert", path, tmp_path / "b.h5")
    assert os.listdir(str(tmp_path)) == ["a.tfrecord"]


@needs_h5py
@pytest.mark.parametrize("width, last", [(10, "component_9"), (12, "component_11"), (101, "100")])
def test_components_keep_their_order(run, tmp_path, width, last):
    """The datasets of a file are found again in the order of their names."""
    import h5py

    datapoints = [[np.int64(i * 1000 + j) for j in range(width)] for i in range(3)]
    path = save(tmp_path / "a.npz", datapoints)
    assert run("convert", path, tmp_path / "b.h5").code == 0
    assert run("convert", tmp_path / "b.h5", tmp_path / "c.npz").code == 0
    assert_same(load(tmp_path / "c.npz"), datapoints)
    with h5py.File(str(tmp_path / "b.h5"), "r") as file:
        assert sorted(file)[-1].endswith(last)


def test_columns_of_parquet(run, tmp_path):
    pytest.importorskip("pyarrow", minversion="14")
    datapoints = [[np.int64(i), np.full(3, i, np.float32)] for i in range(5)]
    path, target = save(tmp_path / "a.tfrecord", datapoints), tmp_path / "b.parquet"
    assert run("convert", path, target, "--paths", "x,y").code == 0
    ran = run("convert", target, tmp_path / "c.npz", "--paths", "y")
    assert ran.out.startswith(f"5 datapoints of {target} (Parquet) are in ")
    assert_same(load(tmp_path / "c.npz"), [[y] for _, y in datapoints])
    assert run("convert", target, tmp_path / "d.parquet").out.startswith("5 datapoints")
    assert "columns     x, y\n" in run("show", tmp_path / "d.parquet", "--check").out


def test_archives_of_webdataset(run, fails, tmp_path):
    datapoints = [{"__key__": f"{i}", "txt": b"%d" % i} for i in range(3)]
    path, target = save(tmp_path / "a.npz", datapoints), tmp_path / "b.tar"
    assert run("convert", path, target).code == 0
    ran = run("convert", target, tmp_path / "c.tfrecord")
    assert ran.out.startswith(f"3 datapoints of {target} (tar) are in ")
    assert load(tmp_path / "c.tfrecord") == datapoints
    assert "Checked: 3 datapoints, none is damaged. The file has no checksums" in (
        run("show", target, "--check").out
    )
    assert "Datapoint 0 is a list" in fails(
        "convert", save(tmp_path / "d.npz", [[1]]), target.parent / "e.tar"
    )


def test_raw_records_are_converted_as_bytes(run, tmp_path):
    path, target = tmp_path / "a.tfrecord", tmp_path / "b.npz"
    path.write_bytes(record(b"one") + record(b"two"))
    ran = run("convert", path, target)
    assert ran.code == 0
    assert "(TFRecord: records of another program)" in ran.out
    assert_same(load(target), [[b"one"], [b"two"]])


def test_targets_that_cannot_be_written(fails, tmp_path):
    path = save(tmp_path / "a.npz", numbers(3))
    for name in "b.csv", "b", "b.npz.gz":
        assert "names no format to write. Let it" in fails("convert", path, tmp_path / name)
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    assert "is a folder. Give the name of a file" in fails("convert", path, folder, "--force")
    assert "there is no folder" in fails("convert", path, tmp_path / "no" / "b.npz")


@needs_lmdb
def test_into_the_folder_of_an_lmdb_database(run, tmp_path):
    path, folder = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.lmdb"
    folder.mkdir()
    assert run("convert", path, folder).code == 0
    assert run("convert", path, folder).code == 1
    assert run("convert", path, folder, "--force").code == 0
    assert_same(load(folder), numbers(3))


def test_a_file_without_whole_datapoints(fails, tmp_path):
    path = save(tmp_path / "a.tfrecord", numbers(1))
    change(path, 30)
    message = fails("convert", path, tmp_path / "b.npz", "--max-errors", "1")
    assert message.endswith("The flow has no datapoints: nothing to write.")
