"""Atari games as players: both backends keep the contract and give the same."""

import collections

import numpy as np
import pytest

from tensorpack.RL.atari import AtariPlayers
from tensorpack.RL.wrappers import ProxyPlayer
from tests.contracts.player import PlayerContract
from tests.RL.players import any_rom, breakout_rom, needs_vector, play
from tests.tiers import first_fast

# Breakout's actions.
NOOP, FIRE, RIGHT, LEFT = range(4)


# To load a game takes ale-py 0.1 s, and most tests of the contract load several. The fast tests
# have one game by itself; that the vector gives the same is tested below.
class TestSingle(PlayerContract):
    can_save = True
    num_envs = 1
    options = {}

    def make_player(self):
        options = {"backend": "single", "max_episode_actions": 40, **self.options}
        return AtariPlayers(breakout_rom(), self.num_envs, **options)


@pytest.mark.slow
class TestSticky(TestSingle):
    num_envs = 2
    options = {"sticky": 0.25, "fire_on_reset": True}


@pytest.mark.slow
class TestVector(TestSingle):
    num_envs = 2
    can_save = False
    options = {"backend": "vector"}

    @pytest.fixture(autouse=True)
    def vector(self):
        needs_vector()


def single(num_envs=1, **options):
    return AtariPlayers(breakout_rom(), num_envs, backend="single", **options)


OPTIONS = [
    {"max_noops": 0},
    {"fire_on_reset": True, "max_episode_actions": 60},
    {"frame_skip": 3, "max_noops": 1},
]


@pytest.mark.parametrize(
    "options", [{}, *(pytest.param(case, marks=pytest.mark.slow) for case in OPTIONS)], ids=str
)
def test_both_backends_give_the_same(options):
    needs_vector()
    with single(2, seed=3, **options) as one:
        with AtariPlayers(breakout_rom(), 2, backend="vector", seed=3, **options) as other:
            np.testing.assert_array_equal(one.reset(), other.reset())
            # On to the ends of games, which come by step 300. All steps are kept before they are
            # compared, so the vector has not written again to what it returned.
            for step, same in zip(play(one, 300), play(other, 300)):
                for name, array, its_twin in zip(step._fields, step, same):
                    np.testing.assert_array_equal(array, its_twin, err_msg=name)
            assert one.action_names == other.action_names


@pytest.mark.slow
def test_many_do_not_play_in_step():
    with AtariPlayers(breakout_rom(), 6) as player:
        player.reset()
        rng = np.random.RandomState(1)
        for _ in range(60):  # the same actions for all: only the starts differ
            step = player.step(np.full(6, rng.randint(player.num_actions)))
        # Breakout stands still before its start button is pressed, so some of the starts are alike.
        assert len({frame.tobytes() for frame in step.frames}) >= 3
        step = play(player, 60)[-1]  # with actions of their own
    assert len({frame.tobytes() for frame in step.frames}) == 6


@pytest.mark.parametrize("backend", first_fast(["single", "vector"]))
def test_sticky_actions_repeat_the_one_before_in_each_frame(backend):
    if backend == "vector":
        needs_vector()
    # The ball is served in the first of two frames, in the second one, or not at all.
    options = {"max_noops": 0, "frame_skip": 2, "sticky": 0.5, "seed": 1, "backend": backend}
    seen = collections.Counter()
    with AtariPlayers(breakout_rom(), 4, **options) as player:
        for _ in range(15):
            player.reset()
            seen.update(frame.tobytes() for frame in player.step([FIRE] * 4).frames)
    shares = sorted(count / 60 for count in seen.values())
    np.testing.assert_allclose(shares, [0.25, 0.25, 0.5], atol=0.1)


@pytest.mark.parametrize("backend", first_fast(["single", "vector"]))
def test_fire_is_pressed_at_the_start_and_after_a_lost_life(backend):
    if backend == "vector":
        needs_vector()
    options = {"backend": backend, "max_noops": 0, "fire_on_reset": True}
    with AtariPlayers(breakout_rom(), 2, **options) as player:
        assert player.fire_on_reset
        player.reset()
        steps = [player.step([LEFT, NOOP]) for _ in range(400)]
    assert steps[0].taken.tolist() == [FIRE, FIRE]
    for before, step in zip(steps, steps[1:]):
        waits = before.reset | before.life_lost
        assert step.taken.tolist() == np.where(waits, FIRE, [LEFT, NOOP]).tolist()
    assert sum(step.life_lost.sum() for step in steps) >= 8
    assert sum(step.reset.sum() for step in steps) >= 2


def test_a_game_without_fire_is_played_as_it_is():
    with AtariPlayers(any_rom("freeway"), fire_on_reset=True) as player:
        assert not player.fire_on_reset
        player.reset()
        assert player.step([1]).taken is None


@pytest.mark.parametrize("frame_skip", [1, 4])
def test_a_frame_is_the_maximum_of_the_last_two_grey_screens(frame_skip):
    cv2 = pytest.importorskip("cv2")
    ale_py = pytest.importorskip("ale_py")
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(breakout_rom())
    ale.reset_game()
    with single(max_noops=0, frame_skip=frame_skip) as player:
        player.reset()
        for action, code in [(FIRE, 1), (RIGHT, 3), (LEFT, 4), (NOOP, 0)] * 3:
            screens = [ale.getScreenGrayscale().reshape(210, 160)]
            for _ in range(frame_skip):
                ale.act(code)
                screens.append(ale.getScreenGrayscale().reshape(210, 160))
            pooled = np.maximum(*screens[-2:])
            expected = cv2.resize(pooled, (84, 84), interpolation=cv2.INTER_AREA)
            np.testing.assert_array_equal(player.step([action]).frames[0], expected)


