"""`show` of flows, and the contact sheets that it writes."""

import os

import numpy as np
import pytest

from tensorpack.dataflow import BatchData, DataFromList, MapData
from tests.dataflow._cli.files import facts, save
from tests.dataflow._cli.flows import HERE

cv2 = pytest.importorskip("cv2")
PLACE = __name__
LABELLED = [
    [np.arange(10.0).reshape(5, 2), np.full((20, 30, 3), (i, 0, 200), np.uint8), i]
    for i in range(40)
]
colours = DataFromList(LABELLED, shuffle=False)


def batches():
    return BatchData(DataFromList([{"x": np.full((4, 5), i / 120)} for i in range(120)], False), 60)


def normalised():
    return DataFromList([[np.full((600, 300, 1), i - 1.0, np.float32)] for i in range(3)], False)


def read(path):
    return cv2.imread(str(path), cv2.IMREAD_COLOR)[:, :, ::-1]


def test_a_flow_is_described(run):
    ran = run("show", f"{HERE}:twenty", "--num", "2")
    assert ran.code == 0, ran.err
    assert facts(ran.out)["flow"] == f"{HERE}:twenty" and facts(ran.out)["datapoints"] == "20"
    assert "datapoint 1 is\n  list of 2\n" in ran.out and "datapoint 2 is" not in ran.out


def test_the_first_sixteen_images_in_rgb(run, tmp_path):
    path = tmp_path / "out.png"
    path.write_text("is replaced")
    ran = run("show", f"{PLACE}:colours", "--images", path)
    assert ran.code == 0, ran.err
    assert ran.out.endswith(f"\n16 images, component 1, are in {path}.\n")
    sheet = read(path)
    assert sheet.shape == (4 * 20 + 3 * 3, 4 * 30 + 3 * 3, 3)  # borders of 3 pixels
    assert [sheet[23 * (i // 4), 33 * (i % 4)].tolist() for i in range(16)] == [
        [i, 0, 200] for i in range(16)
    ]
    assert run("show", f"{PLACE}:colours", "--images", path, "--bgr", "--num", "1").code == 0
    assert read(path)[0, 0].tolist() == [200, 0, 0]


def test_batches_floats_and_large_images(run, tmp_path):
    path = tmp_path / "out.png"
    ran = run("show", f"{PLACE}:batches", "--images", path)
    assert "100 of 120 images, component 'x', are in" in ran.out
    assert "Values from 0 to 1 are shown as 0 to 255." in ran.out
    assert read(path)[0, -1].tolist() == [round(9 / 120 * 255)] * 3
    ran = run("show", f"{PLACE}:normalised", "--images", path)
    assert "3 images, component 0, " in ran.out and "Values from -1 to 1 are shown" in ran.out
    sheet = read(path)
    assert sheet.shape == (2 * 256 + 10, 2 * 128 + 10, 3)
    assert (sheet[0, 0].max(), sheet[0, -1].max(), sheet[-1, 0].max()) == (0, 128, 255)


def test_images_of_a_file(run, tmp_path):
    pytest.importorskip("msgpack")
    path = save(tmp_path / "a.npz", [[each[1]] for each in LABELLED])
    ran = run("show", path, "--images", tmp_path / "out.jpg", "--num", "3")
    assert ran.code == 0 and "3 images" in ran.out
    assert read(tmp_path / "out.jpg").shape == (43, 63, 3)


def failing():
    return MapData(colours, fail)


def fail(datapoint):
    return cv2.resize(datapoint[1][:0], (3, 3))


def test_an_error_of_opencv_names_the_datapoint(fails):
    message = fails("show", f"{PLACE}:failing")
    assert "error: cv2.error: OpenCV" in message and "ssize.empty()" in message
    assert "MapData failed on datapoint 0 (" in message and "uint8 (20, 30, 3), 0]" in message


def test_what_cannot_be_shown(fails, tmp_path):
    flow = f"{HERE}:twenty"
    assert "names no kind of image. Let it end with .png" in fails(
        "show", flow, "--images", "a.txt"
    )
    path = tmp_path / "none" / "a.png"
    assert "there is no folder" in fails("show", flow, "--images", path)
    path = tmp_path / "a.png"
    text = save(tmp_path / "a.npz", [["text"]])
    assert "no component of the first datapoint is an array" in fails(
        "show", text, "--images", path
    )
    assert "there is no datapoint" in fails("show", f"{HERE}:make_empty", "--images", path)
    assert "only --num, --images and --bgr are for flows" in fails("show", flow, "--check")
    assert "--bgr is for --images" in fails("show", flow, "--bgr")
    assert "There is no file none:" in fails("show", "none:")
    assert not os.path.exists(str(path))
