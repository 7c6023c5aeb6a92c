"""Rollouts: each datapoint against the raw steps of the player, by slow code; their state."""

from pathlib import Path

import numpy as np
import pytest
from acting import sample_actions
from returns import nstep_targets
from rollout import Rollouts

from tensorpack.RL import Player, PlayerStep
from tensorpack.utils.rng import rng_state, set_rng_state
from tests.RL.catch import CatchPlayer
from tests.RL.disk import through_a_checkpoint

ENVS, LENGTH, HISTORY, DISCOUNT = 3, 4, 2, 0.9
FRAME = (2, 3)
NAMES = (["state"], ["policy", "value"])


class EventfulPlayer(Player):
    """Random frames and rewards; games end, are cut off and lose lives at random. Some are cut off
    between two steps.

    Attributes:
      tape: the first frames, then all actions and steps.
    """

    num_envs, num_actions, frame_shape = ENVS, 4, FRAME

    def __init__(self, seed=0):
        self._rng = np.random.RandomState(seed)
        self._ended = np.zeros(ENVS, bool)
        self.tape = []

    def _reset(self, seed):
        self.tape.append(self._frames())
        return self.tape[-1]

    def _step(self, actions):
        reset = self._ended
        event = np.where(reset, 9, self._rng.randint(9, size=ENVS))
        self._ended = (event <= 1) | (event == 4)
        step = PlayerStep(
            frames=self._frames(),
            reward=np.where(reset, 0, self._rng.randint(-2, 4, size=ENVS)).astype(np.float32),
            terminated=event == 0,
            truncated=event == 1,
            life_lost=event == 2,
            reset=reset,
            episode_score=np.where(event <= 1, self._rng.randint(100, size=ENVS), np.nan),
            taken=np.where(event == 3, 0, actions),
        )
        self.tape.append((actions, step))
        return step

    def _frames(self):
        return self._rng.randint(256, size=(ENVS, *FRAME)).astype(np.uint8)

    def _state_dict(self):
        return {"rng": rng_state(self._rng), "ended": self._ended.copy()}

    def _load_state_dict(self, state):
        set_rng_state(self._rng, state["rng"])
        self._ended = np.array(state["ended"])


class ForgetfulPlayer(EventfulPlayer):
    """Cannot save its games."""

    def _save_obstacle(self):
        return "it forgets"


def value_of(state):
    """What the network of these tests takes a state to be worth."""
    return state.astype(float).mean() / 100


def predict(states):
    weights = np.linspace(-0.01, 0.01, 12 * 4).reshape(12, 4)
    scores = states.reshape(len(states), -1).astype(float) @ weights
    policy = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    values = [value_of(state) for state in states]
    return [policy.astype(np.float32), np.array(values, np.float32)]


class Run:
    """As much of a trainer as `Rollouts` asks for."""

    resume_strictly = True

    def __init__(self):
        self.monitors, self.scalars = self, {}

    def get_predictor(self, inputs, outputs):
        assert (inputs, outputs) == NAMES
        return predict

    def put_scalar(self, name, value):
        self.scalars[name] = value


def start(player, state=None, strictly=True, **options):
    """A `Rollouts` in a run that has begun, or continues from a state; and its datapoints."""
    options = {"length": LENGTH, "history": HISTORY, "discount": DISCOUNT, **options}
    rollouts = Rollouts(NAMES, player, **options)
    run = Run()
    run.resume_strictly = strictly
    rollouts.setup_graph(run)
    if state is not None:
        rollouts.load_state_dict(state)
    rollouts.before_train()
    return rollouts, iter(rollouts)


def derived(tape, env, life_loss_ends):
    """What is to be learned from one environment: {tick: (state, action, target)}."""
    steps = [PlayerStep(*(field[env] for field in step)) for _, step in tape[1:]]
    frames, states = [tape[0][env]], []
    for step in steps:
        states.append(stack_of(frames))
        if step.reset or (step.life_lost and life_loss_ends):
            frames = []
        frames.append(step.frames)
    states.append(stack_of(frames))
    wanted = {}
    for tick, ((actions, _), step) in enumerate(zip(tape[1:], steps)):
        if not step.reset and step.taken == actions[env]:
            target = target_of(steps, states, tick, life_loss_ends)
            wanted[tick] = states[tick], step.taken, target
    return wanted


def stack_of(frames):
    """The last frames, oldest first; black ones from before."""
    return np.stack(([np.zeros(FRAME, np.uint8)] * HISTORY + frames)[-HISTORY:], -1)


def target_of(steps, states, tick, life_loss_ends):
    """The discounted rewards from a tick on, up to the end of its rollout or episode."""
    total, factor = 0.0, 1.0
    while True:
        step = steps[tick]
        total += factor * min(max(step.reward, -1), 1)
        factor *= DISCOUNT
        tick += 1
        if step.terminated or (step.life_lost and life_loss_ends):
            return total
        if step.truncated or tick % LENGTH == 0 or steps[tick].reset:
            return total + factor * value_of(states[tick])


