"""Loads all weights of a network that is to act."""

from typing import Any

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
from tensorpack.tfutils.sessinit import SessionInit, get_model_loader

__all__ = ["AllWeights", "OtherNetwork"]


class OtherNetwork(ValueError):
    """A file has the weights of another network."""


class AllWeights(SessionInit):
    """Loads all variables of a network that is to act; a missing one is an error.

    Args:
      path: as in `get_model_loader`.

    Raises:
      OtherNetwork: in `init`; names the variables that the file does not have.
      Exception: see `get_model_loader`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._loader = get_model_loader(path)

    def _run_init(self, sess: Any) -> None:
        archive = self._path.endswith(".npz")
        reader = load_checkpoint_vars(self._path) if archive else CheckpointReader(self._path).names
        saved = frozenset(reader)
        needed = [each.op.name for each in tf.global_variables()]
        missing = [name for name in needed if name not in saved]
        if missing:
            raise OtherNetwork(
                f"it has no {', '.join(missing)}, which this network needs: give the --algo and "
                "the game that it was trained with"
            )
        self._loader.init(sess)
