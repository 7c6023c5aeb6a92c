"""A sum tree: draws indices in proportion to weights, and changes weights, many at a time."""

from typing import Any, List

import numpy as np

from tensorpack.utils.checks import as_count

_WIDTH = 16  # children of a node: few levels, and a level is one operation for all draws
_MAX_STALE = 4096  # leaves whose sums are out of date


class SumTree:
    """Weights of the integers below `size`, all zero at first.

    A node is the sum of its children, the leaves are the weights; finding a leaf by a partial sum
    takes one step for each level. Sums are computed from the children each time and never adjusted
    by differences, so they do not drift: the tree is a function of its weights, to the bit. They
    are computed for many changes at once, when they are next needed.
    """

    def __init__(self, size: int) -> None:
        size = as_count("SumTree", "size", size)
        # From the leaves to the root; the row of a node holds its children.
        self._levels = [np.zeros((rows, _WIDTH)) for rows in _level_sizes(size)]
        self._leaves = self._levels[0].reshape(-1)[:size]
        self._stale: List[np.ndarray] = []
        self._num_stale = 0

    @staticmethod
    def required_bytes(size: int) -> int:
        """Returns how many bytes the tree of so many weights takes."""
        return 8 * _WIDTH * sum(_level_sizes(size))

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, indices: Any) -> np.ndarray:
        """Returns the weights at these indices, or of a slice, float64."""
        return self._leaves[indices]

    @property
    def total(self) -> float:
        self._update_sums()
        return float(_sums(self._levels[-1])[0, -1])

    def set(self, indices: np.ndarray, weights: Any) -> None:
        """Changes the weights of indices `[N]`, of which the last of equal ones counts.

        `weights` are finite, not negative, `[N]` or one for all.
        """
        self._leaves[indices] = weights
        self._stale.append(indices)
        self._num_stale += len(indices)
        if self._num_stale > _MAX_STALE:
            self._update_sums()

    def replace(self, weights: np.ndarray) -> None:
        """Changes all weights to others, `[size]`, finite and not negative."""
        self._leaves[:] = weights
        self._stale, self._num_stale = [], 0
        for level, above in zip(self._levels, self._levels[1:]):
            above.reshape(-1)[: len(level)] = _sums(level)[:, -1]

    def find(self, sums: np.ndarray) -> np.ndarray:
        """Returns for each number the index i with w_0 + ... + w_{i-1} <= number < ... + w_i.

        The weight of an index that is found is not zero. `sums` are float64 `[N]`, not negative;
        those from the total on, which must not be 0, find the last index with a weight.
        """
        self._update_sums()
        rows = np.arange(len(sums))
        nodes = np.zeros(len(sums), np.int64)
        size = np.full(len(sums), self.total)
        for level in reversed(self._levels):
            # Rounding may take a number out of its node; it must stay below the sum of the node.
            sums = np.minimum(sums, np.nextafter(size, 0))
            children = level[nodes]
            ends = _sums(children)
            child = np.count_nonzero(ends <= sums[:, np.newaxis], axis=1)
            size = children[rows, child]
            before = np.where(child > 0, ends[rows, child - 1], 0.0)
            sums, nodes = sums - before, nodes * _WIDTH + child
        return nodes

    def draw(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws indices, int64 `[count]`, each with the probability weight / total; stratified.

        The range from 0 to the total is cut into `count` equal parts, and a number is drawn from
        each (Schaul et al., 2016, section 3.3), so the indices come in order. The total must not
        be 0.
        """
        places = np.arange(count) + rng.random_sample(count)
        return self.find(places * (self.total / count))

    def _update_sums(self) -> None:
        """Brings the sums up to date with the weights."""
        if not self._stale:
            return
        rows = np.concatenate(self._stale) // _WIDTH
        self._stale, self._num_stale = [], 0
        for level, above in zip(self._levels, self._levels[1:]):
            above.reshape(-1)[rows] = _sums(level[rows])[:, -1]
            rows = rows // _WIDTH


def _level_sizes(size: int) -> List[int]:
    """Rows of each level, from the leaves to the root."""
    rows = [-(-size // _WIDTH)]
    while rows[-1] > 1:
        rows.append(-(-rows[-1] // _WIDTH))
    return rows


def _sums(children: np.ndarray) -> np.ndarray:
    """Partial sums of each row, from left to right: the last one is the sum of the node."""
    return np.cumsum(children, axis=1)
