"""Games on video, and the choice between a window and a file."""

import os

import cv2
import numpy as np
import pytest
from video import VideoFile, open_screen

from tensorpack.utils import change_env


def play(screen, count=5):
    """Shows so many red screens with a green left half."""
    picture = np.zeros((20, 40, 3), np.uint8)
    picture[..., 0], picture[:, :20] = 255, (0, 255, 0)
    with screen:
        for _ in range(count):
            screen.show(picture)


def read(path):
    """All frames of a video file, blue first."""
    video = cv2.VideoCapture(path)
    frames = []
    while True:
        more, frame = video.read()
        if not more:
            return frames
        frames.append(frame)


def test_the_file_that_is_named_has_every_screen_enlarged_and_in_its_colours(tmp_path):
    path = str(tmp_path / "new" / "game.mp4")
    play(open_screen(path, str(tmp_path / "play.mp4")))
    assert os.listdir(str(tmp_path)) == ["new"]
    frames = read(path)
    assert [frame.shape for frame in frames] == [(60, 120, 3)] * 5
    blue, green, red = frames[2][30, 100]
    assert red > 200 and green < 50 and blue < 50
    blue, green, red = frames[2][30, 20]
    assert green > 200 and red < 60 and blue < 50


def test_a_folder_that_is_none_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        play(VideoFile(str(tmp_path / "file" / "game.mp4")))


def test_without_a_screen_a_file_is_written(tmp_path):
    path = str(tmp_path / "play.mp4")
    with change_env("DISPLAY", ""), change_env("WAYLAND_DISPLAY", ""):
        play(open_screen(None, path))
    assert len(read(path)) == 5
