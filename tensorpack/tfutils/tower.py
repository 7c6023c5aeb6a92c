"""A tower is one copy of the user's model, for training or for inference.

A tower function is called once for each tower, inside a `TowerContext`, and asks
`get_current_tower_context()` which copy it is building. What it has built is found through handles.
"""

from contextlib import ExitStack
from difflib import get_close_matches
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.naming import SUMMARY_BACKUP_KEYS, TOWER_FREEZE_KEYS

from .common import PerGraph, as_signature, get_op_tensor_name, get_tensor_of_graph
from .graph import backup_collection, freeze_collection

_open_contexts: PerGraph = PerGraph(list)  # innermost last


class BaseTowerContext:
    """One tower: what is known about it, and a `with` block within which it is built.

    The block opens the scopes of the tower, and closes them also after an error. Ops go under the
    name scope `ns_name`. A tower without own variables reuses the existing ones and may create no
    trainable variable. All but the main training tower leave summaries alone, and update ops unless
    they are trained with variables of their own.

    Args:
      ns_name: name scope of the tower's ops; "" for none.
      vs_name: variable scope for a tower that has variables of its own.
      is_training: whether this copy is built for training; by default unless `ns_name` is that of a
        predictor (`towerp...`).
      index: which one of the training towers, from 0.

    Attributes:
      ns_name, vs_name, is_training, index: the same.
    """

    def __init__(
        self, ns_name: str, vs_name: str = "", *, is_training: Optional[bool] = None, index: int = 0
    ) -> None:
        self.ns_name = ns_name
        self.vs_name = vs_name
        if is_training is None:
            is_training = not ns_name.startswith("towerp")
        self.is_training = bool(is_training)
        self.index = index
        self.graph = tf.get_default_graph()
        self._scopes = ExitStack()
        self._before: Dict[str, List[Any]] = {}  # the collections when it was entered
        self._added: Optional[Dict[str, List[Any]]] = None  # what each had more when it was left

    def __enter__(self) -> "BaseTowerContext":
        outer = get_current_tower_context()
        if outer is not None:
            raise RuntimeError(
                f"Tower {self.ns_name!r} cannot be built inside of {outer!r}: leave that context "
                "first."
            )
        self.graph = tf.get_default_graph()
        contexts = _open_contexts.get()
        with ExitStack() as stack:
            _enter_scopes(stack, self)
            contexts.append(self)
            stack.callback(contexts.pop)
            self._scopes = stack.pop_all()
        self._before, self._added = backup_collection(), None
        return self

    def __exit__(self, error_type: Any, error: Any, traceback: Any) -> None:
        with self._scopes:
            keys = self.graph.get_all_collection_keys()
            self._added = {key: self.get_collection_in_tower(key) for key in keys}
            self._before = {}
            added = self._added.get(tf.GraphKeys.TRAINABLE_VARIABLES, [])
            if error is None and added and not self.has_own_variables:
                names = ", ".join(var.op.name for var in added)
                raise RuntimeError(
                    f"{self!r} shares the variables of the first tower, but created {names}. Make "
                    "variables with tf.get_variable, under names that do not depend on the tower."
                )

    @property
    def name(self) -> str:
        """The tower's name: that of its name scope."""
        return self.ns_name

    @property
    def is_main_training_tower(self) -> bool:
        """Whether this is the training tower whose summaries and updates count."""
        return self.is_training and self.index == 0

    @property
    def keeps_updates(self) -> bool:
        """Whether this tower trains, and its variables are not those of another tower."""
        return self.is_training and (self.index == 0 or bool(self.vs_name))

    @property
    def has_own_variables(self) -> bool:
        """Whether this tower may create variables rather than share those of the first one."""
        # one without a name is the first of its graph, or the first that has these variables
        return self.is_main_training_tower or bool(self.vs_name) or not self.ns_name

    def filter_vars_by_vs_name(self, varlist: Sequence[tf.Variable]) -> List[tf.Variable]:
        """Returns the variables in this tower's scope."""
        prefix = self.vs_name + "/" if self.vs_name else ""
        return [var for var in varlist if var.op.name.startswith(prefix)]

    def get_collection_in_tower(self, key: str) -> List[Any]:
        """Returns the members of a graph collection that were added inside of this tower."""
        if self._added is not None:
            return list(self._added.get(key, []))
        before = {id(member) for member in self._before.get(key, [])}
        return [member for member in self.graph.get_collection(key) if id(member) not in before]

    def __repr__(self) -> str:
        kind = "training" if self.is_training else "inference"
        where = f"name={self.ns_name!r}, index={self.index}, vs_name={self.vs_name!r}"
        return f"TowerContext({where}, {kind})"


