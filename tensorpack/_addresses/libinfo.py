"""`tensorpack.libinfo` of older versions; see `tensorpack.utils.gpu`."""

from tensorpack.utils import get_num_gpu

__all__ = ["is_gpu_available"]


def is_gpu_available() -> bool:
    """Returns whether this process may use a GPU; TensorFlow is not asked, nor initialised."""
    return get_num_gpu() > 0
