"""The record of the games that ended in training, and its file."""

import pytest

from tensorpack.RL import Episode, EpisodeLog
from tensorpack.utils import logger

GAMES = [Episode(8, -1.5, 6), Episode(14, 21.0, 2**40), Episode(14, 0.1, 1)]
TEXT = "step,score,length\n8,-1.5,6\n14,21.0,1099511627776\n14,0.1,1\n"


@pytest.fixture
def log():
    filled = EpisodeLog()
    filled.extend(GAMES)
    return filled


def test_the_file_has_every_game_once_however_often_it_is_written(log, log_dir):
    path = f"{log_dir}/episodes.csv"
    log.write()
    log.write()
    with open(path) as file:
        assert file.read() == TEXT
    log.extend(GAMES[:1])
    log.write()
    with open(path) as file:
        assert file.read() == TEXT + "8,-1.5,6\n"
    assert len(log) == 4


def test_a_state_restores_the_games_and_drops_later_ones(log, log_dir):
    state = log.state_dict()
    log.extend(GAMES)
    log.write()
    again = EpisodeLog()
    again.extend(GAMES[:1])
    again.load_state_dict(state)
    again.write()
    with open(f"{log_dir}/episodes.csv") as file:
        assert file.read() == TEXT


def test_a_failing_disk_is_an_error_in_the_log(log, log_dir, monkeypatch, tmp_path):
    errors = []
    monkeypatch.setattr(logger, "error", errors.append)
    path = tmp_path / "log" / "episodes.csv"
    path.mkdir(parents=True)
    logger.set_logger_dir(str(tmp_path / "log"), "k")
    log.write()
    log.write()
    assert [line.startswith(f"Cannot write {path}, ") for line in errors] == [True]
