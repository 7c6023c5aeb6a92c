"""`tensorpack doctor` on games: what is installed is played, and what cannot be is said."""

import pytest

from tensorpack.command import _doctor_games as games
from tensorpack.command._doctor_checks import OK, WARNING
from tests.RL.players import breakout_rom


@pytest.mark.slow
def test_a_game_is_played():
    found = games.check_atari("ale-py 1", [breakout_rom()])
    assert found.level == OK
    assert found.text.startswith("ale-py 1, 1 games; ") and "steps a second" in found.text


def test_without_games():
    found = games.check_atari("ale-py 0.8", [])
    assert (found.level, found.text) == (WARNING, "ale-py 0.8, but no game")
    assert "pip install 'ale-py>=0.9'" in found.advice


def test_a_file_that_is_no_game(tmp_path):
    (tmp_path / "page.bin").write_text("<html>")
    found = games.check_atari("ale-py 1", [str(tmp_path / "page.bin")])
    assert found.level == WARNING
    assert "page.bin cannot be played: ValueError" in found.text
    assert found.advice == (
        f"python -m tensorpack.command._probe_games atari {tmp_path / 'page.bin'} shows all"
    )


def test_an_environment_of_gym():
    pytest.importorskip("gymnasium")
    (found,) = games.check_games({"gymnasium": "1.4.0", "gym": "0.21.0"})
    assert found.level == OK
    assert found.text.startswith("gymnasium 1.4.0; CartPole-v1 plays, one by one, ")


def test_nothing_is_said_of_what_is_not_installed():
    assert list(games.check_games({"numpy": "2.4"})) == []
