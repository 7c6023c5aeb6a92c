"""Whole games: shares, scores, the evaluator within a run."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.contrib.games import (
    AllWeights,
    Evaluator,
    Progress,
    play_n_episodes,
)
from tensorpack.RL import Player, PlayerStep
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.tfutils.sessinit import VariableMismatch
from tensorpack.utils.stopping import Interrupted, StopRequested
from tests.clock import FakeClock
from tests.RL.players import FakeTrainer, read_video


class Lengths(Player):
    """Environment i plays games of `lengths[i]` steps, whose score is their length; frames are by
    chance, from the seed of the reset.
    """

    num_actions = 2
    frame_shape = (2, 2)

    def __init__(self, lengths):
        self.num_envs = len(lengths)
        self.closed = False
        self._lengths = np.array(lengths)
        self._clock = np.zeros(len(lengths), int)

    def _reset(self, seed):
        self._rng = np.random.RandomState(seed)
        self._clock[:] = 0
        return self._frames()

    def _step(self, actions):
        begins = self._clock == self._lengths
        self._clock = np.where(begins, 0, self._clock + 1)
        over = self._clock == self._lengths
        nothing = np.zeros(self.num_envs, bool)
        score = np.where(over, self._lengths.astype(float), np.nan)
        return PlayerStep(
            self._frames(), nothing.astype(np.float32), over, nothing, nothing, begins, score
        )

    def _close(self):
        self.closed = True

    def _frames(self):
        return self._rng.randint(256, size=(self.num_envs, 2, 2)).astype(np.uint8)


def no_preference(states):
    return [np.zeros((len(states), 2))]


def test_every_environment_plays_its_share_so_long_games_count():
    scores = play_n_episodes(Lengths([2, 50, 3]), no_preference, 5)
    assert scores == [2.0, 3.0, 2.0, 50.0, 50.0]


class Evaluation:
    """An evaluator over games of one and of three steps, ready to be triggered."""

    def __init__(self, nr_eval=4, clock=None, lengths=(1, 3), **options):
        self.players, self.lengths = [], lengths
        self.seen = []
        self.trainer = FakeTrainer(self._note)
        self.trainer.deterministic = False
        self.clock = FakeClock() if clock is None else clock
        self.evaluator = Evaluator(
            nr_eval, ["state"], ["Qvalue"], self._make, clock=self.clock, **options
        )
        self.evaluator.setup_graph(self.trainer)

    def _make(self, count):
        self.players.append(Lengths(self.lengths[:count]))
        return self.players[-1]

    def _note(self, states):
        self.seen.append(states.copy())
        return no_preference(states)


def test_evaluator_logs_mean_and_best_and_closes_its_games():
    evaluation = Evaluation(num_players=2)
    evaluation.evaluator.trigger()
    assert evaluation.trainer.scalars == {"mean_score": 2.0, "max_score": 3.0}
    assert [player.closed for player in evaluation.players] == [True]


@pytest.mark.parametrize("deterministic, games", [(False, 47), (True, 50)])
def test_after_a_long_evaluation_the_next_one_is_shorter(deterministic, games):
    clock = FakeClock()
    evaluation = Evaluation(nr_eval=50, clock=lambda: clock.advance(601) or clock.now)
    evaluation.trainer.deterministic = deterministic
    evaluation.evaluator.trigger()
    assert evaluation.evaluator.eval_episode == games


def evaluated(evaluation):
    """The states that the network is asked about in an evaluation, as one array."""
    evaluation.seen.clear()
    evaluation.evaluator.trigger()
    return np.concatenate(evaluation.seen)


def test_a_state_gives_the_next_evaluation_again():
    first, second = Evaluation(nr_eval=9, num_players=2), Evaluation(nr_eval=9, num_players=2)
    before = evaluated(first)
    second.evaluator.load_state_dict(first.evaluator.state_dict())
    states = evaluated(first)
    np.testing.assert_array_equal(states, evaluated(second))
    assert not np.array_equal(states, before)


def test_progress_continues_over_the_attempts_of_a_run():
    clock = FakeClock()
    source = SimpleNamespace(env_steps=1000, num_episodes=3)

    def attempt(seconds, state=None):
        progress, trainer = Progress(source, 4, clock), FakeTrainer(None)
        progress.setup_graph(trainer)
        if state is not None:
            progress.load_state_dict(state)
        clock.advance(seconds)
        progress.trigger()
        return progress.state_dict(), trainer.scalars

    state, first = attempt(5400)
    clock.advance(10**6)  # between two attempts
    _, second = attempt(1800, state)
    steps = {"agent_steps": 1000, "emulator_frames": 4000, "episodes": 3}
    assert first == {**steps, "hours": 1.5}
    assert second == {**steps, "hours": 2.0}


def test_a_video_has_one_whole_game_and_changes_nothing(log_dir):
    options = {"nr_eval": 4, "num_players": 2, "lengths": (7, 3)}
    plain, filmed = Evaluation(**options), Evaluation(**options, video=True)
    filmed.evaluator.load_state_dict(plain.evaluator.state_dict())
    states = evaluated(plain)
    assert "videos" not in os.listdir(log_dir)
    np.testing.assert_array_equal(evaluated(filmed), states)
    assert os.listdir(os.path.join(log_dir, "videos")) == ["game-20.mp4"]
    pictures = read_video(os.path.join(log_dir, "videos", "game-20.mp4"))
    assert len(pictures) == 7
    assert pictures[0].shape == (420, 420, 3)


class StopAfter(FakeTrainer):
    """Asks the run to end after three ticks, as a signal does."""

    ticks = 3

    def check_stop(self):
        super().check_stop()
        self.ticks -= 1
        if not self.ticks:
            self.stop_token.request(Interrupted(2))


def test_an_interrupted_evaluation_plays_the_same_games_in_another_process():
    options = {"nr_eval": 5, "num_players": 2, "epsilon": 0.5}
    whole, first, second = (Evaluation(**options) for _ in range(3))
    first.evaluator.load_state_dict(whole.evaluator.state_dict())
    states = evaluated(whole)
    first.trainer = StopAfter(first._note)
    first.evaluator.setup_graph(first.trainer)
    with pytest.raises(StopRequested):
        first.evaluator.trigger()
    assert first.trainer.scalars == {} and first.players[0].closed
    second.evaluator.load_state_dict(first.evaluator.state_dict())
    np.testing.assert_array_equal(evaluated(second), states)
    assert second.trainer.scalars == whole.trainer.scalars


def load_into(names, path, size=2):
    """The values of a network with these variables, from a file."""
    with tf.Graph().as_default(), tf.Session() as sess:
        variables = [tf.get_variable(name, [size]) for name in names]
        loader = AllWeights(path, "give the right one")
        sess.run(tf.global_variables_initializer())
        loader.init(sess)
        return [value.tolist() for value in sess.run(variables)]


@pytest.fixture(params=["model-5", "model.npz"])
def saved(request, tmp_path):
    path = str(tmp_path / request.param)
    save_checkpoint_vars({"a": np.ones(2, "f"), "b": np.zeros(2, "f")}, path)
    return path


def test_all_weights_are_there_or_listed(saved):
    assert load_into(["a"], saved) == [[1, 1]]
    with pytest.raises(VariableMismatch) as error:
        load_into(["c", "a"], saved, size=3)
    lines = [line.split() for line in str(error.value).splitlines()]
    assert lines[0] == ["give", "the", "right", "one"]
    assert ["c", "float32", "[3]", "missing"] in lines
    assert ["a", "float32", "[3]", "float32", "[2]", "does", "not", "fit"] in lines


def test_weights_that_the_network_does_not_have_are_listed(tmp_path):
    path = str(tmp_path / "model-5")
    of_the_training = ["target/conv0/W", "conv0/W/Adam", "EMA/cost", "global_step"]
    names = ["conv0/W", "conv0/alpha", *of_the_training]
    save_checkpoint_vars({name: np.ones(2, "f") for name in names}, path)
    with pytest.raises(VariableMismatch, match=r"conv0/alpha +float32 \[2\] +extra") as error:
        load_into(["conv0/W"], path)
    assert "target" not in str(error.value) and "Adam" not in str(error.value)
    assert load_into(["conv0/W", "conv0/alpha"], path) == [[1, 1], [1, 1]]
