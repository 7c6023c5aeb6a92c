"""Warns of a run by the plain session that takes a batch of the input from the step."""

from functools import lru_cache
from typing import Any, Callable, FrozenSet, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .dependency import ancestors, ops_of_fetches
from .sesscreate import BLOCKING_OPS


def warn_of_taking(sess: Any, inputs: Sequence[tf.Tensor], in_step: Callable[[], bool]) -> None:
    """Makes `sess.run`, and so `eval()`, warn before it takes a batch for these inputs.

    Each set of fetches is looked at once. A run with a refill of a `StagingInput` is its own.

    Args:
      in_step: returns whether a step runs, which may read a queue by `sess.run` itself.
    """
    sources = {op for op in ancestors(inputs) if op.type in BLOCKING_OPS}
    if not sources:
        return
    run_unwatched = sess.run

    @lru_cache(maxsize=None)
    def look(ops: FrozenSet[tf.Operation], fed: FrozenSet[tf.Operation], stepping: bool) -> None:
        run = set(ancestors(ops, fed)).difference(fed)
        taken = [op for op in sources & run if op.type == "Unstage" or not stepping]
        if taken and not any(op.type == "Stage" for op in run):
            logger.warning(
                f"A run of {', '.join(sorted(op.name for op in ops)[:3])} by trainer.sess.run() or "
                "eval() takes a batch from the input that is not that of the step, and may wait "
                "for it for ever. Return the tensors from _before_run() of a callback, which gets "
                "their values in the step; or call trainer.hooked_sess.run() for another batch."
            )

    def run(fetches: Any, feed_dict: Any = None, *args: Any, **options: Any) -> Any:
        try:
            ops = frozenset(ops_of_fetches(fetches, sess.graph))
            fed = frozenset(ops_of_fetches(list(feed_dict), sess.graph) if feed_dict else ())
        except (KeyError, TypeError, ValueError):
            pass  # it refuses them, or knows more kinds of them
        else:
            look(ops, fed, in_step())
        return run_unwatched(fetches, feed_dict, *args, **options)

    sess.run = run