def test_five_lives_are_lost_one_by_one():
    with single(max_noops=0) as player:
        player.reset()
        steps = []
        while not steps or not steps[-1].terminated[0]:
            assert len(steps) < 500
            # To serve is enough to lose: the paddle stays away from the ball.
            steps.append(player.step([FIRE]))
        assert sum(bool(step.life_lost[0]) for step in steps) == 4
        assert not steps[-1].life_lost[0]
        assert steps[-1].episode_score[0] == sum(step.reward[0] for step in steps)
        again = player.step([FIRE])
        assert again.reset[0] and again.reward[0] == 0
        np.testing.assert_array_equal(again.frames, player.reset())


@pytest.mark.parametrize("backend", ["single", "vector"])
def test_a_limit_truncates_and_the_next_game_starts_over(backend):
    if backend == "vector":
        needs_vector()
    options = {"max_noops": 0, "max_episode_actions": 5, "backend": backend}
    with AtariPlayers(breakout_rom(), 2, **options) as player:
        first = player.reset()
        steps = [player.step([FIRE, NOOP]) for _ in range(12)]
    assert [bool(step.truncated.all()) for step in steps] == [n in (4, 10) for n in range(12)]
    assert [bool(step.reset.all()) for step in steps] == [n in (5, 11) for n in range(12)]
    assert (steps[4].episode_score == 0).all()
    np.testing.assert_array_equal(steps[5].frames, first)
    for step, same in zip(steps, steps[6:]):
        np.testing.assert_array_equal(step.frames, same.frames)


@pytest.mark.slow
def test_only_the_marked_game_is_truncated_in_the_vector():
    needs_vector()
    options = {"backend": "vector", "max_noops": 0, "seed": 1}
    with AtariPlayers(breakout_rom(), 2, **options) as player:
        with AtariPlayers(breakout_rom(), 2, **options) as undisturbed:
            first = player.reset()
            undisturbed.reset()
            for _ in range(9):
                player.step([FIRE, RIGHT])
                undisturbed.step([FIRE, RIGHT])
            player.truncate([False, True])
            step, same = player.step([FIRE, RIGHT]), undisturbed.step([FIRE, RIGHT])
    np.testing.assert_array_equal(step.frames[0], same.frames[0])
    np.testing.assert_array_equal(step.frames[1], first[1])
    assert step.reset.tolist() == [False, True]


@pytest.mark.slow
def test_a_game_truncated_at_its_last_step_can_be_truncated_again():
    # The vector interface plays one more step of a truncated game; here the game ends in it.
    needs_vector()
    with AtariPlayers(breakout_rom(), 2, backend="vector", max_noops=0) as player:
        player.reset()
        length = 1
        while not player.step([FIRE, FIRE]).terminated[0]:
            length += 1
        player.reset()
        first = [player.step([FIRE, FIRE]).frames[0] for _ in range(8)]
        for _ in range(length - 8 - 1):
            player.step([FIRE, FIRE])
        for _ in range(2):
            player.truncate([True, False])
            step = player.step([FIRE, FIRE])
            assert step.reset[0] and not step.terminated[0]
        again = [player.step([FIRE, FIRE]).frames[0] for _ in range(8)]
    np.testing.assert_array_equal(again, first)


def test_the_screen_is_in_colour():
    with single(2) as player:
        with pytest.raises(RuntimeError, match="reset"):
            player.screen()
        player.reset()
        screen = player.screen(1)
    assert (screen.shape, screen.dtype) == ((210, 160, 3), np.uint8)
    assert (screen[..., 0] != screen[..., 2]).any()


def test_the_vector_says_what_it_plays_and_what_it_cannot_do():
    needs_vector()
    with AtariPlayers(breakout_rom(), 2, frame_skip=3) as player:
        assert player.backend == "vector"
        assert player.identity == {"game": "breakout", "frame_skip": 3}
        assert ProxyPlayer(player).identity == player.identity
        player.reset()
        for call in (player.screen, player.state_dict):
            with pytest.raises(RuntimeError, match="single"):
                call()


def test_for_one_game_or_without_a_vector_interface_auto_is_single(monkeypatch):
    ale_py = pytest.importorskip("ale_py")
    with AtariPlayers(breakout_rom()) as player:
        assert player.backend == "single"
        assert player.action_names == ["NOOP", "FIRE", "RIGHT", "LEFT"]
        assert player.identity == {"game": "breakout", "frame_skip": 4}
    monkeypatch.delattr(ale_py, "ALEVectorInterface", raising=False)
    with AtariPlayers(breakout_rom(), 2) as player:
        assert player.backend == "single"
    with pytest.raises(ValueError, match="no vector interface"):
        AtariPlayers(breakout_rom(), 2, backend="vector")


def test_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="backend"):
        AtariPlayers(breakout_rom(), backend="double")


def test_nothing_is_printed(capfd):
    with single() as player:
        player.reset()
        play(player, 3)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
