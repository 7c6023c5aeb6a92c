"""Loads all weights of a network that is to act."""

from typing import Any, Dict, Iterator, List

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
from tensorpack.tfutils.sessinit import SessionInit, get_model_loader
from tensorpack.tfutils.varmanip import is_training_name, known_of_graph
from tensorpack.utils.checkpoints.variables import Match, Variable, known_from, known_of, match

__all__ = ["AllWeights", "OtherNetwork"]


class OtherNetwork(ValueError):
    """A file has the weights of another network."""


class AllWeights(SessionInit):
    """Loads all variables of a network that is to act, from a file of its weights alone.

    Args:
      path: as in `get_model_loader`.
      advice: what to do about the file of another network; ends the message of the error.

    Raises:
      OtherNetwork: in `init`; names the variables that are missing, of another shape, or too many.
      Exception: see `get_model_loader`.
    """

    def __init__(self, path: str, advice: str) -> None:
        self._path = path
        self._advice = advice
        self._loader = get_model_loader(path)

    def _run_init(self, sess: Any) -> None:
        rows = match(known_of_graph(tf.global_variables()), _saved(self._path))
        differences = list(_differences(rows))
        if differences:
            raise OtherNetwork(f"{'; '.join(differences)}: {self._advice}")
        self._loader.init(sess)


def _saved(path: str) -> Dict[str, Variable]:
    if path.endswith(".npz"):
        return known_of(load_checkpoint_vars(path))
    return known_from(CheckpointReader(path).variables)


def _differences(rows: List[Match]) -> Iterator[str]:
    """Yields in words what tells a network from that of a file."""
    missing = [row.name for row in rows if row.verdict == "missing"]
    if missing:
        yield f"it has no {', '.join(missing)}, which this network needs"
    for name, ours, theirs, verdict in rows:
        if verdict == "shape":
            yield f"its {name} is {list(theirs.shape)}, that of this network {list(ours.shape)}"
    extra = [row.name for row in rows if row.verdict == "extra" and _is_weight(row.name)]
    if extra:
        yield f"it has {', '.join(extra)}, which this network does not have"


def _is_weight(name: str) -> bool:
    """Whether this is LAYER/VARIABLE: target networks and optimizers have longer names."""
    return name.count("/") == 1 and not is_training_name(name)
