"""Finding ROMs, and refusing files that the emulator could not take."""

import os
import shutil

import numpy as np
import pytest

from tensorpack.RL.rom import check_rom, find_rom
from tests.RL.players import breakout_rom


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """The folder of the games; the working directory is `tmp_path`."""
    folder = tmp_path / "data" / "atari_rom"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TENSORPACK_DATASET", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_path_comes_first_and_then_the_dataset_folder(dataset, tmp_path):
    (dataset / "mygame.bin").write_bytes(b"in the dataset")
    (tmp_path / "mygame.bin").mkdir()  # which is not a ROM
    assert os.path.samefile(find_rom("mygame.bin"), dataset / "mygame.bin")
    (tmp_path / "mygame.bin").rmdir()
    (tmp_path / "mygame.bin").write_bytes(b"here")
    assert os.path.samefile(find_rom("mygame.bin"), tmp_path / "mygame.bin")


def test_then_what_ale_py_ships(dataset):
    pytest.importorskip("ale_py")
    path = find_rom("tetris.bin")
    assert "ale_py" in path and os.path.isfile(path)


def test_the_error_names_all_places_and_the_nearest_games(dataset, tmp_path):
    for name in ["space_invaders.bin", "pong.bin", "pong.txt"]:
        (dataset / name).write_bytes(b"a game")
    with pytest.raises(FileNotFoundError, match="Did you mean space_invaders"):
        find_rom("SpaceInvader.bin")
    with pytest.raises(FileNotFoundError, match=r"Did you mean pong\b"):
        find_rom("pongg")
    for name in "SpaceInvadersNoFrameskip-v4", "ALE/SpaceInvaders-v5":
        with pytest.raises(FileNotFoundError, match="Did you mean space_invaders"):
            find_rom(name)
    with pytest.raises(FileNotFoundError) as caught:
        find_rom("qqqqqq")
    message = str(caught.value)
    assert str(tmp_path / "qqqqqq") in message and str(dataset / "qqqqqq") in message
    assert "ale" in message and "Did you mean" not in message


def test_a_rom_passes_under_any_name(tmp_path):
    rom = breakout_rom()
    assert check_rom(rom) == "breakout"
    renamed = shutil.copy(rom, str(tmp_path / "other.bin"))
    assert check_rom(renamed) == "breakout"


def test_what_is_not_a_rom_is_refused(tmp_path):
    pytest.importorskip("ale_py")
    path = tmp_path / "breakout.bin"  # the right name does not help
    path.write_bytes(np.random.RandomState(0).bytes(4096))
    with pytest.raises(ValueError, match="not an Atari ROM .* checksum"):
        check_rom(str(path))
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        check_rom(str(tmp_path))
