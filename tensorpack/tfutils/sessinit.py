"""Sets the values with which variables start: from a checkpoint, a dictionary, or both."""

import os
from typing import Any, Dict, FrozenSet, Iterable, Optional, Sequence

from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checkpoints.files import verify
from tensorpack.utils.checkpoints.variables import (
    Match,
    by_name,
    match,
    take_present_names,
    variables_in,
    variables_of,
    without_output,
)
from tensorpack.utils.checks import check_kind
from tensorpack.utils.naming import is_loss_scale_name
from tensorpack.utils.packing.npz import NAMED_ARRAYS

from .checkpoint import (
    CheckpointReader,
    get_checkpoint_path,
    load_checkpoint_vars,
    names_without_output,
)
from .varmanip import SessionUpdate, known_of_graph, load_named_values, mismatch_table, weights_of


class SessionInit:
    """Sets variables of a session, after their initialisers.

    The trainer calls `init` once, before the graph is finalised. Override `_setup_graph` to add
    ops, and `_run_init` to run them.

    Attributes:
      missing: after `init`, the names of the variables that it looked for a value for and found
        none. A predictor refuses to run without a weight that is among them.
    """

    missing: FrozenSet[str] = frozenset()

    def init(self, sess: tf.Session) -> None:
        """Sets the variables."""
        with sess.graph.as_default():
            self._setup_graph()
            self._run_init(sess)

    def _setup_graph(self) -> None:
        """Override to add ops to the default graph, which is that of the session."""

    def _run_init(self, sess: tf.Session) -> None:
        """Override to set variables."""


class JustCurrentSession(SessionInit):
    """Leaves the variables as their initialisers made them."""


class ChainInit(SessionInit):
    """Applies several `SessionInit`, in order: what a later one sets is what remains."""

    def __init__(self, sess_inits: Sequence[SessionInit]) -> None:
        self._inits = list(sess_inits)

    def _setup_graph(self) -> None:
        for init in self._inits:
            init._setup_graph()

    def _run_init(self, sess: tf.Session) -> None:
        for init in self._inits:
            init._run_init(sess)
        loading = [init for init in self._inits if not isinstance(init, JustCurrentSession)]
        if loading:
            self.missing = frozenset.intersection(*[init.missing for init in loading])


class SaverRestore(SessionInit):
    """Loads the variables that are both in the graph and in a checkpoint.

    The log lists what is in only one of them, except for what only training uses (see
    `is_training_name`). Nothing is set before all has been read, and no op is added to the graph.
    If the checkpoint has a manifest, its files are compared with that first.

    Args:
      model_path: a prefix, its `.index` or `.data-...` file, a `checkpoint` file or its directory.
      prefix: the scope in the graph that the variables of the checkpoint belong to: `W` of the
        checkpoint is loaded into `{prefix}/W`.
      ignore: names of variables in the graph that are not loaded.

    Raises:
      FileNotFoundError: there is no checkpoint.
      CheckpointCorrupt: it cannot be read (here, or in `init`).
    """

    ignore_mismatch = False

    def __init__(
        self, model_path: str, prefix: Optional[str] = None, ignore: Iterable[str] = ()
    ) -> None:
        self.path = get_checkpoint_path(model_path)
        self.prefix = prefix.rstrip("/") if prefix else None
        self.ignore = frozenset(names_without_output(ignore))

    def _run_init(self, sess: tf.Session) -> None:
        logger.info(f"Restoring checkpoint from {self.path} ...")
        verify(self.path)
        reader = CheckpointReader(self.path)
        scope = f"{self.prefix}/" if self.prefix else ""
        saved = variables_in(reader.variables)
        in_graph = () if scope else known_of_graph(tf.global_variables())
        names = take_present_names(in_graph, saved)
        self.missing = load_named_values(
            sess,
            self.path,
            {scope + name: what for name, what in saved.items()},
            lambda name: reader.read(names.get(name, name[len(scope) :])),
            ignore=self.ignore,
            reshape=self.ignore_mismatch,
        )


class SaverRestoreRelaxed(SaverRestore):
    """A `SaverRestore` that reshapes or leaves out values that do not fit, with a warning."""

    ignore_mismatch = True


class VariableMismatch(ValueError):
    """The variables of a graph differ from those of a checkpoint."""


