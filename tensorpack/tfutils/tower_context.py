"""What is known about the tower under construction, and the scopes within which it is built."""

from contextlib import ExitStack, contextmanager
from typing import Any, Iterator, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf

from .collection import freeze_collection
from .common import PerGraph

__all__ = ["BaseTowerContext", "TowerContext", "get_current_tower_context"]

# What only the main training tower may add to: the others repeat the same model.
_MAIN_TOWER_COLLECTIONS = [tf.GraphKeys.SUMMARIES, "MOVING_SUMMARY_OPS", tf.GraphKeys.UPDATE_OPS]

_open_contexts: PerGraph = PerGraph(list)  # innermost last


class BaseTowerContext:
    """What is known about the tower under construction.

    Attributes:
      ns_name: name scope of the tower's ops, "" for the main training tower of a single-tower run.
      vs_name: variable scope of the tower's variables, "" where they are the shared ones.
      is_training: whether this copy is built for training.
      index: which one of the training towers, from 0.
    """

    def __init__(self, ns_name: str, is_training: bool, index: int = 0, vs_name: str = "") -> None:
        self.ns_name = ns_name
        self.is_training = bool(is_training)
        self.index = index
        self.vs_name = vs_name
        self.graph = tf.get_default_graph()

    @property
    def name(self) -> str:
        """The tower's name: that of its name scope."""
        return self.ns_name

    @property
    def is_main_training_tower(self) -> bool:
        """Whether this is the training tower whose summaries and updates count."""
        return self.is_training and self.index == 0

    @property
    def has_own_variables(self) -> bool:
        """Whether this tower may create variables rather than share those of the first one.

        A tower without a name is the first of its graph, or of those that came before it none had
        its variables.
        """
        return self.is_main_training_tower or bool(self.vs_name) or not self.ns_name

    def filter_vars_by_vs_name(self, variables: Sequence[tf.Variable]) -> List[tf.Variable]:
        """Returns those of the variables that live under this tower's variable scope."""
        prefix = self.vs_name + "/" if self.vs_name else ""
        return [each for each in variables if each.op.name.startswith(prefix)]

    def get_collection_in_tower(self, key: str) -> List[Any]:
        """Returns the members of a graph collection that this tower created."""
        prefix = self.ns_name + "/" if self.ns_name else ""
        return [each for each in self.graph.get_collection(key) if each.name.startswith(prefix)]

    def __repr__(self) -> str:
        kind = "training" if self.is_training else "inference"
        where = f"name={self.ns_name!r}, index={self.index}, vs_name={self.vs_name!r}"
        return f"TowerContext({where}, {kind})"


def get_current_tower_context() -> Optional[BaseTowerContext]:
    """Returns the context of the tower that is being built in the default graph, or None outside of
    one.
    """
    contexts = _open_contexts.get()
    return contexts[-1] if contexts else None


@contextmanager
def TowerContext(
    tower_name: str, is_training: Optional[bool] = None, index: int = 0, vs_name: str = ""
) -> Iterator[BaseTowerContext]:
    """Opens the scopes within which one tower is built, and closes them whatever happens.

    Ops go under the name scope `tower_name`. A tower without own variables reuses the existing ones
    and may create no trainable variable; all but the main training tower leave summaries and update
    ops alone.

    Args:
      tower_name: name scope of the tower; "" for none.
      is_training: defaults to whether `tower_name` is not that of a predictor (`towerp...`).
      index: which one of the training towers, from 0.
      vs_name: variable scope for a tower that has variables of its own.

    Raises:
      RuntimeError: another tower is being built, the name is taken, or an inference tower made new
        trainable variables.
    """
    outer = get_current_tower_context()
    if outer is not None:
        raise RuntimeError(
            f"Tower {tower_name!r} cannot be built inside of {outer!r}: leave that context first."
        )
    if is_training is None:
        is_training = not tower_name.startswith("towerp")
    context = BaseTowerContext(tower_name, is_training, index=index, vs_name=vs_name)
    contexts = _open_contexts.get()
    with ExitStack() as stack:
        _enter_scopes(stack, context)
        contexts.append(context)
        stack.callback(contexts.pop)
        trainable_before = len(tf.trainable_variables())
        yield context
        added = tf.trainable_variables()[trainable_before:]
        if added and not context.has_own_variables:
            names = ", ".join(each.op.name for each in added)
            raise RuntimeError(
                f"{context!r} shares the variables of the first tower, but created {names}. Make "
                "variables with "
                "tf.get_variable, under names that do not depend on the tower."
            )


def _enter_scopes(stack: ExitStack, context: BaseTowerContext) -> None:
    if context.vs_name:
        stack.enter_context(tf.variable_scope(context.vs_name, auxiliary_name_scope=False))
    elif not context.is_main_training_tower:
        reuse = tf.AUTO_REUSE if context.has_own_variables else True
        stack.enter_context(tf.variable_scope(tf.get_variable_scope(), reuse=reuse))
    if context.ns_name:
        scope = stack.enter_context(tf.name_scope(context.ns_name))
        if scope != context.ns_name + "/":
            raise RuntimeError(
                f"The name scope {context.ns_name!r} exists already (TensorFlow offers {scope!r}): "
                "give each tower a name of its own."
            )
    if not context.is_main_training_tower:
        stack.enter_context(freeze_collection(_MAIN_TOWER_COLLECTIONS))
