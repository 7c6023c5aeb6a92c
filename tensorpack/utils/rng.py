"""Seeds as a tree: one root, and a distinct, reproducible stream for each object and process."""

import hashlib
import multiprocessing
import operator
import os
import threading
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from .checks import as_count

_WORD = 2**32


@dataclass(frozen=True)
class SeedTree:
    """A node in a tree of seeds. Equal paths from equal roots give equal streams, others do not.

    A node is a value: it can be pickled, compared and sent to a worker process, and asking it for a
    stream does not change it::

        root = SeedTree(42)
        memory = root.child("replay").random_state()
        players = [root.child("player", i).random_state() for i in range(4)]

    Args:
      seed: a non-negative integer of any size; None takes one from the operating system.
    """

    seed: Any = None
    path: Tuple[int, ...] = ()  # given by `child`

    def __post_init__(self) -> None:
        seed = int.from_bytes(os.urandom(16), "little") if self.seed is None else self.seed
        object.__setattr__(self, "seed", operator.index(seed))
        if self.seed < 0:
            raise ValueError(f"A seed is a non-negative integer, got {seed!r}.")

    def child(self, *names: Union[int, str]) -> "SeedTree":
        """Returns the node reached from this one by a path of strings and non-negative integers."""
        if not names:
            raise ValueError("child() needs at least one name: without one it would be its parent.")
        return SeedTree(self.seed, self.path + tuple(w for name in names for w in _words(name)))

    def sequence(self) -> np.random.SeedSequence:
        """Returns the numpy seed sequence of this node."""
        # Both lengths come first: otherwise zeros at the end would make two nodes alike.
        # Not by `spawn_key`: numpy changed its meaning in 1.19, and all versions are to agree.
        count = max(1, (self.seed.bit_length() + 31) // 32)
        words = [self.seed >> 32 * i & (_WORD - 1) for i in range(count)]
        return np.random.SeedSequence([len(self.path), count, *words, *self.path])

    def random_state(self) -> np.random.RandomState:
        """Returns a new generator that starts this node's stream."""
        # By words, the old way of seeding: it too is the same in all versions of numpy.
        return np.random.RandomState(self.sequence().generate_state(8))

    def integer(self) -> int:
        """Returns this node's seed as an integer in [0, 2**31), for libraries that want one."""
        return int(self.sequence().generate_state(1)[0]) & 0x7FFFFFFF


def _words(name: Union[int, str]) -> List[int]:
    """Encodes a name, so that no path is the beginning of another one's last name."""
    if isinstance(name, str):
        digest = hashlib.sha256(name.encode("utf-8")).digest()
        return [1] + [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    number = operator.index(name)
    if not 0 <= number < _WORD:
        raise ValueError(f"An integer in a path of seeds lies in [0, 2**32), got {number}.")
    return [0, number]


class _Branch:
    """Hands out the children of a node, in the order in which threads ask for them."""

    def __init__(self, node: SeedTree, count: int = 0) -> None:
        self._node = node
        self._lock = threading.Lock()
        self.count = count

    def next(self) -> SeedTree:
        with self._lock:
            self.count += 1
            return self._node.child(self.count - 1)


class _Streams:
    """Hands out the streams of this process, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.seeded = False
        self.for_datapoints = False
        self.plant(SeedTree())

    def plant(self, root: SeedTree, count: int = 0) -> None:
        """Starts from another root, as if `count` nodes had been handed out."""
        self.root = root
        self._branches = {os.getpid(): _Branch(root, count)}

    def branch(self) -> _Branch:
        """Returns the one of this process; no two give the same node."""
        pid = os.getpid()
        if pid not in self._branches:  # forked: the branch and its lock belong to the parent
            # Numbers of multiprocessing, in the order of starting, are the same in the next run.
            identity = getattr(multiprocessing.current_process(), "_identity", ()) or ("pid", pid)
            new = _Branch(self.root.child("process", *identity))
            self._branches.setdefault(pid, new)  # atomic
        return self._branches[pid]


_streams = _Streams()


def fix_rng_seed(seed: int) -> None:
    """Makes all streams of `get_rng` from here on reproducible.

    Call it once, first thing in the program. Each later `get_rng` still returns a stream of its
    own: the first call the first one, and so on. A process forked by `multiprocessing` has its own
    branch, by the order in which processes were started. A process started by "spawn" or
    "forkserver" inherits nothing: send it a `SeedTree`, or a seed to call this with.
    """
    _streams.plant(SeedTree(as_count("fix_rng_seed", "seed", seed, 0)))
    _streams.seeded = True


def is_seeded() -> bool:
    """Whether `fix_rng_seed` was called, so that the next run of the program draws the same."""
    return _streams.seeded


def get_rng(obj: Any = None) -> np.random.RandomState:
    """Returns a new random generator with a stream of its own, in this process and all others.

    `obj` is not looked at: two objects get two streams because they ask twice.
    """
    return _streams.branch().next().random_state()


def seed_datapoints() -> None:
    """Lets `rng_of_datapoints` return `numpy.random`; this process seeds it for each datapoint."""
    _streams.for_datapoints = True


def rng_of_datapoints() -> Optional[np.random.RandomState]:
    """Returns the generator of `numpy.random` if it is seeded for each datapoint, or else None.

    What functions of datapoints draw from it does not depend on what else the process has made.
    """
    return np.random.mtrand._rand if _streams.for_datapoints else None  # type: ignore[attr-defined]


def streams_state() -> Dict[str, Any]:
    """Returns where `get_rng` is: the root seed, and how many streams it has handed out."""
    return {"seed": _streams.root.seed, "count": _streams.branch().count}


def set_streams_state(state: Dict[str, Any]) -> None:
    """Resumes `get_rng` where `streams_state` was called."""
    _streams.plant(SeedTree(state["seed"]), state["count"])


# The parts of the state of a generator, and what makes them plain and its own.
_STATE = {"kind": str, "keys": np.array, "position": int, "has_gauss": int, "gauss": float}


def rng_state(rng: np.random.RandomState) -> Dict[str, Any]:
    """Returns the state of a generator, of numbers, text and an array of its own."""
    parts: Any = zip(_STATE.items(), rng.get_state())
    return {name: kind(value) for (name, kind), value in parts}


def set_rng_state(rng: np.random.RandomState, state: Dict[str, Any]) -> None:
    """Resumes a generator where `rng_state` was called; a ValueError if its kind is another."""
    rng.set_state(tuple(state[name] for name in _STATE))
