"""Divides intervals of numbers into bins of one width, as scripts of 2017 do for classification."""

import math
from typing import List, Sequence, Tuple

import numpy as np

from ..argtools import log_once


class UniformDiscretizer1D:
    """Divides `[minv, maxv)` into bins of width `spacing`; the last may reach beyond `maxv`."""

    def __init__(self, minv: float, maxv: float, spacing: float) -> None:
        self.minv, self.maxv, self.spacing = float(minv), float(maxv), float(spacing)
        # 2.1 / 0.3 is a little more than 7, which does not add a bin.
        self.nr_bin = math.ceil(round((self.maxv - self.minv) / self.spacing, 9))

    def get_nr_bin(self) -> int:
        """Returns the number of bins."""
        return self.nr_bin

    def get_bin(self, v: float) -> int:
        """Returns the bin of a value; outside, the first or the last one, with one warning."""
        if not self.minv <= v <= self.maxv:
            log_once(f"A value is not in [{self.minv}, {self.maxv}].", "warning")
        return int(np.clip((v - self.minv) / self.spacing, 0, self.nr_bin - 1))

    def get_bin_center(self, bin_id: int) -> float:
        """Returns the value in the middle of a bin."""
        return self.minv + self.spacing * (bin_id + 0.5)

    def get_distribution(
        self, v: float, smooth_factor: float = 0.05, smooth_radius: int = 2
    ) -> np.ndarray:
        """Returns a distribution over the bins, float32 `[nr_bin]`, with its peak at that of `v`.

        A bin has `smooth_factor` of the weight of its neighbour nearer to the peak, within
        `smooth_radius` bins. Beyond the interval or at its ends, the first or last bin has all.
        """
        distance = np.abs(np.arange(self.nr_bin) - self.get_bin(v))
        radius = smooth_radius if self.minv < v < self.maxv else 0
        weights = np.where(distance <= radius, float(smooth_factor) ** distance, 0.0)
        return (weights / weights.sum()).astype(np.float32)


class UniformDiscretizerND:
    """Divides a box into bins, by `(minv, maxv, spacing)` of each dimension.

    The bins of the box are numbered in C order, so the last dimension varies fastest.
    """

    def __init__(self, *min_max_spacing: Tuple[float, float, float]) -> None:
        self.discretizers = [UniformDiscretizer1D(*arguments) for arguments in min_max_spacing]
        self.nr_bins = [bins.nr_bin for bins in self.discretizers]

    def get_nr_bin(self) -> int:
        """Returns the number of bins of the box."""
        return int(np.prod(self.nr_bins))

    def get_nr_bin_nd(self) -> List[int]:
        """Returns the number of bins in each dimension."""
        return self.nr_bins

    def get_bin(self, v: Sequence[float]) -> int:
        """Returns the number of the bin of a point, a value for each dimension."""
        ids = [bins.get_bin(value) for bins, value in zip(self.discretizers, v)]
        return self.get_bin_from_nd_bin_ids(ids)

    def get_nd_bin_ids(self, bin_id: int) -> List[int]:
        """Returns the number of the bin in each dimension, of a bin of the box."""
        return [int(number) for number in np.unravel_index(bin_id, self.nr_bins)]

    def get_bin_from_nd_bin_ids(self, bin_ids: Sequence[int]) -> int:
        """Returns the number in the box of the bin that has these numbers in each dimension."""
        return int(np.ravel_multi_index(tuple(bin_ids), self.nr_bins))

    def get_bin_center(self, bin_id: int) -> List[float]:
        """Returns the point in the middle of a bin of the box."""
        pairs = zip(self.discretizers, self.get_nd_bin_ids(bin_id))
        return [bins.get_bin_center(number) for bins, number in pairs]
