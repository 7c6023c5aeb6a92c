"""What the tests of `testing` check with. It raises, rather than asserts, so that -O checks too."""

from typing import Any, Callable, List, Type

import numpy as np

from .player import Player, PlayerStep

__all__ = [
    "as_loaded",
    "check",
    "check_equal",
    "check_frames",
    "check_raises",
    "check_same_tree",
    "check_step",
    "play",
]


def play(player: Player, count: int) -> List[PlayerStep]:
    """So many steps of random play, always of the same actions."""
    rng = np.random.RandomState(0)
    return [
        player.step(rng.randint(player.num_actions, size=player.num_envs)) for _ in range(count)
    ]


def check(condition: Any, otherwise: str) -> None:
    """Raises an `AssertionError` that says what is wrong, unless the condition holds."""
    if not condition:
        raise AssertionError(otherwise)


def check_frames(player: Player, frames: np.ndarray) -> None:
    """Checks that frames are of the shape and dtype that the player tells."""
    shape = (player.num_envs,) + tuple(player.frame_shape)
    _check_array("frames", frames, shape, player.frame_dtype)


def check_step(player: Player, step: PlayerStep) -> None:
    """Checks the shape and dtype of all that a step has."""
    check_frames(player, step.frames)
    types = {"reward": np.float32, "episode_score": np.float64}
    for name, array in zip(step._fields[1:], step[1:]):
        _check_array(name, array, (player.num_envs,), types.get(name, np.bool_))


def _check_array(name: str, array: Any, shape: Any, dtype: Any) -> None:
    check(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}, not an array")
    check(array.shape == shape, f"{name} has the shape {array.shape}, not {shape}")
    check(array.dtype == dtype, f"{name} has the dtype {array.dtype}, not {np.dtype(dtype)}")


def check_equal(steps: List[PlayerStep], others: List[PlayerStep]) -> None:
    """Checks that all arrays of all steps are equal."""
    check(len(steps) == len(others), f"{len(steps)} steps are not {len(others)}")
    for step, other in zip(steps, others):
        for array, same in zip(step, other):
            np.testing.assert_array_equal(array, same)


def as_loaded(tree: Any) -> Any:
    """A state as it comes back from a file: all is new, and arrays are read-only."""
    if type(tree) is dict:
        check(all(type(key) is str for key in tree), f"keys must be str: {list(tree)}")
        return {key: as_loaded(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(as_loaded(value) for value in tree)
    if type(tree) is np.ndarray:
        check(tree.dtype != object, "arrays of objects cannot be kept in a file")
        copy = tree.copy()
        copy.flags.writeable = False
        return copy
    plain = (type(None), bool, int, float, str, bytes)
    is_plain = type(tree) in plain or isinstance(tree, np.generic)
    check(is_plain, f"a {type(tree).__name__} cannot be kept in a file")
    return tree


def check_same_tree(tree: Any, other: Any) -> None:
    """Checks that two states are of the same types and values all through."""
    check(type(tree) is type(other), f"a {type(tree).__name__} is no {type(other).__name__}")
    if isinstance(tree, dict):
        check(list(tree) == list(other), f"the keys {list(tree)} are not {list(other)}")
        tree, other = list(tree.values()), list(other.values())
    if isinstance(tree, (list, tuple)):
        check(len(tree) == len(other), f"{len(tree)} values are not {len(other)}")
        for value, its_twin in zip(tree, other):
            check_same_tree(value, its_twin)
    else:
        np.testing.assert_array_equal(tree, other)


def check_raises(error: Type[Exception], call: Callable[[], Any]) -> None:
    """Checks that a call raises this error; any other goes through."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")
