"""A session whose every run is seen by hooks, at little more than the cost of a prebuilt call.

It has the interface of `tf.train.MonitoredSession` (`run`, `should_stop`, `close`, `graph`) and
calls ordinary `tf.train.SessionRunHook` objects, but it never re-creates a session, and it prepares
each set of fetches and feeds once.
"""

from collections import OrderedDict
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf

from .prepared import pick, prepare

_MAX_PLANS = 32  # distinct sets of fetches and feeds that are kept prepared

# Looked up once: in each run it would cost more than what they do.
_Args = tf.train.SessionRunArgs
_Context = tf.train.SessionRunContext
_Values = tf.train.SessionRunValues
_Hook = tf.train.SessionRunHook

_NOTHING = _Values(None, None, None)

_CLOSED = "This session has been closed: nothing can be run after the training."


class _Plan(NamedTuple):
    call: Callable[..., List[Any]]  # takes what each fed tensor gets
    own: Any  # where the values are that the caller wants
    told: List[Tuple[Callable[..., None], Any]]  # `after_run`, and where the values are for it
    kept: Any  # fetches and feeds, referenced so that their ids stay theirs
    mutable: Sequence[Tuple[Any, Hashable]] = ()  # structures that may change, and what they were


class HookedSession:
    """Runs a session with hooks around each run.

    Args:
      sess: the session; closed by `close`.
      run_along: called with the session and a list of all that the caller and the hooks fetch, when
        a kind of run is prepared; returns ops that must run in each run of that kind.

    Attributes:
      hook_error: the error of the last run that a hook raised, and not the run itself.
    """

    def __init__(
        self,
        sess: tf.Session,
        hooks: Sequence[tf.train.SessionRunHook] = (),
        run_along: Callable[[tf.Session, List[Any]], List[tf.Operation]] = lambda sess, fetches: [],
    ) -> None:
        self._sess, self._run_along = sess, run_along
        self._plain_run = sess.run  # that of a trainer warns of runs from elsewhere
        self._before: List[Callable[[Any], Any]] = []
        # `after_run`, and which of `structures` is that of the same hook, if it asks for any
        self._after: List[Tuple[Callable[..., None], Optional[int]]] = []
        for each in hooks:
            asks = _does(each, "before_run")
            if asks:
                self._before.append(each.before_run)
            if _does(each, "after_run"):
                self._after.append((each.after_run, len(self._before) if asks else None))
        self._plans: OrderedDict[Hashable, _Plan] = OrderedDict()
        self._shortcuts: OrderedDict[Hashable, _Plan] = OrderedDict()
        self._own = _Args(None)  # what the caller of the last run asked for
        self.hook_error: Optional[BaseException] = None
        self._stop_requested = self._closed = False

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
        """Returns the values of `fetches`; runs what the hooks ask for along with it."""
        if self._closed:
            raise RuntimeError(_CLOSED)
        own = self._own
        if own.fetches is not fetches or own.feed_dict is not feed_dict:
            self._own = own = _Args(fetches, feed_dict)
        context = _Context(own, self._sess)
        try:
            asked = [before_run(context) for before_run in self._before]
        except BaseException as error:
            self.hook_error = error
            raise
        if feed_dict or options is not None or run_metadata is not None:
            return self._run(context, asked, options, run_metadata)
        plan = self._shortcuts.get((id(fetches), *map(id, asked)))
        if plan is None or (plan.mutable and _has_changed(plan)):
            return self._run(context, asked, None, None)
        values = plan.call()
        self._tell(context, plan.told, values)
        return pick(values, plan.own)

    def run_unseen(self, fetches: Any) -> Any:
        """Runs `fetches` unseen by the hooks, with what must run along; returns their values."""
        if self._closed:
            raise RuntimeError(_CLOSED)
        return self._plain_run([fetches, self._run_along(self._sess, [fetches])])[0]

    def _run(self, context: Any, asked: List[Any], options: Any, metadata: Any) -> Any:
        own = context.original_args
        structures = [own.fetches] + [args.fetches if args else None for args in asked]
        feeds = _merge_feeds(own.feed_dict, asked)
        options = _merge_options(options, asked)
        # A SparseTensor that is fed is left to Session.run.
        plain = all(isinstance(each, (str, tf.Tensor)) for each in feeds)
        if options is not None or metadata is not None or not plain:
            return self._run_with_options(context, structures, feeds, options, metadata)
        plan = self._plan(structures, list(feeds))
        if not feeds and not any(args is not None and args.feed_dict is not None for args in asked):
            mutable = [(each, _identity(each)) for each in structures if not _is_fixed(each)]
            self._take_shortcut(own.fetches, asked, plan._replace(mutable=mutable))
        values = plan.call(*feeds.values())
        self._tell(context, plan.told, values)
        return pick(values, plan.own)

    def _tell(self, context: Any, told: Any, values: List[Any], nothing: Any = _NOTHING) -> None:
        try:
            for after_run, where in told:
                found = nothing if where is None else _Values(pick(values, where), *nothing[1:])
                after_run(context, found)
        except BaseException as error:
            self.hook_error = error
            raise
        if context.stop_requested:
            self._stop_requested = True

    def _run_with_options(
        self, context: Any, structures: List[Any], feeds: Any, options: Any, metadata: Any
    ) -> Any:
        metadata = tf.RunMetadata() if metadata is None else metadata
        wanted = _wanted(structures)
        fetches = [structures[i] for i in wanted] + self._run_along(self._sess, structures)
        values = self._plain_run(fetches, feeds, options, metadata)
        told = self._told(wanted, range(len(wanted)))
        self._tell(context, told, values, _Values(None, options, metadata))
        return values[0]

    def _plan(self, structures: List[Any], fed: List[Any]) -> _Plan:
        key = (tuple(map(_identity, structures)), tuple(map(id, fed)))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._prepare(structures, fed)
            if len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        return plan

    def _prepare(self, structures: List[Any], fed: List[Any]) -> _Plan:
        graph = self._sess.graph
        tensors = [graph.as_graph_element(each, allow_operation=False) for each in fed]
        wanted = _wanted(structures)
        fetches = [structures[i] for i in wanted] + self._run_along(self._sess, structures)
        call, found = prepare(self._sess, fetches, tensors)
        kept = ([_leaves(each) for each in structures], fed)
        return _Plan(call, found[0], self._told(wanted, found), kept)

    def _told(self, wanted: Sequence[int], found: Sequence[Any]) -> List[Tuple[Any, Any]]:
        where: Dict[Optional[int], Any] = dict(zip(wanted, found))
        return [(after_run, where.get(index)) for after_run, index in self._after]

    def _take_shortcut(self, fetches: Any, asked: List[Any], plan: _Plan) -> None:
        """Lets the next run that asks with these objects find its plan by their ids."""
        kept = (plan.kept, fetches, asked)
        self._shortcuts[(id(fetches), *map(id, asked))] = plan._replace(kept=kept)
        if len(self._shortcuts) > _MAX_PLANS:
            self._shortcuts.popitem(last=False)

    def close(self) -> None:
        """Closes the session. May be called again."""
        self._closed = True
        self._plans.clear()
        self._shortcuts.clear()
        self._sess.close()


