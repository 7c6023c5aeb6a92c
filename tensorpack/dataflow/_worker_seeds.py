"""Seeds of worker processes: one for each of them, or one for each datapoint."""

import random

import numpy as np

from tensorpack.utils.rng import SeedTree, fix_rng_seed

__all__ = ["DatapointSeeds", "MOST_SEED", "seed_process"]

MOST_SEED = 2**62  # of what is sent to workers as a number
_WORD = 2**32


def seed_process(seed: int) -> None:
    """Seeds all that a flow may draw from: `get_rng`, `numpy.random` and `random`.

    A forked process would otherwise draw what its siblings draw.
    """
    fix_rng_seed(seed)
    _seed_globals(SeedTree(seed).child("process"))


class DatapointSeeds:
    """Seeds `numpy.random` and `random` for one datapoint after the other.

    What a function draws from them then depends on the seed and the position of its datapoint, and
    not on what else this process has made.

    Args:
      seed: of the pass.
    """

    def __init__(self, seed: int) -> None:
        self._root = SeedTree(seed).child("datapoint")

    def __call__(self, position: int) -> None:
        """Seeds them for the datapoint of a position."""
        _seed_globals(self._root.child(position // _WORD, position % _WORD))


def _seed_globals(node: SeedTree) -> None:
    words = node.sequence().generate_state(5)
    np.random.seed(words[:4])
    random.seed(int(words[4]))
