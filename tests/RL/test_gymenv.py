"""Gym environments of both step styles as players, and as environments of 2017."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tensorpack.RL.common import AutoRestartPlayer
from tensorpack.RL.gymenv import GymEnv, GymPlayers
from tests.contracts.player import PlayerContract, contract_of
from tests.processes import run_python

LENGTH = 6


class NewStyle:
    """Walks at random; gymnasium's style. Over after six actions, three of "stay" truncate."""

    action_space = SimpleNamespace(n=3)
    observation_space = SimpleNamespace(shape=(2,), dtype=np.dtype(np.float32))

    def __init__(self):
        self.closed = 0
        self.rng = np.random.RandomState()
        self.buffer = np.zeros(2, dtype=np.float32)

    def reset(self, seed=None):
        if seed is not None:
            self.rng = np.random.RandomState(seed)
        self.count = self.stays = 0
        self.buffer[:] = self.rng.rand(2)
        return self.buffer, {"lives": 3}

    def step(self, action):
        self.count, self.stays = self.count + 1, self.stays + (action == 2)
        self.buffer += self.rng.rand(2) * (action - 2)
        info = {"lives": 3 - self.count // 2}
        return self.buffer, float(action), self.count >= LENGTH, self.stays >= 3, info

    def close(self):
        self.closed += 1


class OldStyle:
    """The same in the style of gym 0.21: `seed()`, no info at the reset, steps of four."""

    action_space, observation_space = NewStyle.action_space, NewStyle.observation_space

    def __init__(self):
        self.new = NewStyle()

    def seed(self, seed):
        self.new.rng = np.random.RandomState(seed)

    def reset(self):
        return self.new.reset()[0]

    def step(self, action):
        observation, reward, terminated, truncated, info = self.new.step(action)
        if truncated:
            info = {**info, "TimeLimit.truncated": not terminated}
        return observation, reward, terminated or truncated, info

    def close(self):
        self.new.close()


TestNewStyle = contract_of(lambda: GymPlayers(NewStyle, num_envs=2))
TestOldStyle = contract_of(lambda: GymPlayers(OldStyle, num_envs=2, max_episode_actions=5))


class TestCartPole(PlayerContract):
    def make_player(self):
        pytest.importorskip("gymnasium")
        return GymPlayers("CartPole-v1", num_envs=3)


@pytest.mark.parametrize("style", [NewStyle, OldStyle])
def test_ends_of_both_kinds(style):
    with GymPlayers(style, num_envs=2) as player:
        player.reset()
        steps = [player.step([2, 0]) for _ in range(6)]
    assert [bool(step.truncated[0]) for step in steps] == [False, False, True, False, False, False]
    assert [bool(step.terminated[1]) for step in steps] == [False] * 5 + [True]
    assert not any(step.terminated[0] or step.truncated[1] for step in steps)
    assert steps[2].episode_score[0] == 6


def test_environments_have_seeds_of_their_own():
    with GymPlayers(NewStyle, 2) as player:
        frames = player.reset()
        assert (frames[0] != frames[1]).any()
        assert (player.reset() != frames).any()  # the constructor's seed counts once


def test_lives_are_taken_from_the_info():
    with GymPlayers(NewStyle) as player:
        player.reset()
        lost = [bool(player.step([0]).life_lost[0]) for _ in range(LENGTH)]
    assert lost == [False, True, False, True, False, False]


def test_a_space_that_starts_elsewhere_is_shifted():
    taken = []

    class Shifted(NewStyle):
        action_space = SimpleNamespace(n=2, start=5)

        def step(self, action):
            taken.append(action)
            return super().step(action)

    with GymPlayers(Shifted) as player:
        player.reset()
        player.step([0])
        player.step([1])
    assert player.num_actions == 2
    assert taken == [5, 6]


def test_environments_that_do_not_fit_are_refused():
    unfit, other = type("Unfit", (NewStyle,), {}), type("Other", (NewStyle,), {})
    unfit.action_space = SimpleNamespace(shape=(3,), n=3)  # MultiBinary
    other.action_space, env = SimpleNamespace(n=4), NewStyle()
    with pytest.raises(ValueError, match="only discrete actions"):
        GymPlayers(unfit)
    kinds = iter([NewStyle, other])
    with pytest.raises(ValueError, match="not alike"):
        GymPlayers(lambda: next(kinds)(), num_envs=2)
    with pytest.raises(ValueError, match="the same environment twice"):
        GymPlayers(lambda: env, num_envs=3)


@pytest.mark.parametrize(
    "dtype, observation, error",
    [
        ("float32", np.ones(1, "f"), r"float32 \[1\].* says float32 \[2\]"),
        ("uint8", np.array([300, -1]), r"int64 \[2\].* says uint8 \[2\]"),
        ("float32", [0.1, 2], ""),
    ],
)
def test_an_observation_that_would_lose_something_is_refused(dtype, observation, error):
    class Observes(NewStyle):
        observation_space = SimpleNamespace(shape=(2,), dtype=np.dtype(dtype))

        def reset(self, seed=None):
            return observation, {}

    with GymPlayers(Observes) as player:
        if error:
            with pytest.raises(ValueError, match=error):
                player.reset()
        else:
            np.testing.assert_array_equal(player.reset(), np.array([observation], dtype))


@pytest.fixture(params=[NewStyle, OldStyle])
def made(request, monkeypatch):
    """Stands in for gymnasium; the list of (environment, keywords) that it has made."""
    envs = []

    def make(name, **keywords):
        assert name == "Walk-v0"
        envs.append((request.param(), keywords))
        return envs[-1][0]

    gym, wrappers = ModuleType("gymnasium"), ModuleType("gymnasium.wrappers")
    gym.__spec__, gym.make = ModuleSpec("gymnasium", None), make
    wrappers.RecordVideo = lambda env, folder: SimpleNamespace(
        inside=env, folder=folder, **api(env)
    )
    monkeypatch.setitem(sys.modules, "gymnasium", gym)
    monkeypatch.setitem(sys.modules, "gymnasium.wrappers", wrappers)
    return envs


def api(env):
    return {name: getattr(env, name) for name in ("reset", "step", "close")}


def test_an_environment_of_2017(made):
    env = GymEnv("Walk-v0")
    assert env.get_action_space().num_actions() == 3
    first = env.current_state()
    assert env.action(np.int64(1)) == (1.0, False)
    assert (env.current_state() != first).any()
    assert env.play_one_episode(lambda state: 1) == [6.0]
    assert [env.action(2) for _ in range(3)] == [(2.0, False), (2.0, False), (2.0, True)]
    assert env.stats["score"] == [6.0]
    with pytest.raises(TypeError):
        env.action(0.5)


def test_a_game_that_is_over_waits_where_there_is_no_restart(made):
    env = GymEnv("Walk-v0", auto_restart=False)
    assert [env.action(2)[1] for _ in range(3)] == [False, False, True]
    env.restart_episode()
    player = AutoRestartPlayer(env)
    assert [player.action(2)[1] for _ in range(6)] == [False, False, True] * 2
    assert env.stats["score"] == [6.0, 6.0]


def test_where_an_environment_of_2017_draws(made):
    GymEnv("Walk-v0", viz=0.01)
    env = GymEnv("Walk-v0", "videos")
    assert [keywords for _, keywords in made] == [
        {"render_mode": "human"},
        {"render_mode": "rgb_array"},
    ]
    assert env.gymenv.inside is made[1][0] and env.gymenv.folder == "videos"


UNREGISTERED = """
from tensorpack.RL.gymenv import GymEnv

for name in "Breakout-v0", "BreakoutNoFrameskip-v4", "Breakout", "ALE/Breakout-v5":
    env = GymEnv(name)
    assert env.get_action_space().num_actions() == 4
    assert env.current_state().shape == (210, 160, 3)
    env.close()
"""


def test_an_atari_game_is_registered_when_it_is_asked_for():
    pytest.importorskip("gymnasium", minversion="1.0")
    if find_spec("ale_py") is None:
        pytest.skip("needs ale-py")
    # A new process, for ale-py registers its games when it is imported.
    run_python("-c", UNREGISTERED, check=True)
