"""Games on video, and the choice between a window and a file."""

import os
import resource

import numpy as np
import pytest

from tensorpack.RL import GameVideo, VideoFile, open_screen
from tensorpack.RL.video import enlarge
from tensorpack.utils import change_env, logger
from tests.RL.players import read_video


def play(screen, count=5):
    """Shows so many red pictures with a green left half."""
    picture = np.zeros((60, 120, 3), np.uint8)
    picture[..., 0], picture[:, :60] = 255, (0, 255, 0)
    with screen:
        for _ in range(count):
            screen.show(picture)


def test_the_file_that_is_named_has_every_picture_in_its_colours(tmp_path):
    path = str(tmp_path / "new" / "game.mp4")
    play(open_screen(path, str(tmp_path / "play.mp4")))
    assert [names for _, *names in os.walk(str(tmp_path))] == [[["new"], []], [[], ["game.mp4"]]]
    pictures = read_video(path)
    assert [picture.shape for picture in pictures] == [(60, 120, 3)] * 5
    blue, green, red = pictures[2][30, 100]
    assert red > 200 and green < 50 and blue < 50
    blue, green, red = pictures[2][30, 20]
    assert green > 200 and red < 60 and blue < 50


def test_without_a_screen_a_file_is_written(tmp_path):
    path = str(tmp_path / "play.mp4")
    with change_env("DISPLAY", ""), change_env("WAYLAND_DISPLAY", ""):
        play(open_screen(None, path))
    assert len(read_video(path)) == 5


def test_of_a_game_that_ctrl_c_ends_there_is_what_was_played(tmp_path):
    path = str(tmp_path / "game.mp4")
    with pytest.raises(KeyboardInterrupt), VideoFile(path) as video:
        video.show(np.zeros((64, 64, 3), np.uint8))
        raise KeyboardInterrupt
    assert len(read_video(path)) == 1 and os.listdir(str(tmp_path)) == ["game.mp4"]


def test_of_a_game_that_is_broken_off_there_is_no_file(tmp_path):
    with pytest.raises(ValueError), VideoFile(str(tmp_path / "game.mp4")) as video:
        video.show(np.zeros((60, 120, 3), np.uint8))
        raise ValueError
    assert os.listdir(str(tmp_path)) == []


@pytest.fixture
def errors(monkeypatch):
    """What is logged as an error."""
    logged = []
    monkeypatch.setattr(logger, "error", logged.append)
    return logged


def watch_noise(path):
    rng = np.random.RandomState(0)
    with GameVideo(path) as video:
        for _ in range(20):
            video.watch(rng.randint(256, size=(84, 84), dtype=np.uint8))


def test_a_full_disk_leaves_no_video_and_one_line(errors, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, limits[1]))  # for each file, in bytes
    try:
        watch_noise(str(tmp_path / "game.mp4"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(str(tmp_path)) == []
    (said,) = errors
    assert "no video of this evaluation" in said and "of 20 pictures: is the disk full?" in said
    watch_noise(str(tmp_path / "game.mp4"))
    assert len(errors) == 1 and len(read_video(str(tmp_path / "game.mp4"))) == 20


@pytest.mark.parametrize("shape, large", [((84, 84), (420, 420)), ((210, 160, 3), (420, 320))])
def test_a_screen_is_enlarged_to_what_a_picture_has_room_for(shape, large):
    screen = np.random.RandomState(0).randint(256, size=shape, dtype=np.uint8)
    result = enlarge(screen)
    assert result.shape == (*large, 3)
    times = large[0] // shape[0]
    colours = screen if screen.ndim == 3 else np.stack([screen] * 3, -1)
    np.testing.assert_array_equal(result[times - 1 :: times, ::times], colours)


@pytest.mark.parametrize("shape", [(4,), (84, 84, 1), (84, 84)])
def test_frames_that_are_no_pictures_make_no_video(shape, tmp_path, capsys):
    with GameVideo(str(tmp_path / "game.mp4")) as video:
        video.watch(np.zeros(shape, np.float32))
    assert "There is no video of this evaluation: " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
