"""An error says which datapoint it is about, from wherever the function was called."""

import re
import traceback

import numpy as np
import pytest

from tensorpack.dataflow import (
    DataFromList,
    ImageFromFile,
    MapData,
    MapDataComponent,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiThreadMapData,
)
from tensorpack.dataflow.imgaug import ImageAugmentor
from tensorpack.utils._tracebacks import notes_of
from tests.dataflow.process_flows import FORKED, mixture

MAPS = {
    "MapData": MapData,
    "MapDataComponent": lambda ds, func: MapDataComponent(ds, lambda img: func([img])),
    "MultiThreadMapData": lambda ds, func: MultiThreadMapData(ds, 2, func),
    "MultiProcessMapData": lambda ds, func: MultiProcessMapData(ds, 1, func, **FORKED),
    "MultiProcessMapAndBatchData": lambda ds, func: MultiProcessMapAndBatchData(
        ds, 1, func, 2, **FORKED
    ),
    "MapData in a runner": lambda ds, func: mixture(MapData(ds, func), 1),
}


def text_of(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def failure_of(flow):
    """The error of a flow, and all that is printed of it."""
    try:
        flow.reset_state()
        with pytest.raises(Exception) as caught:
            list(flow)
        return caught.value, text_of(caught.value)
    finally:
        flow.close()


def fail_on_three(datapoint):
    if datapoint[0].flat[0] == 3:
        raise LookupError("of the user")
    return datapoint


@pytest.mark.parametrize("kind", MAPS)
def test_number_contents_and_type(kind):
    source = DataFromList([[np.full((2, 3), i, np.uint8), "a.jpg"] for i in range(4)], False)
    error, text = failure_of(MAPS[kind](source, fail_on_three))
    assert type(error) is LookupError and str(error) == "of the user"
    (note,) = notes_of(error)
    assert note.startswith(f"{kind.split()[0]} failed on datapoint 3 (counted from 0 where the ")
    assert note.endswith(": [uint8 (2, 3), 'a.jpg'].")
    assert note in text and "in fail_on_three" in text


def resize(datapoint):
    import cv2

    return cv2.resize(datapoint[0][:0], (3, 3))


@pytest.mark.parametrize("kind", MAPS)
def test_the_file_below(kind, tmp_path):
    cv2 = pytest.importorskip("cv2")
    path = str(tmp_path / "a.png")
    cv2.imwrite(path, np.zeros((4, 6, 3), np.uint8))
    error, _ = failure_of(MAPS[kind](ImageFromFile([path, path]), resize))
    (note,) = notes_of(error)
    assert re.search("failed on datapoint [01] ", note)  # of two threads either may be faster
    assert note.endswith(f": [uint8 (4, 6, 3)], read from {path}.")
    assert "ssize.empty()" in str(error)
    if not kind.startswith("MultiProcess") and "runner" not in kind:
        assert type(error) is cv2.error


class Empties(ImageAugmentor):
    """An augmentor of 2017 in which OpenCV fails."""

    def _augment(self, img, param):
        return resize([img])


def augmented(datapoint):
    return [Empties().augment(datapoint[0])]


@pytest.mark.parametrize("kind", ["MultiThreadMapData", "MultiProcessMapData"])
def test_augmentors_in_threads_and_processes(kind):
    pytest.importorskip("cv2")
    source = DataFromList([[np.zeros((4, 6, 3), np.uint8)]], False)
    error, _ = failure_of(MAPS[kind](source, augmented))
    assert "Empties() failed on an image of shape (4, 6, 3), uint8: " in str(error)
    assert f"{kind} failed on datapoint 0 " in notes_of(error)[0]


def test_maps_of_maps_are_named_once():
    flow = MapData(
        MapData(DataFromList([[np.ones(1)], [np.full(1, 3)]], False), fail_on_three), list
    )
    error, _ = failure_of(flow)
    (note,) = notes_of(error)
    assert "failed on datapoint 1 " in note
