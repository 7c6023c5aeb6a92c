"""Restores the variables of a run that is resumed: all of them, or it is an error."""

from typing import Dict, List

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .checkpoint import CheckpointReader
from .manifest import check_manifest
from .sessinit import SessionInit
from .varmanip import SessionUpdate

__all__ = ["ExactRestore", "VariableMismatch"]


class VariableMismatch(ValueError):
    """The variables of a graph are not those of a checkpoint."""


class ExactRestore(SessionInit):
    """Loads every global variable of the graph from a checkpoint that has exactly these.

    Args:
      prefix: of the checkpoint.

    Raises:
      VariableMismatch: in `init`; lists what is missing, unexpected, or of another shape or type.
      CheckpointCorrupt: in `init`, it cannot be read.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def _run_init(self, sess: tf.Session) -> None:
        logger.info(f"Restoring checkpoint from {self._prefix} ...")
        check_manifest(self._prefix)
        reader = CheckpointReader(self._prefix)
        variables = {each.op.name: each for each in tf.global_variables()}
        values = {name: reader.read(name) for name in reader.names}
        problems = _compare(variables, values)
        if problems:
            raise VariableMismatch(
                f"The run in {self._prefix} cannot be resumed with this graph:\n  "
                + "\n  ".join(problems)
                + "\nUndo the change of the model; or begin a new training with the weights that "
                f"fit: TrainConfig(session_init=InitFrom({self._prefix!r}))."
            )
        SessionUpdate(sess, list(variables.values())).update(values)


def _compare(variables: Dict[str, tf.Variable], values: Dict[str, np.ndarray]) -> List[str]:
    problems = [f"{name}: not in the checkpoint" for name in variables if name not in values]
    problems += [f"{name}: not in the graph" for name in values if name not in variables]
    for name, variable in variables.items():
        if name not in values:
            continue
        array = values[name]
        theirs = (tf.as_dtype(array.dtype).name, list(array.shape))
        ours = (variable.dtype.base_dtype.name, variable.shape.as_list())
        if theirs != ours:
            problems.append(
                f"{name}: {theirs[0]} {theirs[1]} in the checkpoint, {ours[0]} {ours[1]} in the "
                "graph"
            )
    return sorted(problems)
