"""Weights from a file: whether there are any, and whether they are all that a network needs."""

from typing import Any, List

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
from tensorpack.tfutils.sessinit import SessionInit, get_model_loader

__all__ = ["AllWeights", "OtherNetwork", "find_model"]


class OtherNetwork(ValueError):
    """A file has the weights of another network."""


class AllWeights(SessionInit):
    """Loads a network that is to act: every variable of it, or it is an error.

    Args:
      path: as in `get_model_loader`.

    Raises:
      OtherNetwork: in `init`; names what the file does not have.
      Exception: see `get_model_loader`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._loader = get_model_loader(path)

    def _run_init(self, sess: Any) -> None:
        saved = frozenset(_names(self._path))
        needed = [each.op.name for each in tf.global_variables()]
        missing = [name for name in needed if name not in saved]
        if missing:
            raise OtherNetwork(
                f"it has no {', '.join(missing)}, which this network needs: give the --algo and "
                "the game that it was trained with"
            )
        self._loader.init(sess)


def find_model(path: str) -> str:
    """Returns the checkpoint or archive that a path means.

    Args:
      path: of a checkpoint, a log directory or an `.npz` archive.

    Raises:
      FileNotFoundError: there is none.
      ValueError: it is a file of another kind.
      CheckpointCorrupt: it cannot be read; of a checkpoint only its index is looked at.
    """
    if path.endswith(".npy"):
        get_model_loader(path)  # which says what to do with it
    if path.endswith(".npz"):
        load_checkpoint_vars(path)
        return path
    return CheckpointReader(path).path


def _names(path: str) -> List[str]:
    if path.endswith(".npz"):
        return list(load_checkpoint_vars(path))
    return CheckpointReader(path).names
