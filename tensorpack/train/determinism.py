"""Makes two runs of a program equal bit by bit: fixed seeds and one thread in TensorFlow."""

from typing import Any, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_default_sess_config, get_global_step_var
from tensorpack.tfutils.dependency import ancestors, dependency_of_targets
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.stateless import draw_by_step, random_ops_of
from tensorpack.utils import logger
from tensorpack.utils.rng import SeedTree, is_seeded, streams_state


def check_deterministic(computing: ComputeOptions) -> None:
    """Raises ValueError if the process has no fixed seed, or a step may depend on earlier ones."""
    if not is_seeded():
        raise ValueError(
            "deterministic=True needs a fixed seed: call tensorpack.utils.fix_rng_seed(N) first "
            "thing in the program, before the dataflow is made."
        )
    if computing.xla:
        raise ValueError(
            "deterministic=True excludes xla=True: XLA compiles an op for the shapes that come "
            "first and often, so a resumed run may compute with other code. Leave one of them out."
        )


def one_thread() -> tf.ConfigProto:
    """Returns the default session config with one thread: sums of floats depend on their order."""
    config = get_default_sess_config()
    config.intra_op_parallelism_threads = 1
    config.inter_op_parallelism_threads = 1
    config.use_per_session_threads = True
    return config


def warn_of_threads(config: Optional[tf.ConfigProto]) -> None:
    """Warns if a session config of the user's has more than one thread; None is accepted."""
    if config is None:
        return
    threads = (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads)
    if threads != (1, 1):
        logger.warning(
            f"The session config has (intra_op, inter_op) = {threads} threads, 0 for as many as "
            "there are cores: a deterministic run needs (1, 1)."
        )


def fix_graph_seed(graph: tf.Graph, worker: int = 0) -> None:
    """Gives a graph without a seed the one that follows from `fix_rng_seed`, if that was called.

    The workers of a group, by number, have different ones: else all would drop the same units.
    """
    if is_seeded():
        root = SeedTree(streams_state()["seed"]).child("graph")
        if graph.seed in (None, root.integer()):
            graph.seed = (root.child(worker) if worker else root).integer()


def fix_draws(train_op: Any, once: bool) -> None:
    """Makes the random ops of a step draw by its number, so that a resumed run draws the same.

    Those that cannot are named in a warning, and so is what runs along in no order with the step.

    Args:
      train_op: the op, or a tensor of it; anything else is left alone.
      once: whether a step runs it once. Where it may run several times, it has to draw others in
        each run, so all of its random ops are in the warning.
    """
    op = train_op if isinstance(train_op, tf.Operation) else getattr(train_op, "op", None)
    if op is None:
        return
    replaced = draw_by_step(op, get_global_step_var()) if once else []
    names = [each.name for each in random_ops_of(op) if each not in replaced]
    if names:
        logger.warning(
            f"These ops draw random numbers in each step, and TensorFlow does not save where they "
            f"are: {', '.join(names)}. A resumed run draws others. Use tf.random.stateless_* with "
            "the global step as the seed instead."
        )
    _warn_of_order(op)


def warn_of_unseeded(graph: tf.Graph) -> None:
    """Warns of the random ops that were made before a graph had a seed, initializers above all."""
    drawing = [node for node in graph.as_graph_def().node if "seed2" in node.attr]
    names = [each.name for each in drawing if not each.attr["seed"].i | each.attr["seed2"].i]
    if names:
        logger.warning(
            f"These ops were made before the graph had a seed, and draw others in each run: "
            f"{', '.join(names)}. Call fix_rng_seed(N) and make the trainer before the graph."
        )


def _warn_of_order(step_op: tf.Operation) -> None:
    """Warns of `UPDATE_OPS` that read a variable before or after a step assigns it."""
    step = {*ancestors([step_op])}  # what it needs itself is computed before it assigns
    trained = {each.op for each in tf.trainable_variables()} & step
    names = set()
    for op in {*ancestors(tf.get_collection(tf.GraphKeys.UPDATE_OPS))} - step:
        for each in op.inputs if op.type != "Identity" else ():
            source = each.op.inputs[0].op if each.op.type == "Identity" else each.op
            if source in trained and not dependency_of_targets([op], step_op):
                names.add(source.name)
    if names:
        logger.warning(
            f"UPDATE_OPS read {', '.join(sorted(names))} before or after the step assigns them, so "
            "equal runs differ. Make these ops in a PostProcessOptimizer, which orders them."
        )
