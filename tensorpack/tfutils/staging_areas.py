"""Ends waits for an element of a staging area.

An `Unstage` that waits hears neither of a cancelled run nor of a session that is closed: only an
element wakes it. An element with one component more than it has outputs makes it fail, so that the
run it belongs to fails, too, and computes nothing from data that is none.
"""

import threading
from collections import Counter
from typing import List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .prepared import prepare

__all__ = ["StagingControl", "StagingWatch", "all_staging_areas", "is_woken"]

_MISMATCH = "Mismatch stage/unstage"  # what TensorFlow says of such an element
_POLL_SECONDS = 0.025
_LOOKS = 20  # that find an area empty one after the other: no element is on its way to it


class StagingControl:
    """Ends the waits of one op. Adds ops to the graph, so it is made before that is finalised.

    Args:
      unstage: the `Unstage` op, of an area without limits: elsewhere an element may have to wait
        itself.
    """

    def __init__(self, unstage: tf.Operation) -> None:
        count = len(unstage.outputs) + 1
        with tf.name_scope(unstage.name + "_control"), tf.control_dependencies(None):
            with tf.device("/cpu:0"):
                nothing = tf.zeros([0])
            with tf.colocate_with(unstage, ignore_existing=True):  # each device has its own area
                area = {each: unstage.get_attr(each) for each in ("container", "shared_name")}
                self._wake = tf.raw_ops.Stage(values=[nothing] * count, **area)
                dtypes = unstage.get_attr("dtypes")
                self._size = tf.raw_ops.StageSize(dtypes=dtypes, **area)

    def is_empty(self, sess: tf.Session) -> bool:
        """Whether the area has no element, so that there may be someone who waits for one."""
        # In this thread: those of the session may be taken by those who wait.
        return bool(prepare(sess, [self._size], in_caller=True).call()[0] == 0)

    def wake(self, sess: tf.Session) -> None:
        """Lets whoever waits fail; returns at once. For when nobody should be waiting any more:
        those who come later find such an element, too, behind the batches that are there.
        """
        put = prepare(sess, [self._wake], in_caller=True).call
        for _ in range(threading.active_count()):  # each waits for one at most
            put()


class StagingWatch:
    """Wakes those who wait for areas that stay empty, in a run that is to end.

    Areas that are used are empty for moments only; to those nothing is done, for a step that has
    begun may have several runs to come.

    Args:
      areas: to be watched.
    """

    def __init__(self, areas: Sequence[StagingControl]) -> None:
        self._areas = areas
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="StagingWatch", daemon=True)

    def start(self, sess: tf.Session) -> None:
        """Begins to watch, on a thread of its own; does nothing if there are no areas."""
        self._sess = sess
        if self._areas:
            self._thread.start()

    def stop(self) -> None:
        """Ends that; also if it begins only later."""
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        found: Counter = Counter()  # how often each area was found empty, up to now
        try:
            while not self._done.wait(_POLL_SECONDS):
                for area in self._areas:
                    found[area] = found[area] + 1 if area.is_empty(self._sess) else 0
                    if found[area] == _LOOKS:
                        area.wake(self._sess)
        except (RuntimeError, tf.errors.CancelledError):
            pass  # somebody closed the session: nobody waits in it any more
        except Exception:
            logger.exception("Could not wake those who wait for a staging area.")


def is_woken(error: BaseException) -> bool:
    """Whether this is the error of a run that `StagingControl.wake` has ended."""
    return isinstance(error, tf.errors.InvalidArgumentError) and _MISMATCH in str(error)


def all_staging_areas(graph: tf.Graph) -> List[StagingControl]:
    """Returns a control for each staging area without limits that the graph takes elements from."""
    ops = [op for op in graph.get_operations() if op.type == "Unstage"]
    free = [op for op in ops if not op.get_attr("capacity") and not op.get_attr("memory_limit")]
    with graph.as_default():
        return [StagingControl(op) for op in free]
