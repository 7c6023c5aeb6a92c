"""Random numbers in the graph that a resumed run draws again."""

from typing import Any, List

from tensorpack.compat import tfv1 as tf

__all__ = ["Draws"]

_STREAM = 1000  # more than one pass of a network draws


class Draws:
    """Tensors of random numbers that are a function of two numbers, and of the order of the calls.

    TensorFlow does not save where its other generators are.

    Args:
      number: integer scalar, a tensor; such as the number of the training step.
      stream: a second one, known; different for each use of the same `number`.
    """

    def __init__(self, number: Any, stream: int) -> None:
        self._number = tf.cast(number, tf.int64)
        self._next = stream * _STREAM

    def uniform(self, shape: List[Any]) -> tf.Tensor:
        """Returns float32 in [0, 1)."""
        return tf.random.stateless_uniform(shape, self._seed())

    def normal(self, shape: List[Any]) -> tf.Tensor:
        """Returns float32 of a standard normal distribution."""
        return tf.random.stateless_normal(shape, self._seed())

    def _seed(self) -> tf.Tensor:
        self._next += 1
        return tf.stack([self._number, tf.constant(self._next, tf.int64)])