class TowerContext(BaseTowerContext):
    """The context within which one tower is built, see `BaseTowerContext`.

    The variable scope may also be the third positional argument, as in the later spelling:
    `TowerContext("tower0", True, "scope")`.

    Args:
      vs_name: variable scope for a tower that has variables of its own; True for its name.
    """

    @accepts_old_keywords(use_vs="vs_name")
    def __init__(
        self,
        tower_name: str,
        is_training: Optional[bool] = None,
        index: Union[int, str] = 0,
        vs_name: Union[str, bool] = "",
    ) -> None:
        if isinstance(vs_name, bool):
            vs_name = tower_name if vs_name else ""
        if isinstance(index, str):
            vs_name, index = index, 0
        super().__init__(tower_name, vs_name, is_training=is_training, index=index)


def PredictTowerContext(ns_name: str, vs_name: str = "") -> BaseTowerContext:
    """Returns the context of a tower that predicts."""
    return BaseTowerContext(ns_name, vs_name, is_training=False)


def TrainTowerContext(
    ns_name: str, vs_name: str = "", index: int = 0, total: int = 1
) -> BaseTowerContext:
    """Returns the context of training tower `index`; how many there are in total has no use."""
    return BaseTowerContext(ns_name, vs_name, is_training=True, index=index)


def get_current_tower_context() -> Optional[BaseTowerContext]:
    """Returns the context of the tower under construction in the default graph, or None."""
    contexts = _open_contexts.get()
    return contexts[-1] if contexts else None


def in_main_training_tower() -> bool:
    """Returns whether summaries count here: outside of towers, and in the main training tower."""
    context = get_current_tower_context()
    return context is None or context.is_main_training_tower


def _enter_scopes(stack: ExitStack, context: BaseTowerContext) -> None:
    variables: Any = context.vs_name
    reuse: Any = None if context.is_training else tf.AUTO_REUSE
    if not context.vs_name:
        reuse = None
        # TensorFlow restores the numbers of its default names at the end of such a scope, so layers
        # without a name, such as those of tf.layers, have the same variables in every tower.
        variables = tf.get_variable_scope()
        if not context.is_main_training_tower:
            reuse = tf.AUTO_REUSE if context.has_own_variables else True
    stack.enter_context(tf.variable_scope(variables, reuse=reuse, auxiliary_name_scope=False))
    if context.ns_name:
        scope = stack.enter_context(tf.name_scope(context.ns_name))
        if scope != context.ns_name + "/":
            raise RuntimeError(
                f"The name scope {context.ns_name!r} exists already (TensorFlow offers {scope!r}): "
                "give each tower a name of its own."
            )
    if not context.is_main_training_tower:
        keys = SUMMARY_BACKUP_KEYS if context.keeps_updates else TOWER_FREEZE_KEYS
        stack.enter_context(freeze_collection(keys))


