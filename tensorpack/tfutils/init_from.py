"""Starts a training with the weights of another model, and with nothing else of it."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .checkpoint import (
    check_manifest,
    get_checkpoint_path,
    load_checkpoint_vars,
    names_without_output,
)
from .sessinit import SessionInit
from .varmanip import SessionUpdate

__all__ = ["InitFrom"]


class InitFrom(SessionInit):
    """Loads the weights that are both in the graph and in a file, and logs a table of all.

    Weights are the trainable variables and those in the collection `MODEL_VARIABLES` (the moments
    of a batch normalisation). The global step, what optimizers and summaries keep, and
    hyper-parameters are not: to continue a run, use `TrainConfig(resume=...)`.

    Args:
      path: a checkpoint, as in `SaverRestore`, or an `.npz` archive.
      also: names of further variables of the graph to load.
      ignore: names of weights that are not loaded.

    Raises:
      FileNotFoundError: there is no such file.
      CheckpointCorrupt: it cannot be read.
      ValueError: in `init`, nothing fits; or `also` has a name that the graph does not have.
    """

    def __init__(self, path: str, also: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        self.path = path
        if not path.endswith(".npz"):
            self.path = get_checkpoint_path(path)
            check_manifest(self.path)
        self._values = load_checkpoint_vars(self.path)
        self._also = names_without_output(also)
        self._ignore = frozenset(names_without_output(ignore))

    def _run_init(self, sess: tf.Session) -> None:
        variables = {each.op.name: each for each in tf.global_variables()}
        weights = self._weights(variables)
        rows: List[Tuple[str, str, str]] = []
        chosen: Dict[str, np.ndarray] = {}
        for name in sorted({*variables, *self._values}):
            reason = self._why_not(name, variables.get(name), name in weights)
            if not reason:
                chosen[name] = self._values[name]
            known: Any = variables[name].shape if name in variables else self._values[name].shape
            shape = " x ".join(str(each) for each in known) or "scalar"
            rows.append((name, shape, reason or "loaded"))
        table = tabulate(rows, headers=["variable", "shape", "what"])
        logger.info(f"Weights from {self.path}: {len(chosen)} loaded.\n{table}")
        if not chosen:
            raise ValueError(
                f"No weight of this model is in {self.path}: the table above says why. Is it the "
                "file of another model?"
            )
        SessionUpdate(sess, [variables[name] for name in chosen]).update(chosen)

    def _weights(self, variables: Dict[str, tf.Variable]) -> List[str]:
        unknown = [name for name in self._also if name not in variables]
        if unknown:
            raise ValueError(f"The graph has no variable {', '.join(unknown)}, see `also`.")
        keys = (tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.MODEL_VARIABLES)
        found = [each.op.name for key in keys for each in tf.get_collection(key)]
        return [name for name in [*found, *self._also] if name not in self._ignore]

    def _why_not(self, name: str, variable: Optional[tf.Variable], is_weight: bool) -> str:
        if variable is None:
            return "only in the file"
        if name in self._ignore:
            return "kept: ignored"
        if not is_weight:
            return "kept: not a weight"
        if name not in self._values:
            return "kept: not in the file"
        if not variable.shape.is_compatible_with(self._values[name].shape):
            return f"kept: {list(self._values[name].shape)} in the file"
        return ""
