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
            "first and often, so a resumed run may compute with other code than one without a "
            "break. Leave one of them out."
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


def fix_graph_seed(graph: tf.Graph) -> None:
    """Gives a graph without a seed the one that follows from `fix_rng_seed`, if that was called."""
    if graph.seed is None and is_seeded():
        graph.seed = SeedTree(streams_state()["seed"]).child("graph").integer()


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
    names = [each.name for each in random_ops_of(op) if each not in replaced]
    if names:
        logger.warning(
            f"These ops draw random numbers in each step, and TensorFlow does not save where they "
            f"are: {', '.join(names)}. A resumed run draws others. Use tf.random.stateless_* with "
            "the global step as the seed instead."
        )
