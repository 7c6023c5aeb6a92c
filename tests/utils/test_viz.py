"""Tests of `tensorpack.utils.viz`."""

import os

import numpy as np
import pytest

from tensorpack.utils.viz import (
    draw_boxes,
    dump_dataflow_images,
    gen_stack_patches,
    intensity_to_rgb,
    interactive_imshow,
    pyplot2img,
    stack_patches,
)

cv2 = pytest.importorskip("cv2")


def squares(count, size=2):
    return [np.full((size, size), 10 + index, np.uint8) for index in range(count)]


def test_a_grid_is_filled_row_by_row_and_the_rest_is_background():
    grid = stack_patches(squares(3), 2, 2, border=1, bgcolor=200)
    expected = np.full((5, 5), 200)
    expected[:2, :2], expected[:2, 3:], expected[3:, :2] = 10, 11, 12
    assert grid.shape == (5, 5, 3) and grid.dtype == np.uint8
    for channel in range(3):
        np.testing.assert_array_equal(grid[:, :, channel], expected)


def test_padding_puts_small_images_in_the_middle():
    grid = stack_patches(squares(1, 4) + squares(1, 2), 1, 2, border=0, pad=True, bgcolor=0)
    expected = np.zeros((4, 4))
    expected[1:3, 1:3] = 10
    np.testing.assert_array_equal(grid[:, 4:, 0], expected)
    with pytest.raises(ValueError, match="pad=True"):
        stack_patches(squares(1) + squares(1, 3), 2, 2)


def test_pages_with_a_partial_last_one():
    pages = list(gen_stack_patches(squares(5), 1, 2, border=0, bgcolor=0))
    assert [page[0, :, 0].tolist() for page in pages] == [
        [10, 10, 11, 11],
        [12, 12, 13, 13],
        [14, 14, 0, 0],
    ]
    assert list(gen_stack_patches([])) == []
    pages = list(gen_stack_patches(squares(9), border=1, max_width=8, max_height=5))
    assert [page.shape[:2] for page in pages] == [(5, 8), (5, 8)]


class Flow:
    """Yields what it is given; by default batches of two images and a label."""

    def __init__(self, *datapoints):
        self.resets = 0
        self._datapoints = datapoints or [
            [value, np.full((2, 4, 5, 3), value * 0.1)] for value in range(3)
        ]

    def reset_state(self):
        self.resets += 1

    def __iter__(self):
        return iter(self._datapoints)


def test_images_of_a_flow_are_written(tmp_path):
    flow, folder = Flow(), str(tmp_path / "out")
    count = dump_dataflow_images(flow, index=1, output_dir=folder, scale=1000, resize=(10, 8))
    assert count == 6 and flow.resets == 1
    assert sorted(os.listdir(folder)) == [f"00{index}.jpg" for index in range(6)]
    image = cv2.imread(os.path.join(folder, "003.jpg"))
    assert image.shape == (8, 10, 3) and abs(int(image[0, 0, 0]) - 100) <= 2


def test_the_number_of_images_is_a_limit_and_they_need_not_be_a_batch(tmp_path):
    assert dump_dataflow_images(Flow(), index=1, number=3, output_dir=str(tmp_path / "out")) == 3
    assert len(os.listdir(str(tmp_path / "out"))) == 3
    assert dump_dataflow_images(Flow(), index=1, number=0) == 0
    flow = Flow(*[[image] for batch in Flow() for image in batch[1]])
    assert dump_dataflow_images(flow, batched=False, output_dir=str(tmp_path)) == 6
    red = np.full((1, 4, 4, 3), (255, 0, 0))
    dump_dataflow_images(Flow([red]), output_dir=str(tmp_path), flipRGB=True)
    assert cv2.imread(str(tmp_path / "000.jpg"))[0, 0, 2] > 200


def test_boxes_are_drawn_into_a_copy():
    image = np.zeros((20, 20), np.uint8)
    drawn = draw_boxes(image, [[2, 3, 10, 12]], labels=["a"], color=(1, 2, 3))
    assert drawn.shape == (20, 20, 3) and not image.any()
    assert drawn[12, 2].tolist() == drawn[12, 10].tolist() == [1, 2, 3]
    assert not drawn[15:].any()
    assert not draw_boxes(image, np.zeros((0, 4))).any()
    drawn = draw_boxes(image[:6, :8], [[0, 0, 8, 6]], color=(1, 1, 1))[:, :, 0]
    assert drawn.sum() == 24 and not drawn[1:-1, 1:-1].any()  # all four edges


def test_intensities():
    pytest.importorskip("matplotlib")
    colours = intensity_to_rgb(np.array([[0.0, 5.0]]), cmap="gray", normalize=True)
    assert colours.dtype == np.float32
    np.testing.assert_allclose(colours[0], [[0, 0, 0], [255, 255, 255]])


def test_a_figure_as_an_image():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    figure = plt.figure(figsize=(3, 2), dpi=50, facecolor=(1, 0.5, 0))
    try:
        for source in (plt, figure):
            image = pyplot2img(source)
            assert (image.shape, image.dtype) == ((100, 150, 3), np.uint8)
            assert abs(image[0, 0].astype(int) - [0, 127, 255]).max() <= 1
    finally:
        plt.close(figure)


def test_a_click_on_a_grid_in_a_window_and_a_key(monkeypatch):
    keys, clicked, window = iter("aq"), [], {}

    def wait(delay):
        window["mouse"](cv2.EVENT_LBUTTONUP, 3, 0)
        return ord(next(keys))

    for name, function in {
        "imshow": lambda name, image: clicked.append(image.shape),
        "setMouseCallback": lambda name, function: window.update(mouse=function),
        "waitKey": wait,
        "destroyWindow": lambda name: None,
    }.items():
        monkeypatch.setattr(cv2, name, function, raising=False)
    interactive_imshow(np.zeros((2, 2)), key_cb_a=lambda image: clicked.append("a"))
    assert clicked == [(2, 2), "a"]
    keys = iter("q")
    list(gen_stack_patches(squares(2), 1, 2, border=0, viz=True, lclick_cb=clicked.append))
    assert clicked[2:] == [(2, 4, 3), 1]