@pytest.mark.parametrize("life_loss_ends", [True, False])
def test_datapoints_are_what_slow_code_derives_from_the_steps(life_loss_ends):
    player = EventfulPlayer()
    rollouts, datapoints = start(player, life_loss_ends=life_loss_ends)
    rounds = 60
    batches = [next(datapoints) for _ in range(rounds)]
    by_env = [derived(player.tape, env, life_loss_ends) for env in range(ENVS)]
    for number, (states, actions, targets) in enumerate(batches):
        wanted = [
            by_env[env][tick]
            for tick in range(number * LENGTH, (number + 1) * LENGTH)
            for env in range(ENVS)
            if tick in by_env[env]
        ]
        np.testing.assert_array_equal(states, [state for state, _, _ in wanted])
        np.testing.assert_array_equal(actions, [action for _, action, _ in wanted])
        np.testing.assert_allclose(targets, [target for _, _, target in wanted], atol=1e-6)
        assert (states.dtype, actions.dtype, targets.dtype) == (np.uint8, np.int64, np.float32)
    events = [step for _, step in player.tape[1:]]
    assert rollouts.env_steps == sum(np.count_nonzero(~step.reset) for step in events)
    for name in ("terminated", "truncated", "life_lost"):
        assert sum(getattr(step, name).sum() for step in events) > 10


def test_a_target_is_not_touched_by_what_follows_an_end():
    nan, no = np.full((3, 1), np.nan, np.float32), np.zeros((2, 1), bool)
    over = np.array([[False], [True]])
    rewards = np.array([[1.0], [2.0]], np.float32)
    np.testing.assert_allclose(nstep_targets(rewards, over, no, nan, 0.5), [[2.0], [2.0]])


def test_games_are_whole_and_their_lengths_are_counted(log_dir):
    player = CatchPlayer(2, seed=3, cell=1)
    rollouts = Rollouts(NAMES, player, length=7)
    run = Run()
    run.get_predictor = lambda *names: lambda states: [np.ones((2, 3)) / 3, np.zeros(2)]
    rollouts.setup_graph(run)
    rollouts.before_train()
    datapoints = iter(rollouts)
    for _ in range(3):
        assert len(next(datapoints)[0]) == 12  # of 14: in one tick of seven a game begins
    rollouts.trigger()
    assert set(run.scalars) == {"rollout/mean_score", "rollout/max_score"}
    rows = Path(log_dir, "episodes.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows[1:]] == ["6"] * 6
    assert rollouts.num_episodes == 6 and rollouts.env_steps == 36
    run.scalars.clear()
    rollouts.trigger()
    assert not run.scalars


def test_a_state_restores_the_next_datapoints(tmp_path):
    rollouts, datapoints = start(EventfulPlayer())
    for _ in range(5):
        next(datapoints)
    state = through_a_checkpoint(rollouts.state_dict(), tmp_path)
    expected = [next(datapoints) for _ in range(5)]
    again, datapoints = start(EventfulPlayer(seed=9), state)
    for wanted, got in zip(expected, datapoints):
        for one, other in zip(wanted, got):
            np.testing.assert_array_equal(one, other)
    assert again.env_steps == rollouts.env_steps


def test_games_that_cannot_be_saved_begin_again_or_are_an_error(tmp_path, lines):
    rollouts, datapoints = start(ForgetfulPlayer())
    next(datapoints)
    state = through_a_checkpoint(rollouts.state_dict(), tmp_path)
    with pytest.raises(RuntimeError, match="new ones begin.*--resume auto"):
        start(ForgetfulPlayer(), state)
    player = ForgetfulPlayer()
    again, datapoints = start(player, state, strictly=False)
    before = again.env_steps
    states, _, _ = next(datapoints)
    assert not states[0, ..., 0].any()  # nothing is known from before the games
    assert before == rollouts.env_steps < again.env_steps


def test_other_games_or_rules_are_refused(tmp_path):
    class OtherGame(EventfulPlayer):
        identity = {"game": "pong"}

    state = through_a_checkpoint(start(EventfulPlayer())[0].state_dict(), tmp_path)
    with pytest.raises(ValueError, match="pong.*--load"):
        start(OtherGame(), state)
    with pytest.raises(RuntimeError, match="discount was 0.9, and is 0.5"):
        start(EventfulPlayer(), state, discount=0.5)


def test_actions_are_drawn_by_their_probabilities():
    policy = np.array([[0.0, 0.2, 0.8], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], np.float32)
    rng = np.random.RandomState(0)
    draws = np.stack([sample_actions(policy, rng) for _ in range(4000)])
    shares = [(draws == action).mean(0) for action in range(3)]
    np.testing.assert_allclose(np.transpose(shares), policy, atol=0.03)
    assert draws.dtype == np.int64 and not (draws[:, 0] == 0).any() and not draws[:, 1].any()
