"""Loads named values into the variables of a graph, and shows in one table what does not fit."""

from typing import Any, Callable, Dict, FrozenSet, Iterable

from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checkpoints.variables import Match, Variable, match

from .varmanip import SessionUpdate, fit_value, is_training_name, weights_of


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
      sess: the session.
      source: what the values come from, for messages.
      saved: what is known of each value, by name.
      read: returns a value, given its name.
      ignore: names of variables that keep their values.
      reshape: whether to reshape values, and to leave out those that do not fit.

    Returns:
      The names of the variables that have no value, those to be ignored aside.
    """
    variables = {v.op.name: v for v in tf.global_variables() if v.op.name not in ignore}
    fitting, errors, rows = {}, [], []
    offered = {name: each for name, each in saved.items() if name not in ignore}
    for row in match(known_of_graph(variables.values()), offered):
        if row.ours and row.theirs:
            value = read(row.name)
            try:
                fitting[row.name] = fit_value(value, variables[row.name], reshape)
                continue
            except (TypeError, ValueError) as error:
                errors.append(str(error))
        rows.append(row)
    weights = weights_of(sess.graph)
    shown = [row for row in rows if row.name in weights or not is_training_name(row.name)]
    table = mismatch_table(shown, len(rows) - len(shown))
    if errors and not reshape:
        advice = "SmartInit(..., ignore_mismatch=True) leaves out what does not fit."
        raise ValueError(f"{source}: {' '.join(errors)} {advice}\n{table}")
    if not _loads_something(fitting, variables, saved):
        raise ValueError(
            f"No variable of this graph is in {source}. Is it that of another model?"
            f"{_scope_hint(variables, saved)}\n{table}"
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


def _scope_hint(variables: Iterable[str], saved: Iterable[str]) -> str:
    for ours in variables:
        for theirs in saved:
            if ours.endswith("/" + theirs) or theirs.endswith("/" + ours):
                return f" The graph has {ours} where it has {theirs}: see `prefix` of SaverRestore."
    return ""


def known_of_graph(variables: Iterable[tf.Variable]) -> Dict[str, Variable]:
    """Returns what is known of the variables of a graph, by name."""
    return {
        each.op.name: Variable(
            each.dtype.base_dtype.name,
            None if each.shape.ndims is None else tuple(each.shape.as_list()),
        )
        for each in variables
    }


def mismatch_table(rows: Iterable[Match], hidden: int = 0) -> str:
    """Returns the table of rows that are not loaded, and of how many more it does not show."""
    shown = [
        (name, ours or "", theirs or "", verdict if not (ours and theirs) else "does not fit")
        for name, ours, theirs, verdict in rows
    ]
    table = tabulate(shown, headers=["variable", "in the graph", "to load", "problem"])
    return f"{table}\nand {hidden} that only training uses" if hidden else table
