"""A session whose every run is seen by hooks, at little more than the cost of a prebuilt call.

It has the interface of `tf.train.MonitoredSession` (`run`, `should_stop`, `close`, `graph`) and
calls ordinary `tf.train.SessionRunHook` objects, but it never re-creates a session, and a run whose
fetches and feeds were seen before goes through a `Session.make_callable` made then.
"""

from collections import OrderedDict
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf

__all__ = ["HookedSession"]

_MAX_PLANS = 32  # distinct sets of fetches and feeds that are kept prepared


class _Plan(NamedTuple):
    call: Callable[..., List[Any]]  # takes one array for each fed tensor
    feed_dtypes: List[Any]
    kept: Any  # fetches and feeds, referenced so that their ids stay theirs


class _Request(NamedTuple):
    hook_index: Optional[int]  # None: what the caller of run() wants
    fetches: Any


class HookedSession:
    """Runs a session with hooks around each run.

    Args:
      sess: the session; closed by `close`.
      hooks: called in this order, before and after each run.
    """

    def __init__(self, sess: tf.Session, hooks: Sequence[tf.train.SessionRunHook] = ()) -> None:
        self._sess = sess
        self._hooks = list(hooks)
        self._plans: OrderedDict[Hashable, _Plan] = OrderedDict()
        self._stop_requested = False
        self._closed = False

    @property
    def graph(self) -> tf.Graph:
        """The graph of the session."""
        return self._sess.graph

    @property
    def session(self) -> tf.Session:
        """The plain session underneath."""
        return self._sess

    def should_stop(self) -> bool:
        """Whether a hook has asked for the end, or the session is closed."""
        return self._stop_requested or self._closed

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs `fetches` together with what the hooks ask for; returns the values of `fetches`
        alone.

        Raises:
          RuntimeError: the session was closed, or two of the caller and the hooks feed the same
            tensor.
        """
        if self._closed:
            raise RuntimeError(
                "This session has been closed: nothing can be run after the training."
            )
        own = tf.train.SessionRunArgs(fetches, feed_dict)
        context = tf.train.SessionRunContext(original_args=own, session=self._sess)
        asked = [hook.before_run(context) for hook in self._hooks]
        requests = [_Request(None, fetches)]
        requests += [
            _Request(i, args.fetches)
            for i, args in enumerate(asked)
            if args and args.fetches is not None
        ]
        feeds = self._merge_feeds(feed_dict, asked)
        options = _merge_options(options, asked)
        if options is None and run_metadata is None:
            values, metadata = self._call(requests, feeds), None
        else:
            metadata = tf.RunMetadata() if run_metadata is None else run_metadata
            values = self._sess.run([each.fetches for each in requests], feeds, options, metadata)
        self._tell_hooks(context, requests, values, options, metadata)
        return values[0]

    def _tell_hooks(
        self, context: Any, requests: List[_Request], values: List[Any], options: Any, metadata: Any
    ) -> None:
        results = {request.hook_index: value for request, value in zip(requests, values)}
        for i, hook in enumerate(self._hooks):
            hook.after_run(context, tf.train.SessionRunValues(results.get(i), options, metadata))
        self._stop_requested = self._stop_requested or context.stop_requested

    def _merge_feeds(self, feed_dict: Any, asked: Sequence[Any]) -> Dict[Any, Any]:
        feeds = dict(feed_dict) if feed_dict else {}
        for args in asked:
            if args is None or not args.feed_dict:
                continue
            for tensor, value in args.feed_dict.items():
                if tensor in feeds:
                    raise RuntimeError(
                        f"Two parts of this run feed {tensor}: only one of them can be right."
                    )
                feeds[tensor] = value
        return feeds

    def _call(self, requests: List[_Request], feeds: Dict[Any, Any]) -> List[Any]:
        fed = list(feeds)
        key = (
            tuple([_identity(each.fetches) for each in requests]),
            tuple([id(each) for each in fed]),
        )
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._prepare(requests, fed)
            if len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        if not fed:
            return plan.call()
        return plan.call(
            *[np.asarray(feeds[each], dtype=t) for each, t in zip(fed, plan.feed_dtypes)]
        )

    def _prepare(self, requests: List[_Request], fed: List[Any]) -> _Plan:
        fetches = [each.fetches for each in requests]
        tensors = [self.graph.as_graph_element(each, allow_operation=False) for each in fed]
        dtypes = [each.dtype.as_numpy_dtype for each in tensors]
        return _Plan(self._callable(fetches, tensors), dtypes, (_leaves(fetches), fed))

    def _callable(self, fetches: List[Any], fed: List[tf.Tensor]) -> Callable[..., List[Any]]:
        if not _leaves(fetches):  # a callable that computes nothing cannot be made
            return lambda *arrays: fetches
        # an empty list, unlike None, would take the slow way through Session.run
        return self._sess.make_callable(fetches, feed_list=fed or None)

    def close(self) -> None:
        """Closes the session. May be called again."""
        self._closed = True
        self._plans.clear()
        self._sess.close()


def _identity(fetches: Any) -> Hashable:
    """What tells one structure of fetches from another: its shape, and which objects are at its
    leaves.
    """
    if isinstance(fetches, dict):
        return ("dict",) + tuple([(name, _identity(each)) for name, each in fetches.items()])
    if isinstance(fetches, (list, tuple)):
        return (type(fetches),) + tuple([_identity(each) for each in fetches])
    return fetches if isinstance(fetches, str) else id(fetches)


def _leaves(fetches: Any) -> Tuple[Any, ...]:
    if isinstance(fetches, dict):
        return tuple(leaf for each in fetches.values() for leaf in _leaves(each))
    if isinstance(fetches, (list, tuple)):
        return tuple(leaf for each in fetches for leaf in _leaves(each))
    return (fetches,)


def _merge_options(options: Any, asked: Sequence[Any]) -> Any:
    """Returns run options that satisfy everyone, or None if nobody has any."""
    wanted = [args.options for args in asked if args is not None and args.options is not None]
    if options is not None:
        wanted.insert(0, options)
    if not wanted:
        return None
    merged = tf.RunOptions()
    for each in wanted:
        trace_level = max(merged.trace_level, each.trace_level)
        timeouts = [t for t in (merged.timeout_in_ms, each.timeout_in_ms) if t > 0]
        merged.MergeFrom(each)
        merged.trace_level = trace_level
        merged.timeout_in_ms = min(timeouts) if timeouts else 0
    return merged
