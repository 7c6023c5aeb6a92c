"""Bridges between callbacks and TensorFlow's own `tf.train.SessionRunHook`, in both directions."""

from typing import Any

from tensorpack.compat import local_cli_debug_hook
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.hooked_session import overrides
from tensorpack.utils.checks import check_kind

from .base import Callback, ProxyCallback

__all__ = [
    "CallbackToHook",
    "HookToCallback",
    "TFLocalCLIDebugHook",
    "effective",
    "sees_runs",
    "sees_steps",
]


class CallbackToHook(tf.train.SessionRunHook):
    """The part of a callback that sees the runs of a session, as a hook: only its `before_run` and
    `after_run` are called.
    """

    def __init__(self, cb: Callback) -> None:
        # Set on the instance, so that a run costs fewer calls; and only what does something, which
        # a `HookedSession` looks at.
        if overrides(Callback, cb, "before_run", "_before_run"):
            self.before_run = effective(cb, "before_run")
        if overrides(Callback, cb, "after_run", "_after_run"):
            self.after_run = effective(cb, "after_run")


class HookToCallback(Callback):
    """Any `tf.train.SessionRunHook` as a callback.

    `begin` is called while the graph is built, `after_create_session` (with None as coordinator)
    before the training, and `end` after it, also where an error ended it.
    """

    _chief_only = False

    def __init__(self, hook: tf.train.SessionRunHook) -> None:
        check_kind("What HookToCallback takes", hook, tf.train.SessionRunHook)
        self._hook = hook
        self._sess: Any = None

    def _setup_graph(self) -> None:
        with tf.name_scope(None):  # as in TensorFlow's own sessions, where hooks have no scope
            self._hook.begin()

    def _before_train(self) -> None:
        self._sess = tf.get_default_session()
        self._hook.after_create_session(self._sess, None)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._hook.before_run(ctx)

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        self._hook.after_run(ctx, run_values)

    def _after_train(self) -> None:
        sess, self._sess = self._sess, None
        if sess is not None:
            self._hook.end(sess)


class TFLocalCLIDebugHook(HookToCallback):
    """Opens TensorFlow's own debugger, tfdbg, at the terminal around each run of a step.

    Its commands are in https://github.com/tensorflow/docs/blob/master/site/en/r1/guide/debugger.md

    It takes the arguments of `LocalCLIDebugHook`, such as `ui_type="readline"`. It is a
    RuntimeError if this TensorFlow has no tfdbg.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(local_cli_debug_hook()(*args, **kwargs))

    def add_tensor_filter(self, *args: Any, **kwargs: Any) -> None:
        """Adds a filter to the debugger, see its `add_tensor_filter(name, function)`."""
        self._hook.add_tensor_filter(*args, **kwargs)


def sees_runs(cb: Callback) -> bool:
    """Tells whether a callback has something to do before or after each run of the session."""
    if isinstance(cb, ProxyCallback):
        return cb.sees_runs and sees_runs(cb.cb)
    return cb.sees_runs and overrides(
        Callback, cb, "before_run", "_before_run", "after_run", "_after_run"
    )


def sees_steps(cb: Callback) -> bool:
    """Tells whether a callback has something to do after each step."""
    if type(cb) is ProxyCallback:
        return sees_steps(cb.cb)
    return overrides(Callback, cb, "trigger_step", "_trigger_step")


def effective(cb: Callback, method: str) -> Any:
    """Returns the bound method that does the work: that with an underscore, where the other one,
    which only calls it, is not overridden.
    """
    work = getattr(cb, f"_{method}")
    # A function that was set on the instance has no frame that tells whose error it was.
    is_method = getattr(work, "__self__", None) is cb
    return work if is_method and not overrides(Callback, cb, method) else getattr(cb, method)
