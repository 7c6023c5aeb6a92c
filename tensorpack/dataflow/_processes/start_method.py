"""Chooses how worker processes are started, and explains why one cannot be started."""

import gc
import glob
import multiprocessing
import os
import sys
import time
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import Any, Dict, Optional, Tuple

from tensorpack.utils.workers.worker import Worker, state_of

_IDLE = ("sleeping", "idle", "disk sleep")
_TASKS = "/proc/self/task"
# Threads of OpenMP run on for 0.2 seconds when they have nothing to do.
_LOOKS, _LOOKS_IN_A_ROW, _LOOK_SECONDS = 60, 3, 0.005


def choose_start_method(wanted: Optional[str] = None) -> str:
    """Returns `wanted`, or how to start a process here and now.

    "fork" is quick and takes everything along, but a forked process may wait for ever for a lock
    that some thread held in the moment of the fork. So it is taken only while all other threads
    sleep or wait, such as those of progress bars, notebooks and idle pools, and there is no
    TensorFlow session, and "forkserver" otherwise.
    """
    if wanted is not None:
        return wanted
    if "fork" not in multiprocessing.get_all_start_methods():
        return "spawn"
    return "forkserver" if _has_session() or not _threads_are_idle() else "fork"


def is_worker() -> bool:
    """Returns whether this process may not have processes of its own, being daemonic."""
    return multiprocessing.current_process().daemon


def start(worker: Worker, method: str, name: str, sent: Any) -> None:
    """Starts a worker, which gets an object of the user, `sent`, called `name` in messages.

    Raises TypeError if `sent` cannot be pickled, which all methods but "fork" need; it names the
    part.
    """
    try:
        worker.start()
    except Exception as error:
        part = None if method == "fork" else find_unpicklable(sent, name)
        if part is None:
            raise
        path, value, reason = part
        raise TypeError(
            f"{path} cannot be sent to a process that is started by {method!r}: "
            f"{reason}. It is {value!r:.200}. Use a function or class that is "
            "defined at the top of a module. Or have the processes forked: start them before there "
            "are other threads and a TensorFlow session, by start_processes(), or give "
            "start_method='fork'."
        ) from error


def find_unpicklable(obj: Any, path: str, depth: int = 9) -> Optional[Tuple[str, Any, str]]:
    """Returns the innermost part of `obj`, called `path`, that cannot be pickled and has a name:
    its path, such as `ds.ds.func`, the part, and the error.
    """
    try:
        ForkingPickler.dumps(obj)
    except Exception as error:
        for name, part in (_parts(obj, path) if depth else {}).items():
            innermost = find_unpicklable(part, name, depth - 1)
            if innermost is not None:
                return innermost
        return path, obj, f"{type(error).__name__}: {error}"
    return None


def _parts(obj: Any, path: str) -> Dict[str, Any]:
    """Returns what is pickled of a container or an object, by its path."""
    if isinstance(obj, (list, tuple)):
        return {f"{path}[{index}]": part for index, part in enumerate(obj)}
    if isinstance(obj, dict):
        return {f"{path}[{key!r}]": part for key, part in obj.items()}
    try:
        return {f"{path}.{name}": part for name, part in obj.__reduce_ex__(4)[2].items()}
    except Exception:  # it has no such state, or it is this object that cannot be pickled
        return {}


def _threads_are_idle() -> bool:
    """Whether Python has no other thread, or all threads sleep or wait in several looks in a row.

    One that works may hold any lock at any moment, also of numpy or logging. One that waits seldom
    holds one that a child needs; to search its frames for locks finds few of them, and wrong ones.
    """
    this, in_a_row = os.path.basename(os.readlink("/proc/thread-self")), 0
    for _ in range(_LOOKS):
        if len(sys._current_frames()) == 1:
            return True
        tasks = {*os.listdir(_TASKS)} - {this}
        idle = all(state_of(int(task)) in _IDLE for task in tasks)
        in_a_row = in_a_row + 1 if idle else 0
        if in_a_row == _LOOKS_IN_A_ROW:
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _has_session() -> bool:
    """Whether TensorFlow runs threads for sessions in this process."""
    names = set()
    for path in glob.glob(f"{_TASKS}/*/comm"):
        with suppress(OSError), open(path, errors="replace") as file:  # it may have ended meanwhile
            names.add(file.read().strip())
    if not names:  # not Linux; where there is "fork" there may be sessions
        return True
    # Those of TensorFlow 2; its `tf_graph_runner` is idle between two calls.
    names = {name for name in names if name.startswith("tf_")}
    if names:
        return names != {"tf_graph_runner"}
    # The threads of TensorFlow 1 have no names.
    module = sys.modules.get("tensorflow.python.client.session")
    return module is not None and any(
        issubclass(type(obj), module.BaseSession) for obj in gc.get_objects()
    )
