"""A session whose every run is seen by hooks, at little more than the cost of a prebuilt call.

It has the interface of `tf.train.MonitoredSession` (`run`, `should_stop`, `close`, `graph`) and
calls ordinary `tf.train.SessionRunHook` objects, but it never re-creates a session, and it prepares
each set of fetches and feeds once.
"""

from collections import OrderedDict
from operator import is_
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf

from .common import get_op_or_tensor_by_name
from .prepared import pick, prepare

_MAX_PLANS = 32  # distinct sets of fetches and feeds that are kept prepared
_STRUCTURES = (dict, list, str, tuple)  # compared by what is in them, all others by their ids

# Looked up once: in each run it would cost more than what they do.
_Args = tf.train.SessionRunArgs
_Context = tf.train.SessionRunContext
_Values = tf.train.SessionRunValues

_NOTHING_ASKED = _Args(None)
_NOTHING = _Values(None, None, None)
_CLOSED = "This session has been closed: nothing can be run after the training."


class CheckedFeed(Dict[tf.Tensor, Any]):
    """A feed of arrays that a `FedInput` has returned, which are fed without another check.

    A hook may ask for the same one again, with other arrays for the same tensors.
    """


class _Plan(NamedTuple):
    """How one set of fetches and feeds is run.

    Attributes:
      call, call_checked: see `Prepared`; None if `Session.run` has to do it.
      where: where the values are that the caller wants, see `pick`.
      after: `after_run` of each hook, and where the values are for it.
      alive: the fetched and fed objects, so that their ids stay theirs.
      asked, requests, feed: what the caller and the hooks ask for, if that cannot change inside.
    """

    call: Optional[Callable[..., List[Any]]]
    call_checked: Any
    where: Any
    after: List[Tuple[Callable[..., None], Any]]
    alive: Any
    asked: Any = None
    requests: Sequence[Any] = ()
    feed: CheckedFeed = CheckedFeed()


_NO_PLAN = _Plan(None, None, None, [], None)


def as_request(request: Any) -> tf.train.SessionRunArgs:
    """Returns what a hook asks for as `SessionRunArgs`; names in a list or tuple are looked up."""
    if isinstance(request, _Args):
        return request
    if type(request) in (list, tuple) and any(isinstance(part, str) for part in request):
        find = get_op_or_tensor_by_name
        request = [find(part) if isinstance(part, str) else part for part in request]
    return _Args(request)