class ExactRestore(SessionInit):
    """Loads variables from a checkpoint that has exactly these.

    Args:
      prefix: of the checkpoint, which has been verified.
      variables: by default all global ones of the graph.
      strictly: whether moving averages of summaries and the scale of the loss must be the same as
        well; otherwise they begin, or are dropped, with a warning.

    Raises:
      VariableMismatch: in `init`; lists what is missing, unexpected, or of another shape or type.
    """

    def __init__(
        self, prefix: str, variables: Optional[Sequence[tf.Variable]] = None, strictly: bool = True
    ) -> None:
        self._prefix, self._variables, self._strictly = prefix, variables, strictly

    def _run_init(self, sess: tf.Session) -> None:
        logger.info(f"Restoring checkpoint from {self._prefix} ...")
        variables = tf.global_variables() if self._variables is None else self._variables
        reader, ours = CheckpointReader(self._prefix), known_of_graph(variables)
        theirs = variables_in(reader.variables)
        names = take_present_names(ours, theirs)
        wrong = [row for row in match(ours, theirs) if row.verdict != "same"]
        minor = all(map(_is_minor, wrong))
        if wrong and (self._strictly or not minor):
            undo = 'use resume="auto"' if minor else "undo the change of the model"
            raise VariableMismatch(
                f"The run in {self._prefix} cannot be resumed with this graph:\n"
                f"{mismatch_table(wrong)}\nFor a new run, give another log directory, delete this "
                f'one, or use resume="never"; the weights that fit are its start with TrainConfig('
                f"session_init=InitFrom({self._prefix!r})). To resume the run, {undo}."
            )
        if wrong:
            changes = (f"{row.name} {'begins' if row.ours else 'is dropped'}" for row in wrong)
            logger.warning(f"Another trainer than in {self._prefix}: {', '.join(changes)}.")
        fitting = ours.keys() & theirs.keys() - {row.name for row in wrong}
        values = {name: reader.read(names.get(name, name)) for name in sorted(fitting)}
        SessionUpdate(sess, variables).update(values)


def _is_minor(row: Match) -> bool:
    """Whether it is of an `add_moving_summary`, in 0.x scalars, or a new or old `loss_scale`."""
    sides = {str(row.ours), str(row.theirs)}
    of_0_x = row.ours is None and row.name.endswith(("/biased", "/local_step"))
    is_average = of_0_x or ("float32 [2]" in sides and sides & {"None", "float32 []"})
    is_scale = "None" in sides and is_loss_scale_name(row.name)
    return is_scale or bool(is_average and row.name.startswith("EMA/"))


class DictRestore(SessionInit):
    """Loads variables from a dictionary; logs what is in only one of them, as `SaverRestore`.

    Args:
      variable_dict: name of the variable, with or without `:0`, to its value.
      ignore_mismatch: whether what does not fit is reshaped, or else left out, with a warning.
    """

    @accepts_old_keywords(param_dict="variable_dict", d="variable_dict")
    def __init__(self, variable_dict: Dict[str, Any], ignore_mismatch: bool = False) -> None:
        self._values = by_name(check_kind("variable_dict", variable_dict, dict, " of arrays"))
        self.ignore_mismatch = ignore_mismatch

    def _run_init(self, sess: tf.Session) -> None:
        names = {var.op.name for var in tf.global_variables()}
        logger.info(f"Params to restore: {', '.join(sorted(names & self._values.keys()))}")
        logger.info("Restoring from dict ...")
        values = self._values
        self.missing = load_named_values(
            sess, "the dict", variables_of(values), values.__getitem__, reshape=self.ignore_mismatch
        )