class TowerTensorHandle:
    """Finds tensors and variables of one finished tower.

    Args:
      inputs: the tensors that the tower function was called with.
      input_signature: the specs of the inputs, so that they can be found by their names.

    Attributes:
      inputs, outputs: what was given; also called `input` and `output`.
      is_training, ns_name, vs_name: those of the context.
    """

    @accepts_old_keywords(input="inputs", output="outputs", inputs_desc="input_signature")
    def __init__(
        self,
        ctx: BaseTowerContext,
        inputs: Sequence[tf.Tensor],
        outputs: Any,
        input_signature: Optional[Sequence[tf.TensorSpec]] = None,
    ) -> None:
        self._context = ctx
        self.inputs = self.input = list(inputs)
        self.outputs = self.output = outputs
        self.is_training, self.ns_name, self.vs_name = ctx.is_training, ctx.ns_name, ctx.vs_name
        named = zip(input_signature or [], self.inputs)
        self._by_name = {get_op_tensor_name(spec.name)[1]: tensor for spec, tensor in named}

    def get_tensor(self, name: str) -> tf.Tensor:
        """Returns a tensor: an input by its name in the signature, any other by its own name.

        Raises:
          KeyError: the tower has no tensor of this name.
        """
        tensor_name = get_op_tensor_name(name)[1]
        if tensor_name in self._by_name:
            return self._by_name[tensor_name]
        full_name = f"{self.ns_name}/{tensor_name}" if self.ns_name else tensor_name
        try:
            return get_tensor_of_graph(self._context.graph, full_name)
        except (KeyError, ValueError) as error:
            inputs = ", ".join(self._by_name) or "none"
            raise KeyError(
                f"Tower {self.ns_name!r} has no tensor {full_name!r}.{self._hint(tensor_name)} It "
                f"must be made inside the tower function, under this name. Inputs: {inputs}."
            ) from error

    def _hint(self, tensor_name: str) -> str:
        """Names the tensors of the tower whose names are like this one, if any."""
        op_name, prefix = (
            get_op_tensor_name(tensor_name)[0],
            f"{self.ns_name}/" * bool(self.ns_name),
        )
        ops = self._context.graph.get_operations()
        names = [op.name[len(prefix) :] for op in ops if op.outputs and op.name.startswith(prefix)]
        names += [get_op_tensor_name(name)[0] for name in self._by_name]
        in_scopes = [name for name in names if name.rpartition("/")[2] == op_name]
        near = in_scopes[:3] or get_close_matches(op_name, sorted({*names}), 3)
        return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""

    def get_tensors(self, names: Sequence[str]) -> List[tf.Tensor]:
        """Returns `get_tensor` of each name."""
        return [self.get_tensor(name) for name in names]

    def get_variable(self, name: str) -> tf.Variable:
        """Returns the variable that this tower uses under `name`."""
        full_name = f"{self.vs_name}/{name}" if self.vs_name else name
        for key in (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES):
            for variable in self._context.graph.get_collection(key):
                if variable.op.name == get_op_tensor_name(full_name)[0]:
                    return variable
        raise KeyError(f"Tower {self.ns_name!r} has no variable {full_name!r}.")

    def get_variables(self, names: Sequence[str]) -> List[tf.Variable]:
        """Returns `get_variable` of each name."""
        return [self.get_variable(name) for name in names]

    @accepts_old_keywords(name="key")
    def get_collection(self, key: str) -> List[Any]:
        """Returns the members of a graph collection that were added inside of this tower."""
        return self._context.get_collection_in_tower(key)

    def __getitem__(self, name: str) -> tf.Tensor:
        return self.get_tensor(name)


class TowerTensorHandles:
    """The handles of all towers of one tower function, in order; by index or by tower name."""

    def __init__(self, handles: Sequence[TowerTensorHandle]) -> None:
        self._handles = list(handles)

    def training(self) -> List[TowerTensorHandle]:
        """The training towers."""
        return [handle for handle in self._handles if handle.is_training]

    def inference(self) -> List[TowerTensorHandle]:
        """The inference towers."""
        return [handle for handle in self._handles if not handle.is_training]

    def __getitem__(self, key: Union[int, str]) -> TowerTensorHandle:
        if isinstance(key, int):
            return self._handles[key]
        for handle in self._handles:
            if handle.ns_name == key:
                return handle
        names = ", ".join(repr(handle.ns_name) for handle in self._handles)
        raise KeyError(f"There is no tower {key!r}; there are: {names}.")

    def __contains__(self, name: str) -> bool:
        return any(handle.ns_name == name for handle in self._handles)

    def __len__(self) -> int:
        return len(self._handles)


class TowerFunc:
    """A function that builds a tower, together with the handles of all towers it has built.

    Args:
      tower_fn: called with one tensor for each input, inside a `TowerContext`.
      input_signature: the `tf.TensorSpec` of each input; every one needs a name.

    Attributes:
      input_signature: the same, as a list.
    """

    @accepts_old_keywords(inputs_desc="input_signature")
    def __init__(
        self, tower_fn: Callable[..., Any], input_signature: Sequence[tf.TensorSpec]
    ) -> None:
        self._tower_fn = tower_fn
        self.input_signature = as_signature(input_signature)
        self._handles: List[TowerTensorHandle] = []

    @property
    def towers(self) -> TowerTensorHandles:
        """Handles of the towers built so far."""
        return TowerTensorHandles(self._handles)

    def __call__(self, *inputs: tf.Tensor) -> Any:
        context = get_current_tower_context()
        if context is None:
            raise RuntimeError("A tower function must be called inside of a TowerContext.")
        outputs = self._tower_fn(*inputs)
        self._handles.append(TowerTensorHandle(context, inputs, outputs, self.input_signature))
        return outputs


TowerFuncWrapper = TowerFunc
