"""Loads all weights of a network that is to act."""

from typing import Any, Dict, Iterator, List

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
from tensorpack.tfutils.sessinit import SessionInit, get_model_loader
from tensorpack.tfutils.varmanip import is_training_name

__all__ = ["AllWeights", "OtherNetwork"]

_Shapes = Dict[str, List[int]]  # by the names of variables


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
        needed = {each.op.name: each.shape.as_list() for each in tf.global_variables()}
        differences = list(_differences(needed, _saved_shapes(self._path)))
        if differences:
            raise OtherNetwork(f"{'; '.join(differences)}: {self._advice}")
        self._loader.init(sess)


def _saved_shapes(path: str) -> _Shapes:
    if path.endswith(".npz"):
        return {name: list(np.shape(each)) for name, each in load_checkpoint_vars(path).items()}
    return {name: each["shape"] for name, each in CheckpointReader(path).variables.items()}


def _differences(needed: _Shapes, saved: _Shapes) -> Iterator[str]:
    """Yields in words what tells a network from that of a file."""
    missing = [name for name in needed if name not in saved]
    if missing:
        yield f"it has no {', '.join(missing)}, which this network needs"
    for name, shape in needed.items():
        if saved.get(name, shape) != shape:
            yield f"its {name} is {saved[name]}, that of this network {shape}"
    extra = [name for name in saved if name not in needed and _is_weight(name)]
    if extra:
        yield f"it has {', '.join(extra)}, which this network does not have"


def _is_weight(name: str) -> bool:
    """Whether this is LAYER/VARIABLE: target networks and optimizers have longer names."""
    return name.count("/") == 1 and not is_training_name(name)
