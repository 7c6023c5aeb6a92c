"""Frames as the memory stores them, one after the other, to images with the frames as channels."""

import sys
from typing import List, Tuple

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.gpu import get_num_gpu

__all__ = ["as_images"]

_WORD = 4  # bytes that are moved as one number


def as_images(frames: tf.Tensor, history: int) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns the first `history` frames and the last ones, each as float32 `[B, H, W, history]`.

    The values are not scaled: they stay in [0, 255].

    Args:
      frames: uint8 `[B, N, H, W]`, N known.
      history: how many frames make one image, at most N.

    Raises:
      ValueError: the frames have another shape.
    """
    count = frames.shape.as_list()[1] if frames.shape.ndims == 4 else None
    if count is None or not 1 <= history <= count:
        raise ValueError(
            f"as_images needs frames [B, N, H, W] with a known N >= history={history}, got shape "
            f"{frames.shape}."
        )
    with tf.name_scope("as_images"):
        if history == _WORD and _words_are_faster():
            planes = tf.unstack(frames, axis=1)
            return _as_words(planes[:history]), _as_words(planes[-history:])
        images = tf.cast(tf.transpose(frames, [0, 2, 3, 1]), tf.float32)
        return images[..., :history], images[..., -history:]


def _words_are_faster() -> bool:
    # A GPU transposes fast, a CPU does not. TensorFlow 1 casts too slowly for it to pay.
    return sys.byteorder == "little" and tf_version()[0] >= 2 and get_num_gpu() == 0


def _as_words(planes: List[tf.Tensor]) -> tf.Tensor:
    """Packs four frames into one, each pixel of which is a number of four bytes, lowest first."""
    first, second, third, last = planes
    # The sign is in the highest byte. Multiplications, because shifts are slower.
    bytes_of_word = [tf.cast(each, tf.int32) for each in [first, second, third]]
    bytes_of_word.append(tf.cast(tf.bitcast(last, tf.int8), tf.int32))
    shifted = [each * (1 << 8 * i) if i else each for i, each in enumerate(bytes_of_word)]
    return tf.cast(tf.bitcast(tf.add_n(shifted), tf.uint8), tf.float32)
