"""The state of an ExpReplay: batches go on bit for bit; what is lost is told, or is an error."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from expreplay import ExpReplay

import tensorpack as tp
from tensorpack.utils import logger
from tensorpack.utils.checkpoints import SegmentDamaged, find_restore_point
from tensorpack.utils.stopping import Interrupted
from tests.examples.small_dqn import make_config, small_catch
from tests.RL.catch import CatchPlayer, CountingCatch
from tests.RL.disk import through_a_checkpoint
from tests.RL.players import FakeTrainer
from tests.tiers import first_fast


class ForgetfulCatch(CountingCatch):
    """Cannot save its games."""

    def _save_obstacle(self):
        return "it forgets"


class Run(FakeTrainer):
    """A run whose weights depend on the number of steps."""

    def __init__(self, steps, strictly):
        super().__init__(self._predict)
        self.resumed = strictly is not None
        self.resume_strictly = bool(strictly)
        self.steps = steps
        self.asked = 0

    def _predict(self, states):
        self.asked += 1
        weights = np.random.RandomState(self.steps).standard_normal((states[0].size, 3))
        return [states.reshape(len(states), -1).astype(float) @ weights]


class Playing:
    """An ExpReplay in a run in lockstep; goes on from a state if there is one."""

    def __init__(self, player, state=None, strictly=True, steps=0, batch_size=8, **options):
        self.player = player
        self.run = Run(steps, None if state is None else strictly)
        names = (["state"], ["Qvalue"])
        self.expreplay = ExpReplay(names, player, batch_size, 100, 60, **options)
        self.expreplay.setup_graph(self.run)
        if state is not None:
            self.expreplay.load_state_dict(state)
        self.expreplay.before_train()
        if state is None:
            self.expreplay.exploration = 0.3
        self._batches = iter(self.expreplay)

    def batches(self, count):
        """So many batches, each with new weights, as one list of arrays."""
        arrays = []
        for _ in range(count):
            self.run.steps += 1
            batch = next(self._batches)
            arrays.extend(batch)
            if self.expreplay.prioritized:  # as a network that has learned something of each
                errors = 1 / (batch[-1] + self.run.steps)
                self.expreplay.after_run(None, SimpleNamespace(results=[(batch[-1], errors)]))
        return arrays

    def scores(self):
        self.expreplay.trigger()
        return self.run.scalars


@pytest.fixture
def save(tmp_path):
    """Saves the state of a `Playing` to the disk and returns what is read from there."""

    def through_the_disk(playing):
        return through_a_checkpoint(playing.expreplay.state_dict(), tmp_path)

    return through_the_disk


@pytest.fixture
def warnings(monkeypatch):
    """What is logged as a warning."""
    logged = []
    monkeypatch.setattr(logger, "warning", logged.append)
    return logged


def check_same(arrays, others):
    assert len(arrays) == len(others)
    for array, other in zip(arrays, others):
        np.testing.assert_array_equal(array, other)


# A game is six transitions and a tick that begins it; the memory is full after ten batches.
@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("before", first_fast([0, 1, 2, 5, 17], 3))
@pytest.mark.parametrize("options", [{}, {"n_step": 3, "priority": 0.6}])
def test_it_continues_bit_for_bit(num_envs, before, options, save):
    first = Playing(small_catch(num_envs, CountingCatch), **options)
    first.batches(before)
    state = save(first)
    player = small_catch(num_envs, CountingCatch)
    second = Playing(player, state, steps=before, **options)
    assert (player.resets, player.played) == (0, first.player.played)
    check_same(second.batches(20), first.batches(20))
    assert second.scores() == first.scores()
    assert second.expreplay.exploration == 0.3


def test_a_state_does_not_change_any_more(save):
    first = Playing(small_catch())
    state = first.expreplay.state_dict()
    kept = {name: state[name] for name in ("waiting", "budget", "exploration")}
    frames = state["simulator"]["frames"].copy()
    state["memory"]["entries"].on_done(None)
    first.batches(5)
    assert kept == {name: state[name] for name in kept}
    np.testing.assert_array_equal(state["simulator"]["frames"], frames)


def damage(tmp_path):
    """The state as it is found when a segment of it is damaged, and no other state is whole."""
    path = max((tmp_path / "segments").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return find_restore_point(str(tmp_path)).state["it"]


def test_a_damaged_memory_is_an_error_where_the_run_must_resume_exactly(save, tmp_path):
    save(Playing(small_catch()))
    state = damage(tmp_path)
    with pytest.raises(SegmentDamaged):
        Playing(small_catch(), state)


def test_a_lost_memory_is_populated_again_by_the_trained_network(save, tmp_path, warnings):
    first = Playing(small_catch(kind=CountingCatch))
    save(first)
    state, played = damage(tmp_path), first.player.played
    del warnings[:]
    state["exploration"] = 0.0
    second = Playing(small_catch(kind=CountingCatch), state, strictly=False)
    assert second.player.played == played + 60 <= played + second.run.asked
    assert second.player.resets == 0  # the games go on
    (said,) = warnings
    assert "replay memory" in said and "populated again" in said
    second.batches(3)


def test_games_that_cannot_be_saved_are_an_error_where_the_run_must_resume_exactly(save):
    state = save(Playing(small_catch(kind=ForgetfulCatch)))
    with pytest.raises(RuntimeError, match="does not save games.*use --resume auto"):
        Playing(small_catch(kind=ForgetfulCatch), state)


def test_lost_games_start_over_in_the_memory_too(save, warnings):
    first = Playing(small_catch(kind=ForgetfulCatch))
    first.batches(1)  # and so a game is under way
    player = small_catch(kind=ForgetfulCatch)
    state = save(first)
    second = Playing(player, state, strictly=False)
    assert (player.resets, player.played) == (1, 0)
    assert ["new ones begin" in each for each in warnings] == [True]
    memory = second.expreplay._memory
    before = memory.num_sampleable
    second.batches(1)
    # of the four new entries the last waits for its next frame; the cut one never gets one
    assert memory.num_sampleable == before + 3


def test_what_is_half_made_when_the_run_is_asked_to_end_is_finished(save):
    first = Playing(small_catch(kind=CountingCatch))
    other = Playing(small_catch(kind=CountingCatch), save(first))
    other.player.during_step = lambda: other.run.stop_token.request(Interrupted(2))
    check_same(other.batches(1), first.batches(1))
    third = Playing(small_catch(kind=CountingCatch), save(other), steps=1)
    after = first.batches(5)
    check_same(third.batches(5), after)
    # a step that began before the run was asked waits for its batch
    check_same(other.batches(1), after[:4])


class NamedCatch(CatchPlayer):
    """Says what is played."""

    identity = {"game": "catch"}


def other_game():
    player = small_catch(kind=NamedCatch)
    player.identity = {"game": "catch2"}
    return player


def test_the_state_of_another_game_is_refused(save):
    state = save(Playing(small_catch(kind=NamedCatch)))
    Playing(small_catch(kind=NamedCatch), state)
    with pytest.raises(ValueError, match="games with {'game': 'catch'}, these are .*'catch2'"):
        Playing(other_game(), state, strictly=False)


def test_other_rules_of_learning_are_an_error_where_the_run_must_resume_exactly(save, warnings):
    state = save(Playing(small_catch(), rules={"discount": 0.99}))
    changed = {"batch_size": 5, "update_frequency": 9, "rules": {"discount": 0.5}}
    said = (
        "with other rules: discount was 0.99, and is 0.5; batch_size was 8, and is 5; "
        "update_frequency was 4, and is 9."
    )
    with pytest.raises(RuntimeError, match=f"{said} If that is acceptable"):
        Playing(small_catch(), state, **changed)
    assert warnings == []
    Playing(small_catch(), state, strictly=False, **changed)
    assert [each.endswith(said) for each in warnings] == [True]


@pytest.mark.slow
def test_a_state_taken_while_threads_play_has_no_half_done_tick(log_dir):
    player = small_catch(kind=CountingCatch)
    player.during_step = lambda: time.sleep(0.001)
    config = make_config(player)
    seen = []

    class Save(tp.Callback):
        def _trigger_step(self):
            state = config.data.ds.state_dict()
            state["memory"]["entries"].on_done(None)
            inside = state["simulator"]["player"]["inside"]
            seen.append((state["memory"]["written"].sum(), inside["played"]))

    config.callbacks.append(Save())
    tp.QueueInputTrainer(config).train()
    assert len(seen) == 20
    assert all(written == played for written, played in seen)
