"""Sets variables in a session, and takes them out; the names that checkpoints know them by."""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checkpoints import get_all_checkpoints
from tensorpack.utils.naming import is_training_name

from .checkpoint import (
    PathLike,
    get_checkpoint_path,
    load_checkpoint_vars,
    names_without_output,
    save_checkpoint_vars,
)
from .fed_input import cast, kind_of

__all__ = [
    "SessionUpdate",
    "dump_chkpt_vars",
    "dump_session_params",
    "fit_value",
    "get_all_checkpoints",
    "get_checkpoint_path",
    "get_savename_from_varname",
    "is_training_name",
    "load_checkpoint_vars",
    "load_chkpt_vars",
    "save_checkpoint_vars",
    "save_chkpt_vars",
    "weights_of",
]

# Their names in other versions of the API.
load_chkpt_vars = load_checkpoint_vars
dump_chkpt_vars = load_checkpoint_vars
save_chkpt_vars = save_checkpoint_vars


class SessionUpdate:
    """Gives variables new values in a session, in one run and without adding to the graph.

    Args:
      sess: the session.
      vars_to_update: the variables that may be set.
      ignore_mismatch: whether a value that does not fit its variable is left out, with a warning,
        or only reshaped where that makes it fit.
    """

    def __init__(
        self, sess: tf.Session, vars_to_update: Sequence[tf.Variable], ignore_mismatch: bool = False
    ) -> None:
        self._sess = sess
        self._variables = {variable.op.name: variable for variable in vars_to_update}
        self._ignore_mismatch = ignore_mismatch

    def update(self, prms: Dict[str, Any]) -> None:
        """Sets variables. Where one value is refused, none is set.

        Args:
          prms: name of the variable, with or without `:0`, to its new value.

        Raises:
          KeyError: there is no such variable among those given.
          ValueError: a value has the wrong shape, or a number is out of the variable's range.
          TypeError: a value is of another kind (such as integers for a float variable).
        """
        fitting = []
        for name, value in zip(names_without_output(prms), prms.values()):
            if name not in self._variables:
                raise KeyError(f"There is no variable {name!r} among those to be updated.")
            variable = self._variables[name]
            array = self.relaxed_value_for_var(value, variable, self._ignore_mismatch)
            if array is not None:
                fitting.append((variable, array))
        while fitting:
            fitting = self._run_initializers(fitting)

    def _run_initializers(self, assignments: List[Any]) -> List[Any]:
        """Feeds values as initial ones; returns those left, whose variables share that tensor."""
        ops, feeds, left = [], {}, []
        for variable, array in assignments:
            initial_value = variable.initializer.inputs[1]
            if initial_value.name in feeds:
                left.append((variable, array))
            else:
                ops.append(variable.initializer)
                feeds[initial_value.name] = array
        self._sess.run(ops, feeds)
        return left

    @staticmethod
    def relaxed_value_for_var(
        value: Any, var: tf.Variable, ignore_mismatch: bool = False
    ) -> Optional[np.ndarray]:
        """Returns `value` as an array that can be assigned to `var`, of its shape and dtype.

        Floats become floats of another width and integers others, if they are in its range.

        Args:
          value: anything that NumPy makes an array of.
          var: the variable.
          ignore_mismatch: whether to reshape a value that has the right number of elements, and
            return None, with a warning, for one that does not fit; rather than raise.
        """
        try:
            return fit_value(value, var, reshape=ignore_mismatch)
        except (TypeError, ValueError) as error:
            if not ignore_mismatch:
                raise
            logger.warn(f"{error} It keeps its value.")
            return None

    @staticmethod
    def load_value_to_var(var: tf.Variable, val: Any, strict: bool = False) -> None:
        """Sets one variable in the default session.

        Args:
          var: the variable.
          val: its new value, converted as in `relaxed_value_for_var`.
          strict: whether to refuse a value of another shape that has the right number of elements.
        """
        array = fit_value(val, var, reshape=not strict)
        SessionUpdate(_default_session("load_value_to_var"), [var]).update({var.op.name: array})


def fit_value(value: Any, var: tf.Variable, reshape: bool = False) -> np.ndarray:
    """Returns `value` as an array of the shape and dtype of `var`, see `relaxed_value_for_var`.

    Args:
      value: anything that NumPy makes an array of.
      var: the variable.
      reshape: whether another shape with the right number of elements is accepted, with a warning.
    """
    array = np.asarray(value)
    shape = var.shape.as_list() if var.shape.ndims is not None else list(array.shape)
    if reshape and list(array.shape) != shape and None not in shape:
        if array.size == np.prod(shape):
            logger.warn(f"{var.op.name}: reshaping {list(array.shape)} to {shape}.")
            array = array.reshape(shape)
    if not var.shape.is_compatible_with(array.shape):
        raise ValueError(
            f"The variable {var.op.name} has the shape {shape}, "
            f"the value for it {list(array.shape)}."
        )
    return _cast(array, var)


def _cast(array: np.ndarray, var: tf.Variable) -> np.ndarray:
    source, target = array.dtype, np.dtype(var.dtype.base_dtype.as_numpy_dtype)
    if tf.as_dtype(source) == var.dtype.base_dtype:
        return array
    expected = f"The variable {var.op.name} is {target}, the value for it {source}"
    if kind_of(source) != kind_of(target) or kind_of(target) == "other":
        raise TypeError(f"{expected}: convert it first.")
    try:
        return cast(array, target)
    except ValueError as error:
        raise ValueError(f"{expected}: {error}.") from error


def dump_session_params(path: PathLike) -> None:
    """Writes the trainable and model variables of the default session with `save_checkpoint_vars`.

    Raises:
      RuntimeError: there is no default session.
    """
    session = _default_session("dump_session_params")
    save_checkpoint_vars(session.run(weights_of(session.graph)), path)


def weights_of(graph: tf.Graph) -> Dict[str, tf.Variable]:
    """Returns the trainable and model variables of a graph, by name."""
    keys = (tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.MODEL_VARIABLES)
    return {each.op.name: each for key in keys for each in graph.get_collection(key)}


def _default_session(user: str) -> tf.Session:
    session = tf.get_default_session()
    if session is None:
        raise RuntimeError(f"{user}() takes the default session, but there is none.")
    return session


def get_savename_from_varname(
    varname: str, varname_prefix: Optional[str] = None, savename_prefix: Optional[str] = None
) -> str:
    """Returns the name under which a variable is saved.

    Args:
      varname: name of the variable, with or without `:0`.
      varname_prefix: scope to take off the front of it, if it is there.
      savename_prefix: scope to put in front of it.
    """
    name = names_without_output([varname])[0]
    if varname_prefix and name.startswith(varname_prefix + "/"):
        name = name[len(varname_prefix) + 1 :]
    return f"{savename_prefix}/{name}" if savename_prefix else name
