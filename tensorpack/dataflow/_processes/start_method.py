"""Chooses how worker processes are started, and explains why one cannot be started."""

import functools
import gc
import multiprocessing
import os
import reprlib
import sys
import time
import types
from multiprocessing.reduction import ForkingPickler
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from tensorpack.utils.workers.worker import Worker, state_of

_MOST_LEVELS = 16
_SHORT = reprlib.Repr()
_SHORT.maxother = 200
_AT_REST = ("sleeping", "idle", "disk sleep")
_TASKS, _THIS_TASK = "/proc/self/task", "/proc/thread-self"
# Threads of OpenMP run on for 0.2 seconds when they have nothing to do.
_LOOKS, _LOOKS_IN_A_ROW, _LOOK_SECONDS = 60, 3, 0.005
# Names of the threads of TensorFlow 2; the one that builds graphs is idle between two calls. The
# threads of TensorFlow 1 have no names.
_OF_TENSORFLOW, _OF_A_GRAPH = "tf_", "tf_graph_runner"
_SESSIONS = "tensorflow.python.client.session"


class Unpicklable(NamedTuple):
    """What cannot be pickled: its path, such as `ds.ds.func`, the object, and the error."""

    path: str
    value: Any
    reason: str


def choose_start_method(wanted: Optional[str] = None) -> str:
    """Returns how to start a process here and now, or `wanted`, which must exist on this system.

    "fork" is quick and takes everything along, but a forked process may wait for ever for a lock
    that some thread held in the moment of the fork. So it is taken only while all other threads
    sleep or wait, such as those of progress bars, notebooks and idle pools, and there is no
    TensorFlow session, and "forkserver" otherwise.
    """
    methods = multiprocessing.get_all_start_methods()
    if wanted is not None:
        if wanted not in methods:
            raise ValueError(
                f"start_method is one of {', '.join(methods)}, or None, but got {wanted!r}."
            )
        return wanted
    if "fork" not in methods:
        return "spawn"
    return "forkserver" if _has_session() or not _others_are_at_rest() else "fork"


def is_worker() -> bool:
    """Returns whether this process may not have processes of its own, being daemonic."""
    return multiprocessing.current_process().daemon


def start(worker: Worker, method: str, name: str, sent: Any) -> None:
    """Starts a worker, which gets an object of the user, `sent`, called `name` in messages.

    Raises RuntimeError if this process is still becoming a worker itself, and TypeError if `sent`
    cannot be pickled, which all methods but "fork" need; it names the part.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(  # in place of multiprocessing, whose message does not name the cause
            f"{worker.name} was to be started by a worker process that has not begun yet: it "
            "imports the script of the program again, and the script does there what the program "
            "does. Put everything that the script does below `if __name__ == '__main__':`, so "
            "that only imports, functions and classes are above that line."
        )
    try:
        worker.start()
    except Exception as error:
        found = None if method == "fork" else find_unpicklable(sent, name)
        if found is None:
            raise
        raise TypeError(
            f"{found.path} cannot be sent to a process that is started by {method!r}: "
            f"{found.reason}. It is {_SHORT.repr(found.value)}. Use a function or class that is "
            "defined at the top of a module. Or have the processes forked: start them before there "
            "are other threads and a TensorFlow session, by start_processes(), or give "
            "start_method='fork'."
        ) from error


def find_unpicklable(obj: Any, path: str, above: Tuple[int, ...] = ()) -> Optional[Unpicklable]:
    """Returns the innermost part of `obj`, called `path`, that cannot be pickled.

    `above` are the ids of the objects that it is a part of.
    """
    try:
        ForkingPickler.dumps(obj)
        return None
    except Exception as error:
        found = Unpicklable(path, obj, f"{type(error).__name__}: {error}")
    if id(obj) in above or len(above) > _MOST_LEVELS:
        return found
    for step, part in _parts(obj):
        inner = find_unpicklable(part, path + step, (*above, id(obj)))
        if inner is not None:
            return inner
    return found


def _parts(obj: Any) -> Iterator[Tuple[str, Any]]:
    """Yields the parts of an object, each with its step in the path."""
    if isinstance(obj, dict):
        yield from ((f"[{key!r}]", part) for key, part in obj.items())
    elif isinstance(obj, (list, tuple, set, frozenset)):
        yield from ((f"[{index}]", part) for index, part in enumerate(obj))
    elif isinstance(obj, functools.partial):
        yield from ((".func", obj.func), (".args", obj.args), (".keywords", obj.keywords))
    elif isinstance(obj, types.MethodType):
        yield ".__self__", obj.__self__
    elif not isinstance(obj, (type, types.FunctionType, types.ModuleType)):
        yield from ((f".{name}", part) for name, part in _attributes(obj).items())


def _attributes(obj: Any) -> Dict[str, Any]:
    """The attributes of an object that are pickled with it."""
    try:
        reduced = obj.__reduce_ex__(4)
    except Exception:  # it is this object that cannot be pickled, not a part of it
        return {}
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    parts = state if isinstance(state, tuple) else (state,)  # of __dict__ and of __slots__
    return {
        str(name): part for each in parts if isinstance(each, dict) for name, part in each.items()
    }


def _others_are_at_rest() -> bool:
    """Whether Python has no other thread, or all threads sleep or wait in several looks in a row.

    One that works may hold any lock at any moment, also of numpy or logging. One that waits seldom
    holds one that a child needs; to search its frames for locks finds few of them, and wrong ones.
    """
    own, in_a_row = os.path.basename(os.readlink(_THIS_TASK)), 0
    for _ in range(_LOOKS):
        if len(sys._current_frames()) == 1:
            return True
        others = {*os.listdir(_TASKS)} - {own}
        at_rest = all(state_of(int(task)) in _AT_REST for task in others)
        in_a_row = in_a_row + 1 if at_rest else 0
        if in_a_row == _LOOKS_IN_A_ROW:
            return True
        time.sleep(_LOOK_SECONDS)
    return False


def _has_session() -> bool:
    """Whether TensorFlow runs threads for sessions in this process."""
    try:
        names = {_name_of(task) for task in os.listdir(_TASKS)}
    except OSError:  # not Linux; where there is "fork" there may be sessions
        return True
    ours = {name for name in names if name.startswith(_OF_TENSORFLOW)}
    if ours:
        return ours != {_OF_A_GRAPH}
    module = sys.modules.get(_SESSIONS)
    if module is None:
        return False
    return any(issubclass(type(each), module.BaseSession) for each in gc.get_objects())


def _name_of(task: str) -> str:
    try:
        with open(os.path.join(_TASKS, task, "comm"), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:  # it has ended meanwhile
        return ""