class HookedSession:
    """Runs a session with hooks around each run.

    Args:
      sess: the session; closed by `close`.
      hooks: their `before_run` may return all that `Callback._before_run` may.
      run_along: called with the session and a list of all that the caller and the hooks fetch, when
        a kind of run is prepared; returns ops that must run in each run of that kind.

    Attributes:
      session, graph: the plain session underneath, and its graph.
      hook_error: the error of the last run that a hook raised, and not the run itself.
    """

    def __init__(
        self,
        sess: tf.Session,
        hooks: Sequence[tf.train.SessionRunHook] = (),
        run_along: Callable[[tf.Session, List[Any]], List[tf.Operation]] = lambda sess, fetches: [],
    ) -> None:
        self.session, self.graph, self._run_along = sess, sess.graph, run_along
        self._plain_run = sess.run  # that of a trainer warns of runs from elsewhere
        self._before: List[Callable[[Any], Any]] = []
        # `after_run`, and the place of the same hook's request behind the caller's, if it makes any
        self._after: List[Tuple[Callable[..., None], Optional[int]]] = []
        for hook in hooks:
            asks = overrides(tf.train.SessionRunHook, hook, "before_run")
            if asks:
                self._before.append(hook.before_run)
            if overrides(tf.train.SessionRunHook, hook, "after_run"):
                self._after.append((hook.after_run, len(self._before) if asks else None))
        self._plans: OrderedDict[Hashable, _Plan] = OrderedDict()
        self._asked = _NOTHING_ASKED  # by the caller of the last run
        self._latest = _NO_PLAN
        self.hook_error: Optional[BaseException] = None
        self._stop_requested = self._closed = False

    def should_stop(self) -> bool:
        """Whether a hook has asked for the end, or the session is closed."""
        return self._stop_requested or self._closed

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Returns the values of `fetches`; runs what the hooks ask for along with it."""
        if self._closed:
            raise RuntimeError(_CLOSED)
        asked = self._asked
        if asked.fetches is not fetches or asked.feed_dict is not feed_dict:
            self._asked = asked = _Args(fetches, feed_dict)
        context = _Context(asked, self.session)
        try:
            requests = [before_run(context) for before_run in self._before]
        except BaseException as error:
            self.hook_error = error
            raise
        plan = self._latest
        is_same = asked is plan.asked and all(map(is_, requests, plan.requests))
        if plan.call is None or not is_same or options is not None or run_metadata is not None:
            return self._run_other(context, requests, options, run_metadata)
        values = plan.call(*plan.feed.values())
        self._finish(context, plan.after, values, _NOTHING)
        return None if plan.where is None else pick(values, plan.where)

    def _run_other(self, context: Any, requests: List[Any], options: Any, metadata: Any) -> Any:
        """Runs what is not the same as in the run before."""
        asked = context.original_args
        feeds, every_option = asked.feed_dict, [] if options is None else [options]
        structures = [asked.fetches]
        for request in requests:
            if request is None:
                request = _NOTHING_ASKED
            elif type(request) is not _Args:
                request = as_request(request)
            wanted, fed, wanted_options = request
            structures.append(wanted)
            if fed is not None:
                feeds = fed if feeds is None else _merge_feeds(feeds, fed)
            if wanted_options is not None:
                every_option.append(wanted_options)
        if every_option or metadata is not None:
            return self._run_by_session(context, structures, feeds, every_option, metadata)
        key = [_key(x) if isinstance(x, _STRUCTURES) else id(x) for x in structures]
        identity = (*key, *map(id, feeds or ()))
        plan = self._plans.get(identity) or self._prepare(identity, structures, feeds)
        if plan.call is None:
            return self._run_by_session(context, structures, feeds, [], None)
        call = plan.call
        if feeds is None or type(feeds) is CheckedFeed:
            call = plan.call_checked
            # what a list or a dictionary holds may change
            if not any(isinstance(x, _STRUCTURES) for x in structures):
                feed = feeds or plan.feed
                self._latest = plan._replace(asked=asked, requests=requests, call=call, feed=feed)
        values = call(*(feeds or {}).values())
        self._finish(context, plan.after, values, _NOTHING)
        return None if plan.where is None else pick(values, plan.where)

    def run_unseen(self, fetches: Any) -> Any:
        """Runs `fetches` unseen by the hooks, with what must run along; returns their values."""
        if self._closed:
            raise RuntimeError(_CLOSED)
        return self._plain_run([fetches, self._run_along(self.session, [fetches])])[0]

    def _prepare(self, key: Hashable, structures: List[Any], feeds: Any) -> _Plan:
        fed = list(feeds) if feeds else []
        plan = _NO_PLAN._replace(alive=(_leaves(structures), fed))
        if all(isinstance(tensor, (str, tf.Tensor)) for tensor in fed):  # and no SparseTensor
            tensors = [self.graph.as_graph_element(tensor, allow_operation=False) for tensor in fed]
            places, fetches = self._fetches(structures)
            call, where, call_checked = prepare(self.session, fetches, tensors)
            after = self._after_run(dict(zip(places, where)))
            plan = _Plan(call, call_checked, where[0], after, plan.alive)
        self._plans[key] = plan
        if len(self._plans) > _MAX_PLANS:
            self._plans.popitem(last=False)
        return plan

    def _run_by_session(
        self, context: Any, structures: List[Any], feeds: Any, options: List[Any], metadata: Any
    ) -> Any:
        metadata = tf.RunMetadata() if metadata is None else metadata
        merged = _merge_options(options)
        places, fetches = self._fetches(structures)
        values = self._plain_run(fetches, feeds, merged, metadata)
        after = self._after_run({place: i for i, place in enumerate(places)})
        self._finish(context, after, values, _Values(None, merged, metadata))
        return values[0]

    def _fetches(self, structures: List[Any]) -> Tuple[List[int], List[Any]]:
        """Returns the places of what is to be computed, which a hook's None is not, and that, with
        what runs along behind it.
        """
        places = [i for i, wanted in enumerate(structures) if i == 0 or wanted is not None]
        along = self._run_along(self.session, structures)
        return places, [*(structures[i] for i in places), *along]

    def _after_run(self, where: Dict[int, Any]) -> List[Tuple[Callable[..., None], Any]]:
        return [(after, None if i is None else where.get(i)) for after, i in self._after]

    def _finish(self, context: Any, after: Any, values: List[Any], nothing: Any) -> None:
        """Shows the hooks what they have asked for."""
        try:
            for after_run, where in after:
                if where is None:
                    after_run(context, nothing)
                else:
                    results = values[where] if type(where) is int else pick(values, where)
                    after_run(context, _Values(results, nothing.options, nothing.run_metadata))
        except BaseException as error:
            self.hook_error = error
            raise
        if context.stop_requested:
            self._stop_requested = True

    def close(self) -> None:
        """Closes the session. May be called again."""
        self._closed = True
        self._plans.clear()
        self._latest = _NO_PLAN
        self.session.close()


def overrides(base: type, instance: Any, *methods: str) -> bool:
    """Returns whether the class or the instance itself overrides any of these methods of a base."""
    for name in methods:
        if getattr(getattr(instance, name), "__func__", None) is not getattr(base, name):
            return True
    return False


def _merge_feeds(feeds: Dict[Any, Any], more: Dict[Any, Any]) -> Dict[Any, Any]:
    twice = [tensor for tensor in more if tensor in feeds]
    if twice:
        raise RuntimeError(f"Two parts of this run feed {twice[0]}: only one of them can be right.")
    return {**feeds, **more}


def _key(fetches: Any) -> Hashable:
    """What identifies a structure of fetches: its form, and the objects at its leaves."""
    if isinstance(fetches, dict):
        return (dict, *fetches, *map(_key, fetches.values()))
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(_key, fetches))
    return fetches if isinstance(fetches, str) else id(fetches)


def _leaves(fetches: Any) -> List[Any]:
    if not isinstance(fetches, (dict, list, tuple)):
        return [fetches]
    parts = fetches.values() if isinstance(fetches, dict) else fetches
    return [leaf for part in parts for leaf in _leaves(part)]


def _merge_options(options: List[Any]) -> Any:
    """Returns run options that satisfy the caller and all hooks, or None if there are none."""
    if not options:
        return None
    merged = tf.RunOptions()
    for wanted in options:
        trace_level = max(merged.trace_level, wanted.trace_level)
        timeouts = [t for t in (merged.timeout_in_ms, wanted.timeout_in_ms) if t > 0]
        merged.MergeFrom(wanted)
        merged.trace_level = trace_level
        merged.timeout_in_ms = min(timeouts) if timeouts else 0
    return merged