class CheckpointReaderAdapter:
    """A `tf.train.NewCheckpointReader` that lists names of tensors, as `W:0`, and reads by them."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        shapes = reader.get_variable_to_shape_map().items()
        self._shapes = {f"{without_output(name)}:0": shape for name, shape in shapes}

    def get_variable_to_shape_map(self) -> Dict[str, Any]:
        return self._shapes

    def get_tensor(self, name: str) -> Any:
        return self._reader.get_tensor(self.get_real_name(name))

    def has_tensor(self, name: str) -> bool:
        return name in self._shapes

    def get_real_name(self, name: str) -> str:
        """Returns the name of a tensor in the checkpoint."""
        return name if self._reader.has_tensor(name) else without_output(name)


ParamRestore = DictRestore  # its name of 2017


@accepts_old_keywords(filename="obj")
def SmartInit(obj: Any, ignore_mismatch: bool = False) -> SessionInit:
    """Returns the `SessionInit` that an object asks for.

    Args:
      obj: None or an empty string for none, a dictionary, a path of an `.npz` archive, of an
        `.npy` file with a dictionary of arrays, or of a checkpoint (see `SaverRestore`), a
        `SessionInit` as it is, or a list of these.
      ignore_mismatch: as in `DictRestore`.

    Raises:
      CheckpointCorrupt: the file cannot be read, or is a pickle that could run code.
      FileNotFoundError: there is no such file.
    """
    if obj is None or (isinstance(obj, str) and not obj):
        return JustCurrentSession()
    if isinstance(obj, SessionInit):
        return obj
    if isinstance(obj, (list, tuple)):
        return ChainInit([SmartInit(item, ignore_mismatch=ignore_mismatch) for item in obj])
    if isinstance(obj, dict):
        return DictRestore(obj, ignore_mismatch=ignore_mismatch)
    path = os.fsdecode(obj)
    if path.endswith(NAMED_ARRAYS):
        return DictRestore(load_checkpoint_vars(path), ignore_mismatch=ignore_mismatch)
    return SaverRestoreRelaxed(path) if ignore_mismatch else SaverRestore(path)


get_model_loader = SmartInit


def TryResumeTraining() -> SessionInit:
    """Returns a `SaverRestore` of the latest checkpoint in the log directory, if there is one.

    Raises:
      CheckpointCorrupt: the file that says which is the latest is damaged.
    """
    directory = logger.get_logger_dir()
    if not directory or not os.path.isfile(os.path.join(directory, "checkpoint")):
        return JustCurrentSession()
    return SaverRestore(os.path.join(directory, "checkpoint"))


class InitFrom(SessionInit):
    """Loads the weights that are both in the graph and in a file; logs a table if some are not.

    Weights are the trainable variables and those in the collection `MODEL_VARIABLES` (the moments
    of a batch normalisation). The global step, what optimizers and summaries keep, and
    hyper-parameters are not: to continue a run, use `TrainConfig(resume=...)`.

    Args:
      path: a checkpoint, as in `SaverRestore`, or a file of arrays, as in `SmartInit`.
      also: names of further variables of the graph to load.
      ignore: names of weights that are not loaded.

    Raises:
      FileNotFoundError: there is no such file.
      CheckpointCorrupt: it cannot be read.
      ValueError: in `init`, nothing fits.
    """

    def __init__(self, path: str, also: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        self.path = path
        if not path.endswith(NAMED_ARRAYS):
            self.path = get_checkpoint_path(path)
            verify(self.path)
        self._values = load_checkpoint_vars(self.path)
        self._also = names_without_output(also)
        self._ignore = frozenset(names_without_output(ignore))

    def _run_init(self, sess: tf.Session) -> None:
        variables = {var.op.name: var for var in tf.global_variables()}
        weights = self._weights(variables)
        rows, chosen = [], {}
        for row in match(known_of_graph(variables.values()), variables_of(self._values)):
            reason = self._why_not(row, weights)
            if not reason:
                chosen[row.name] = self._values[row.name]
            var: Any = row.ours or row.theirs
            shape = "?" if var.shape is None else " x ".join(map(str, var.shape)) or "scalar"
            rows.append((row.name, shape, reason or "loaded"))
        table = tabulate(rows, headers=["variable", "shape", "what"])
        self.missing = weights - frozenset(chosen)
        shown = self.missing or self._ignore or not chosen or logger.is_verbose()
        logger.info(f"Weights from {self.path}: {len(chosen)} loaded." + f"\n{table}" * bool(shown))
        if not chosen:
            raise ValueError(
                f"No weight of this model is in {self.path}: the table above says why. Is it the "
                "file of another model?"
            )
        SessionUpdate(sess, [variables[name] for name in chosen]).update(chosen)

    def _weights(self, variables: Dict[str, tf.Variable]) -> FrozenSet[str]:
        unknown = [name for name in self._also if name not in variables]
        if unknown:
            raise ValueError(f"The graph has no variable {', '.join(unknown)}, see `also`.")
        return frozenset({*weights_of(tf.get_default_graph()), *self._also}) - self._ignore

    def _why_not(self, row: Match, weights: FrozenSet[str]) -> str:
        if row.verdict == "extra":
            return "only in the file"
        if row.name in self._ignore:
            return "kept: ignored"
        if row.name not in weights:
            return "kept: not a weight"
        if row.theirs is None:
            return "kept: not in the file"
        return f"kept: {list(row.theirs.shape or ())} in the file" * (row.verdict == "shape")
