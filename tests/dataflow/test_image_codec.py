"""Images are decoded from the bytes of files."""

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, DecodeImageComponent, ImageFromFile
from tensorpack.utils._tracebacks import notes_of
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import flow_of

cv2 = pytest.importorskip("cv2")

PICTURE = np.random.RandomState(0).randint(0, 256, (5, 7, 3)).astype(np.uint8)
PNG = cv2.imencode(".png", PICTURE)[1]

TestDecodeImageComponent = contract_of(
    lambda: DecodeImageComponent(flow_of([[PNG, 1], [PNG, 2]])), length=2
)


@pytest.mark.parametrize("data", [PNG.tobytes(), PNG.reshape(-1), PNG.reshape(-1, 1)])
def test_bytes_of_a_file_become_an_image(data):
    (result,) = DecodeImageComponent(flow_of([{"label": 3, "image": data}]), "image")
    assert result["label"] == 3
    np.testing.assert_array_equal(result["image"], PICTURE)  # in BGR, as cv2.imdecode


def test_rgb_and_grey_are_those_of_files(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(PNG.tobytes())
    for channel in 1, 3:
        ((expected,),) = ImageFromFile([str(path)], channel)
        ((decoded,),) = DecodeImageComponent(flow_of([[PNG]]), channel=channel, bgr=False)
        np.testing.assert_array_equal(decoded, expected)


def test_what_is_no_image_names_the_datapoint():
    for data, error, text in [
        (PNG[:-9], DamagedFile, "cut off"),
        ("a.jpg", TypeError, "bytes or a uint8 array, got 'a.jpg'"),
        (PICTURE / 255, TypeError, "bytes or a uint8 array, got float64"),
    ]:
        with pytest.raises(error, match=text) as caught:
            list(DecodeImageComponent(flow_of([[PNG], [data]])))
        assert "DecodeImageComponent failed on datapoint 1" in repr(notes_of(caught.value))
    with pytest.raises(DamagedFile, match="more than max_pixels=34"):
        list(DecodeImageComponent(flow_of([[PNG]]), max_pixels=34))
