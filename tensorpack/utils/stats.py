"""Running statistics of a sequence of values."""

from typing import Any, List

import numpy as np

from .argtools import accepts_old_keywords


class StatCounter:
    """Collects values; computes their sum, mean and extremes, each an `np.float64`."""

    def __init__(self) -> None:
        self.reset()

    def feed(self, v: float) -> None:
        """Adds a value."""
        self._values.append(v)

    def reset(self) -> None:
        """Removes all values."""
        self._values: List[float] = []

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self._values)

    @property
    def sum(self) -> float:
        """Sum of the values. Raises RuntimeError without a value, as do the next three."""
        return np.float64(np.sum(self.samples(), dtype=np.float64))

    @property
    def average(self) -> float:
        """Mean of the values."""
        return np.float64(np.mean(self.samples(), dtype=np.float64))

    @property
    def max(self) -> float:
        """Largest value."""
        return np.float64(np.max(self.samples()))

    @property
    def min(self) -> float:
        """Smallest value."""
        return np.float64(np.min(self.samples()))

    def samples(self) -> List[float]:
        """Returns a list of the values."""
        if not self._values:
            raise RuntimeError("There is no value yet: check `count` first.")
        return list(self._values)


class RatioCounter:
    """The ratio of two running sums, such as errors to examples."""

    def __init__(self) -> None:
        self.reset()

    @accepts_old_keywords(cnt="count", tot="total")
    def feed(self, count: float, total: float = 1) -> None:
        """Adds to the numerator and to the denominator."""
        self._count += np.asarray(count).item()  # of numpy 2 a sum has the dtype of a scalar
        self._total += np.asarray(total).item()

    def reset(self) -> None:
        """Sets both sums to zero."""
        self._count: float = 0
        self._total: float = 0

    @property
    def count(self) -> float:
        """The numerator."""
        return self._count

    @property
    def total(self) -> float:
        """The denominator."""
        return self._total

    @property
    def ratio(self) -> float:
        """The numerator divided by the denominator; 0 if the denominator is 0."""
        return self._count / self._total if self._total else 0.0


class Accuracy(RatioCounter):
    """The ratio of correct predictions to all."""

    @property
    def accuracy(self) -> float:
        """The ratio."""
        return self.ratio


class BinaryStatistics:
    """Precision and recall of binary predictions.

    Attributes:
      nr_pos, nr_neg: the numbers of positive and negative labels.
      nr_pred_pos, nr_pred_neg: those of positive and negative predictions.
      corr_pos, corr_neg: how many of these predictions are correct.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Removes all predictions."""
        self.nr_pos = self.nr_pred_pos = self.corr_pos = np.int64(0)
        self.nr_neg = self.nr_pred_neg = self.corr_neg = np.int64(0)

    def feed(self, pred: Any, label: Any) -> None:
        """Adds predictions and labels: arrays of 0 and 1 of the same shape."""
        pred, label = np.asarray(pred), np.asarray(label)
        if pred.shape != label.shape:
            raise ValueError(f"pred has shape {pred.shape} and label {label.shape}: need the same.")
        for name, array in (("pred", pred), ("label", label)):
            if not np.all((array == 0) | (array == 1)):
                raise ValueError(f"{name} has values other than 0 and 1: apply a threshold first.")
        pred, label = pred == 1, label == 1
        self.nr_pos += np.sum(label)
        self.nr_neg += np.sum(~label)
        self.nr_pred_pos += np.sum(pred)
        self.nr_pred_neg += np.sum(~pred)
        self.corr_pos += np.sum(pred & label)
        self.corr_neg += np.sum(~pred & ~label)

    @property
    def precision(self) -> float:
        """The share of true positives among predicted positives; 0 without any."""
        return np.float64(self.corr_pos / (self.nr_pred_pos or 1))

    @property
    def recall(self) -> float:
        """The share of true positives among positive labels; 0 without any."""
        return np.float64(self.corr_pos / (self.nr_pos or 1))

    @property
    def false_positive(self) -> float:
        """1 - precision; 0 without predicted positives."""
        return np.float64(1 - self.precision if self.nr_pred_pos else 0)

    @property
    def false_negative(self) -> float:
        """1 - recall; 0 without positive labels."""
        return np.float64(1 - self.recall if self.nr_pos else 0)


class OnlineMoments:
    """Mean and variance of values, or of arrays element by element, without storing them.

    Welford's recurrence, which is accurate also where the mean is much larger than the deviation.
    """

    def __init__(self) -> None:
        self._n = 0
        self._mean: Any = np.float64(0)
        self._squares: Any = np.float64(0)

    def feed(self, x: Any) -> None:
        """Adds a value."""
        self._n += 1
        delta = np.subtract(x, self._mean, dtype=np.float64)  # old versions of numpy keep float16
        self._mean = self._mean + delta / self._n
        self._squares = self._squares + delta * (x - self._mean)

    @property
    def mean(self) -> Any:
        """The mean. Raises RuntimeError without a value, as do the others."""
        self._check()
        return self._mean

    @property
    def variance(self) -> Any:
        """The sample variance (divided by n - 1); NaN after a single value."""
        self._check()
        return self._squares / (self._n - 1) if self._n > 1 else self._squares * np.nan

    @property
    def std(self) -> Any:
        """The square root of the sample variance."""
        return np.sqrt(self.variance)

    def _check(self) -> None:
        if self._n == 0:
            raise RuntimeError("There is no value yet: feed() one first.")
