"""Optimizers that wrap an optimizer: they change the gradients before it, or the variables after.

Each has the interface of `tf.train.Optimizer`; the work is done inside `apply_gradients`. Also how
any optimizer updates the copies of variables that several towers have.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_list
from tensorpack.utils.naming import MOVING_SUMMARY_OPS_KEY

from .common import PerGraph, root_variable
from .gradproc import FilterNoneGrad, GradientProcessor
from .graph import backup_collection, freeze_collection
from .variables import VariablePairs, replicas

GradsAndVars = Sequence[Tuple[Any, Any]]


class ProxyOptimizer(tf.train.Optimizer):
    """Does what the wrapped optimizer does; the base of those that do more."""

    def __init__(self, opt: tf.train.Optimizer, name: str = "ProxyOptimizer") -> None:
        """Wraps the optimizer `opt`."""
        super().__init__(use_locking=False, name=name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> List[Tuple[Any, Any]]:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> tf.Operation:
        return self._opt.apply_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> List[str]:
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> List[tf.Variable]:
        return self._opt.variables()


def apply_grad_processors(
    opt: tf.train.Optimizer, gradprocs: Sequence[GradientProcessor]
) -> tf.train.Optimizer:
    """Returns an optimizer that sends the gradients through processors before it applies them."""
    return _GradProcOptimizer(opt, as_list("apply_grad_processors", "gradprocs", gradprocs))


class _GradProcOptimizer(ProxyOptimizer):
    def __init__(self, opt: tf.train.Optimizer, gradprocs: Sequence[GradientProcessor]) -> None:
        super().__init__(opt, "GradientProcessorOptimizer")
        self._gradprocs = gradprocs

    def apply_gradients(self, grads_and_vars: GradsAndVars, *args: Any, **kwargs: Any) -> Any:
        grads = list(grads_and_vars)
        for processor in self._gradprocs:
            grads = processor.process(grads)
        return self._opt.apply_gradients(grads, *args, **kwargs)


class PostProcessOptimizer(ProxyOptimizer):
    """Runs an op for each variable after the update.

    Args:
      func: takes a variable; returns an op, or None for nothing to do.
      colocate: whether the ops go to the devices of their variables.
    """

    def __init__(
        self,
        opt: tf.train.Optimizer,
        func: Callable[[Any], Optional[tf.Operation]],
        colocate: bool = True,
    ) -> None:
        super().__init__(opt, type(self).__name__)
        self._func, self._colocate = func, colocate

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Optional[str] = None
    ) -> tf.Operation:
        """Returns an op that updates, and after that runs what `func` returned."""
        pairs = list(grads_and_vars)
        updated = self._opt.apply_gradients(pairs, global_step)
        added = []
        for _, variable in pairs:
            device = variable.device if self._colocate else None
            with tf.control_dependencies([updated]), tf.device(device):
                added.append(self._func(variable))
        return tf.group(updated, *filter(None, added), name=name)


class VariableAssignmentOptimizer(PostProcessOptimizer):
    """Sets variables after the update, as to keep them within bounds.

    Args:
      func: takes a variable; returns the tensor that it is set to, or None to leave it.
    """

    def __init__(self, opt: tf.train.Optimizer, func: Callable[[Any], Optional[tf.Tensor]]) -> None:
        def assign(variable: Any) -> Optional[tf.Operation]:
            value = func(variable)
            return None if value is None else variable.assign(value, read_value=False)

        super().__init__(opt, assign)


class AccumGradOptimizer(ProxyOptimizer):
    """Adds up the gradients of several steps, and applies the sum at the last of them.

    It is like a batch `niter` times as large with a learning rate `niter` times as large. Sparse
    gradients are made dense. A `global_step` counts each run. Gradient processors in `opt` get the
    sum, those around this one each gradient; what summarises, as `SummaryGradient`, belongs there.

    Args:
      niter: number of steps that make one update.
    """

    def __init__(self, opt: tf.train.Optimizer, niter: int) -> None:
        super().__init__(opt, "AccumGrad")
        self._niter = as_count(self, "niter", niter)
        self._variables: PerGraph[Dict[Any, tf.Variable]] = PerGraph(dict)

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Optional[str] = None
    ) -> tf.Operation:
        """Returns an op that adds the gradients, and at each `niter`-th run updates."""
        grads = FilterNoneGrad().process(list(grads_and_vars))
        sums = [self._variable(v.op.name, v.op.name, v.shape, v.dtype.base_dtype) for _, v in grads]
        # Each set of variables has its own, as those of a generator and a discriminator.
        counter = self._variable(tuple(v.op.name for _, v in grads), "counter", [], tf.int32)
        keys = [tf.GraphKeys.SUMMARIES, MOVING_SUMMARY_OPS_KEY]
        # A summary in a branch has a value in some steps only.
        with tf.name_scope("AccumGrad"), freeze_collection(keys):
            before = backup_collection(keys)
            added = [
                total.assign_add(tf.convert_to_tensor(gradient), read_value=False)
                for total, (gradient, _) in zip(sums, grads)
            ]
            with tf.control_dependencies([*added, counter.assign_add(1, read_value=False)]):
                is_last = tf.equal(tf.floormod(counter.read_value(), self._niter), 0)
                pairs = [(total, variable) for total, (_, variable) in zip(sums, grads)]
                updated = tf.cond(is_last, lambda: self._update(pairs), lambda: tf.constant(False))
            with tf.control_dependencies([updated]):
                count = None if global_step is None else global_step.assign_add(1, read_value=False)
            if backup_collection(keys) != before:
                logger.warning(
                    "AccumGradOptimizer leaves out the summaries of what it wraps, which not every "
                    "step runs: put processors that summarise around it, as in "
                    "apply_grad_processors(AccumGradOptimizer(opt, niter), [SummaryGradient()])."
                )
        return tf.group(count or updated, name=name)

    def _variable(self, key: Any, name: str, shape: Any, dtype: tf.DType) -> tf.Variable:
        """Returns a variable that is zero at first, the same for each `apply_gradients`."""
        variables = self._variables.get()
        if key not in variables:
            with tf.name_scope(None):  # another optimizer may have this name
                free = tf.get_default_graph().unique_name(f"AccumGrad/{name}", mark_as_used=False)
            variables[key] = root_variable(free, shape, dtype, tf.zeros_initializer())
        return variables[key]

    def _update(self, pairs: GradsAndVars) -> tf.Tensor:
        grads = [(total.read_value(), var) for total, var in pairs]
        with tf.name_scope(None):  # Adam's powers of betas have the same names without a branch
            update = self._opt.apply_gradients(grads)
        with tf.control_dependencies([update]):
            zeros = [total.assign(tf.zeros_like(total), read_value=False) for total, _ in pairs]
        with tf.control_dependencies(zeros):
            return tf.constant(True)


def apply_to_replicas(
    opt: tf.train.Optimizer, towers: Sequence[GradsAndVars], name: Optional[str] = None
) -> tf.Operation:
    """Returns an op that makes one update: of the variables of the first tower, and of their copies
    in the others.

    What an optimizer keeps beside the slots of variables, as Adam the powers of its betas, is
    updated once. Gradient processors get the variables of the first tower, and its gradients, or
    those of each tower where that must give the same. An optimizer with an `apply_gradients` of its
    own, or one that changes variables after the update, is applied to the first tower, and the
    copies are set to the result.

    Args:
      opt: any optimizer; changed, if it is a `ProxyOptimizer`.
      towers: for each tower its (gradient, variable), the gradients of which are the same.
    """
    towers = replicas().align(towers)
    main, *others = towers
    if not others:
        return opt.apply_gradients(main, name=name)
    chain = [opt]
    while isinstance(chain[-1], ProxyOptimizer):
        chain.append(chain[-1]._opt)
    *wrappers, innermost = chain
    pairs = [(copy, variable) for tower in others for (_, copy), (_, variable) in zip(tower, main)]
    if _defines(innermost) is tf.train.Optimizer and not any(map(_changes_variables, wrappers)):
        processed = _process_by_tower(wrappers, towers)
        if processed is not None:
            updated = innermost.apply_gradients(processed, name=name)
        else:
            wrappers[-1]._opt = _ToReplicas(innermost, pairs)
            updated = opt.apply_gradients(main, name=name)
        _record_slots(innermost, pairs)
        return updated
    logger.info(
        f"{type(opt).__name__} updates the variables of the first tower, and those of the others "
        "are set to them after each step."
    )
    updated = opt.apply_gradients(main)
    with tf.control_dependencies([updated]):
        copies = VariablePairs(*map(list, zip(*pairs))).copy_op("update_replicas")
    return tf.group(updated, copies, name=name)


class _ToReplicas(ProxyOptimizer):
    """Around the innermost optimizer: updates the copies of the variables by the same gradients."""

    def __init__(self, opt: tf.train.Optimizer, pairs: Sequence[Tuple[Any, Any]]) -> None:
        super().__init__(opt, "ToReplicas")
        self._copies: Dict[int, List[Any]] = {}
        for copy, variable in pairs:
            self._copies.setdefault(id(variable), []).append(copy)

    def apply_gradients(self, grads_and_vars: GradsAndVars, *args: Any, **kwargs: Any) -> Any:
        grads = list(grads_and_vars)
        more = [(gradient, copy) for gradient, v in grads for copy in self._copies[id(v)]]
        return self._opt.apply_gradients(grads + more, *args, **kwargs)


def _process_by_tower(
    wrappers: Sequence[ProxyOptimizer], towers: Sequence[GradsAndVars]
) -> Optional[List[Tuple[Any, Any]]]:
    """Returns all towers' gradients, each processed by itself; None if they might differ."""
    processors: List[GradientProcessor] = []
    for opt in wrappers:
        if type(opt) not in (ProxyOptimizer, _GradProcOptimizer):
            return None
        processors += getattr(opt, "_gradprocs", [])
    if not all(vars(type(processor)).get("by_tower", False) for processor in processors):
        return None  # a subclass may do more than its base
    variables = [variable for _, variable in towers[0]]
    processed: Dict[Any, GradsAndVars] = {}  # towers may have the same tensors
    applied = []
    for tower in towers:
        key = tuple(id(gradient) for gradient, _ in tower)
        if key not in processed:
            # The names of the variables that processors go by are those of the first tower.
            grads = [(gradient, variable) for (gradient, _), variable in zip(tower, variables)]
            with tf.device(grads[0][0].device):
                for processor in processors:
                    grads = processor.process(grads)
            processed[key] = grads
        copies = {id(variable): copy for variable, (_, copy) in zip(variables, tower)}
        applied += [(gradient, copies[id(variable)]) for gradient, variable in processed[key]]
    return applied


def _record_slots(opt: tf.train.Optimizer, pairs: Sequence[Tuple[Any, Any]]) -> None:
    for slot in opt.get_slot_names():
        slots = [[opt.get_slot(var, slot) for var in pair] for pair in pairs]
        slots = [pair for pair in slots if pair[0] is not None]
        replicas().add([copy for copy, _ in slots], [main for _, main in slots], slots=True)


def _defines(opt: tf.train.Optimizer) -> type:
    """Returns the class that defines the `apply_gradients` of an optimizer."""
    return next(base for base in type(opt).__mro__ if "apply_gradients" in vars(base))


def _changes_variables(opt: ProxyOptimizer) -> bool:
    """Whether it may do more to the variables than the optimizer that it wraps."""
    package = __name__.rpartition(".")[0]
    ours = _defines(opt).__module__.startswith(package)
    return not ours or isinstance(opt, PostProcessOptimizer)
