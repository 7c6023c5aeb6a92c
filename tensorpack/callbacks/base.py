"""The public address of the callback contract, and callbacks made from a callback or functions."""

from functools import partial
from typing import Any, Callable, Dict, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.utils.checks import check_kind

__all__ = ["Callback", "CallbackFactory", "ProxyCallback", "Triggerable", "innermost"]

Triggerable = Callback  # the name of 2017 for a callback that is scheduled by another one


class ProxyCallback(Callback):
    """Does everything as the callback inside of it, the attribute `cb`; a base for those that
    change a little of it. The ops of that callback are added under the name scope of the proxy.
    """

    def __init__(self, cb: Callback) -> None:
        self.cb = check_kind(f"What {type(self).__name__} wraps", cb, Callback)

    def _setup_graph(self) -> None:
        self.cb.setup_graph(self.trainer)

    def _before_train(self) -> None:
        self.cb.before_train()

    def check_over(self) -> None:
        self.cb.check_over()

    def _before_epoch(self) -> None:
        self.cb.before_epoch()

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self.cb.before_run(ctx)

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        self.cb.after_run(ctx, run_values)

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        return self.cb.run_along(sess, fetches)

    def _trigger_step(self) -> None:
        self.cb.trigger_step()

    def _after_epoch(self) -> None:
        self.cb.after_epoch()

    def _trigger_epoch(self) -> None:
        self.cb.trigger_epoch()

    def _trigger(self) -> None:
        self.cb.trigger()

    def _after_train(self) -> None:
        self.cb.after_train()

    def state_dict(self) -> Dict[str, Any]:
        return self.cb.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.cb.load_state_dict(state)

    @property
    def chief_only(self) -> bool:
        return self.cb.chief_only

    @chief_only.setter
    def chief_only(self, value: bool) -> None:
        self.cb.chief_only = value

    sets_up_last = property(lambda self: self.cb.sets_up_last)  # type: ignore[assignment]
    sees_runs = property(lambda self: self.cb.sees_runs)  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{type(self).__name__}-{self.cb}"


def innermost(cb: Callback) -> Callback:
    """Returns what is inside of all proxies, the callback itself if it is none."""
    return innermost(cb.cb) if isinstance(cb, ProxyCallback) else cb


_Hook = Optional[Callable[[Callback], Any]]


class CallbackFactory(Callback):
    """Makes a callback of functions, each called with the callback itself when the method of its
    name is called, see `Callback`. With `trigger_epoch`, an epoch does not call `trigger`.
    """

    def __init__(
        self,
        setup_graph: _Hook = None,
        before_train: _Hook = None,
        trigger: _Hook = None,
        after_train: _Hook = None,
        trigger_epoch: _Hook = None,
    ) -> None:
        hooks = {
            "_setup_graph": setup_graph,
            "_before_train": before_train,
            "_trigger": trigger,
            "_after_train": after_train,
            "_trigger_epoch": trigger_epoch,
        }
        for name, function in hooks.items():
            if function is not None:
                setattr(self, name, partial(function, self))