def _does(hook: Any, method: str) -> bool:
    """Whether a hook overrides a method of SessionRunHook."""
    return getattr(getattr(hook, method), "__func__", None) is not getattr(_Hook, method)


def _wanted(structures: Sequence[Any]) -> List[int]:
    """Which of them are to be computed. A hook may ask for None; TensorFlow refuses a caller's."""
    return [i for i, each in enumerate(structures) if i == 0 or each is not None]


def _merge_feeds(feed_dict: Any, asked: Sequence[Any]) -> Dict[Any, Any]:
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


def _identity(fetches: Any) -> Hashable:
    """What identifies a structure of fetches: its shape, and the objects at its leaves."""
    if isinstance(fetches, dict):
        return ("dict",) + tuple([(name, _identity(each)) for name, each in fetches.items()])
    if isinstance(fetches, (list, tuple)):
        return (type(fetches),) + tuple([_identity(each) for each in fetches])
    return fetches if isinstance(fetches, str) else id(fetches)


def _has_changed(plan: _Plan) -> bool:
    return any(_identity(each) != then for each, then in plan.mutable)


def _is_fixed(fetches: Any) -> bool:
    """Whether a structure will always ask for the same."""
    if isinstance(fetches, tuple):
        return all(_is_fixed(each) for each in fetches)
    return not isinstance(fetches, (list, dict))


def _leaves(fetches: Any) -> Tuple[Any, ...]:
    if isinstance(fetches, dict):
        return tuple(leaf for each in fetches.values() for leaf in _leaves(each))
    if isinstance(fetches, (list, tuple)):
        return tuple(leaf for each in fetches for leaf in _leaves(each))
    return (fetches,)


def _merge_options(options: Any, asked: Sequence[Any]) -> Any:
    """Returns run options that satisfy the caller and all hooks, or None if there are none."""
    given = [options, *(args.options for args in asked if args is not None)]
    wanted = [each for each in given if each is not None]
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
