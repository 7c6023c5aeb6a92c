"""Makes two runs of a program equal bit by bit: fixed seeds and one thread in TensorFlow."""

from typing import Any, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_default_sess_config, get_global_step_var
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


def one_thread(given: Optional[tf.ConfigProto] = None) -> tf.ConfigProto:
    """Returns a session config, the default one or a copy of the given one, with one thread: sums
    of floats depend on their order.
    """
    config = get_default_sess_config()
    if given is not None:
        config.CopyFrom(given)
    config.intra_op_parallelism_threads = 1
    config.inter_op_parallelism_threads = 1
    config.use_per_session_threads = True
    return config


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

    Those that cannot are named in a warning.

    Args:
      train_op: the op, or a tensor of it; anything else is left alone.
      once: whether a step runs it once. Where it may run several times, it has to draw others in
        each run, so all of its random ops are in the warning.
    """
    op = train_op if isinstance(train_op, tf.Operation) else getattr(train_op, "op", None)
    if op is None:
        return
    replaced = draw_by_step(op, get_global_step_var()) if once else []
    names = [random.name for random in random_ops_of(op) if random not in replaced]
    if names:
        logger.warning(
            f"These ops draw random numbers in each step, and TensorFlow does not save where they "
            f"are: {', '.join(names)}. A resumed run draws others. Use tf.random.stateless_* with "
            "the global step as the seed instead."
        )
