"""Random ops whose numbers follow from the step, instead of a generator that cannot be saved.

An op such as `RandomUniform`, which dropout uses, keeps a generator of its own. TensorFlow neither
shows nor saves where it is, so a resumed run would draw its first numbers again. The ops here draw
by the seed of the op and the number of the step.
"""

from typing import Any, Callable, Dict, List, Set

from tensorpack.compat import replace_input
from tensorpack.compat import tfv1 as tf

from .dependency import ancestors


def random_ops_of(target: tf.Operation) -> List[tf.Operation]:
    """Returns the ops with a generator of their own that run with an op, in the order of names.

    An op that calls a function with such an op in it, as branches are in TensorFlow 2, counts too.
    """
    ops = ancestors([target])
    calls = any(_called_by(op.node_def) for op in ops)
    library = target.graph.as_graph_def().library.function if calls else []
    random = _random_functions({func.signature.name: func.node_def for func in library})
    return sorted((op for op in ops if _is_random(op.node_def, random)), key=lambda op: op.name)


def _is_random(node: Any, random_functions: Set[str]) -> bool:
    return "seed2" in node.attr or not random_functions.isdisjoint(_called_by(node))


def _called_by(node: Any) -> List[str]:
    """Returns the names of the functions that a node calls."""
    values = node.attr.values()
    return [func.name for attr in values for func in [attr.func, *attr.list.func] if func.name]


def _random_functions(nodes: Dict[str, Any]) -> Set[str]:
    """Returns which of some functions draw, by themselves or by calling others."""
    random: Set[str] = set()
    while True:
        more = {
            name
            for name, body in nodes.items()
            if name not in random and any(_is_random(node, random) for node in body)
        }
        if not more:
            return random
        random |= more


def draw_by_step(target: tf.Operation, step: Any) -> List[tf.Operation]:
    """Replaces random ops that run with an op by others whose numbers follow from the step, and
    returns the ones that were replaced.

    All that reads them, gradients and summaries too, reads the new ones; the old ones remain, and
    may run. In one step all runs of the session draw the same numbers. What is in a loop stays,
    since each round draws others; so do branches in TensorFlow 2, and kinds that are not in
    `_KINDS`.

    Args:
      target: a part of a graph that no session has run yet.
      step: an integer tensor or variable: the number of the step.
    """
    replaced = []
    for op in random_ops_of(target):
        if op.type in _KINDS and not _in_loop(op):
            _redirect(op.outputs[0], _by_step(op, step))
            replaced.append(op)
    return replaced


def _by_step(op: tf.Operation, step: Any) -> tf.Tensor:
    # any branch of `tf.cond` may ask for it
    with tf.name_scope(None), tf.control_dependencies(None), tf.device(op.device):
        with tf.name_scope(f"{op.name}_by_step/"):
            key = (op.get_attr("seed") & 0x7FFFFFFF) << 32 | op.get_attr("seed2") & 0xFFFFFFFF
            return _KINDS[op.type](op, tf.stack([key, tf.cast(step, tf.int64)]))


def _redirect(old: tf.Tensor, new: tf.Tensor) -> None:
    for op in old.consumers():
        for index, tensor in enumerate(op.inputs):
            if tensor is old:
                replace_input(op, index, new)


def _in_loop(op: tf.Operation) -> bool:
    """Whether an op is computed from the variables of a loop, without having left it."""
    exits = [out for out in op.graph.get_operations() if out.type in ("Exit", "RefExit")]
    return any(source.type in ("Enter", "RefEnter") for source in ancestors([op], fed=exits))


def _dtype(op: tf.Operation, name: str = "dtype") -> Any:
    return tf.as_dtype(op.get_attr(name))


_KINDS: Dict[str, Callable[[tf.Operation, tf.Tensor], tf.Tensor]] = {
    "Multinomial": lambda op, seed: tf.random.stateless_categorical(
        op.inputs[0], op.inputs[1], seed, _dtype(op, "output_dtype")
    ),
    "RandomStandardNormal": lambda op, seed: tf.random.stateless_normal(
        op.inputs[0], seed, dtype=_dtype(op)
    ),
    "RandomUniform": lambda op, seed: tf.random.stateless_uniform(
        op.inputs[0], seed, dtype=_dtype(op)
    ),
    "RandomUniformInt": lambda op, seed: tf.random.stateless_uniform(
        op.inputs[0], seed, op.inputs[1], op.inputs[2], dtype=_dtype(op, "Tout")
    ),
    "TruncatedNormal": lambda op, seed: tf.random.stateless_truncated_normal(
        op.inputs[0], seed, dtype=_dtype(op)
    ),
}
