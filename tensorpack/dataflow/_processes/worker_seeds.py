"""Seeds of worker processes: one for each of them, or one for each datapoint."""

import hashlib
import random

import numpy as np

from tensorpack.utils.rng import SeedTree, fix_rng_seed

__all__ = ["DatapointSeeds", "MOST_SEED", "seed_process"]

MOST_SEED = 2**62  # of what is sent to workers as a number


def seed_process(seed: int) -> None:
    """Seeds all that a flow may draw from: `get_rng`, `numpy.random` and `random`.

    A forked process would otherwise draw what its siblings draw.
    """
    fix_rng_seed(seed)
    words = SeedTree(seed).child("process").sequence().generate_state(5)
    np.random.seed(words[:4])
    random.seed(int(words[4]))


class DatapointSeeds:
    """Seeds `numpy.random` and `random` for one datapoint after the other.

    What a function draws from them then depends on the seed and the position of its datapoint, and
    not on what else this process has made.

    Args:
      seed: of the pass.
    """

    def __init__(self, seed: int) -> None:
        # not by SeedTree: this is done for every datapoint
        self._root = hashlib.blake2b(b"datapoint", key=str(seed).encode("ascii"), digest_size=24)

    def __call__(self, position: int) -> None:
        """Seeds them for the datapoint of a position."""
        node = self._root.copy()
        node.update(position.to_bytes(8, "little"))
        digest = node.digest()
        np.random.seed(np.frombuffer(digest, "<u4", 4))
        random.seed(int.from_bytes(digest[16:], "little"))
