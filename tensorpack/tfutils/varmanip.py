"""Sets variables in a session, and takes them out; the names that checkpoints know them by."""

from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence

import numpy as np
from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checkpoints.variables import Match, Variable, match, scope_hint
from tensorpack.utils.naming import is_training_name

from .checkpoint import PathLike, load_checkpoint_vars, names_without_output, save_checkpoint_vars
from .fed_input import cast, to_strings

_OF_OBJECT = "/.ATTRIBUTES/VARIABLE_VALUE"
_BY_NAME = (
    "It is a checkpoint of objects (`tf.train.Checkpoint`, Keras): read each value by "
    "tf.train.load_variable(path, key), and give SmartInit a dictionary by names of this graph."
)
# Their names in other versions of the API.
load_chkpt_vars = load_checkpoint_vars
dump_chkpt_vars = load_checkpoint_vars
save_chkpt_vars = save_checkpoint_vars


class SessionUpdate:
    """Gives variables new values in a session, in one run and without adding to the graph.

    Args:
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
        """Sets variables, by name with or without `:0`. Where one value is refused, none is set."""
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
        """Sets one variable in the default session; if `strict`, only to a value of its shape."""
        array = fit_value(val, var, reshape=not strict)
        SessionUpdate(_default_session("load_value_to_var"), [var]).update({var.op.name: array})


def fit_value(value: Any, var: tf.Variable, reshape: bool = False) -> np.ndarray:
    """Returns `value` as an array of the shape and dtype of `var`, see `relaxed_value_for_var`.

    With `reshape`, it may have another shape with the right number of elements, with a warning.
    """
    array = to_strings(value) if var.dtype.base_dtype == tf.string else np.asarray(value)
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
    source, target = array.dtype, np.dtype(var.dtype.base_dtype.as_numpy_dtype)
    if tf.as_dtype(source) == var.dtype.base_dtype:
        return array
    expected = f"The variable {var.op.name} is {target}, the value for it {source}"
    try:
        return cast(array, target)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{expected}: {error}.") from error


def load_named_values(
    sess: tf.Session,
    source: str,
    saved: Dict[str, Variable],
    read: Callable[[str], Any],
    ignore: FrozenSet[str] = frozenset(),
    reshape: bool = False,
) -> FrozenSet[str]:
    """Sets the variables of the default graph for which there is a value of the same name.

    Logs a table of what is in only one of them or does not fit, but for what only training uses;
    as a warning if a variable of the graph is among it. Nothing is set before all has been read.

    Args:
      source: what the values come from, for messages.
      saved: what is known of each value, by name.
      ignore: names of variables that keep their values.
      reshape: whether to reshape values, and to leave out those that do not fit.

    Returns:
      The names of the variables that have no value, those to be ignored aside.
    """
    variables = {v.op.name: v for v in tf.global_variables() if v.op.name not in ignore}
    fitting, errors, rows, weights = {}, [], [], weights_of(sess.graph)
    offered = {name: what for name, what in saved.items() if name not in ignore}
    for row in match(known_of_graph(variables.values()), offered):
        if row.ours and row.theirs:
            value = read(row.name)
            try:
                fitting[row.name] = fit_value(value, variables[row.name], reshape)
                continue
            except (TypeError, ValueError) as error:
                if row.name in weights or not is_training_name(row.name):
                    errors.append(str(error))
        rows.append(row)
    shown = [row for row in rows if row.name in weights or not is_training_name(row.name)]
    table = mismatch_table(shown, len(rows) - len(shown))
    if errors and not reshape:
        what = "reshape what has as many elements, and leave out the rest"
        advice = f"With ignore_mismatch=True, SmartInit and DictRestore {what}."
        raise ValueError(f"{source}: {' '.join(errors)} {advice}\n{table}")
    if not _loads_something(fitting, variables, saved):
        of_objects = any(name.endswith(_OF_OBJECT) for name in saved)
        raise ValueError(
            f"No variable of this graph is in {source}. "
            f"{_BY_NAME if of_objects else 'Is it that of another model?'}"
            f"{scope_hint(variables, saved)}\n{table}"
        )
    text = f"The following variables are not loaded from {source}:\n{table}"
    if any(row.ours for row in shown):
        logger.warn(text)
    elif shown:  # a checkpoint of a training always has more than a predictor needs
        logger.detail(text)
        some = ", ".join(row.name for row in shown[:3])
        logger.info(f"{source} has {len(shown)} variables that this graph lacks, such as {some}.")
    SessionUpdate(sess, list(variables.values())).update(fitting)
    return frozenset(variables) - frozenset(fitting)


def _loads_something(
    fitting: Iterable[str], variables: Iterable[str], saved: Iterable[str]
) -> bool:
    """Whether anything fits; what only training uses counts only where there is nothing else."""
    used, offered, loaded = (
        {name for name in names if name != "global_step" and not is_training_name(name)}
        for names in (variables, saved, fitting)
    )
    return bool(loaded) or (bool(fitting) and not (used and offered))


def known_of_graph(variables: Iterable[tf.Variable]) -> Dict[str, Variable]:
    """Returns what is known of the variables of a graph, by name."""
    return {
        var.op.name: Variable(
            var.dtype.base_dtype.name,
            None if var.shape.ndims is None else tuple(var.shape.as_list()),
        )
        for var in variables
    }


def mismatch_table(rows: Iterable[Match], hidden: int = 0) -> str:
    """Returns the table of rows that are not loaded, and of how many more it does not show."""
    shown = [
        (name, ours or "", theirs or "", verdict if not (ours and theirs) else "does not fit")
        for name, ours, theirs, verdict in rows
    ]
    table = tabulate(shown, headers=["variable", "in the graph", "to load", "problem"])
    return f"{table}\nand {hidden} that only training uses" if hidden else table


def dump_session_params(path: PathLike) -> None:
    """Writes the trainable and model variables of the default session as a checkpoint."""
    session = _default_session("dump_session_params")
    save_checkpoint_vars(session.run(weights_of(session.graph)), path)


def weights_of(graph: tf.Graph) -> Dict[str, tf.Variable]:
    """Returns the trainable and model variables of a graph, by name."""
    keys = tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.MODEL_VARIABLES
    return {var.op.name: var for key in keys for var in graph.get_collection(key)}


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
      varname: with or without `:0`, which stays.
      varname_prefix: scope to take off its front, if it is there.
      savename_prefix: scope to put in front of it.
    """
    if varname_prefix and varname.startswith(varname_prefix + "/"):
        varname = varname[len(varname_prefix) + 1 :]
    return f"{savename_prefix}/{varname}" if savename_prefix else varname
