"""Runs of a session that are prepared once and then cost little more than what they compute.

`Session.run` analyses its fetches and feeds in each call, and so does a callable of
`Session.make_callable` with feeds; on a tiny graph that takes several times as long as the graph.
Here they are analysed once, and ops are run instead of fetched, which is cheaper.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from tensorpack.compat import is_closed, make_raw_callable
from tensorpack.compat import tfv1 as tf

from .fed_input import FedInput

_WITHOUT_VALUE = (tf.resource, tf.variant)


class Prepared(NamedTuple):
    """A set of fetches and feeds of a session.

    Attributes:
      call: takes what each feed gets; returns the values.
      where: for each structure of fetches, where among the values its own are; for `pick`.
      call_checked: `call` for arrays that a `FedInput` has returned, which are not checked again.
    """

    call: Callable[..., List[Any]]
    where: List[Any]
    call_checked: Callable[..., List[Any]]


def prepare(
    sess: Any,
    structures: Sequence[Any],
    feeds: Sequence[Any] = (),
    in_caller: bool = False,
    waits: bool = False,
) -> Prepared:
    """Prepares runs that compute several structures of fetches together, each tensor once.

    What is fed is converted and checked as the datapoints of a trainer are, see `fed_input`.

    Args:
      structures: an op, a tensor, a variable, a name of one, or a list, tuple or dictionary
        of structures. Whatever else `Session.run` takes is left to that.
      in_caller: whether the thread that calls also computes, which is for graphs of an op or two.
      waits: whether `operation_timeout_in_ms` of the session does not count here.
    """
    if is_closed(sess):
        raise RuntimeError("This session has been closed: nothing can be run in it any more.")
    graph = sess.graph
    fetched = _Fetched(graph, [feed.name for feed in feeds if isinstance(feed, tf.Tensor)])
    try:
        where = [fetched.find(structure) for structure in structures]
        fed = [_input(feed) and graph.is_feedable(graph.as_graph_element(feed)) for feed in feeds]
        if not all(fed):
            raise _NotPreparable
    except (KeyError, TypeError, ValueError):  # as_graph_element raises all of them
        return _prepare_by_session(sess, structures, feeds)
    if not fetched.tensors and not fetched.ops:  # a callable that computes nothing cannot be made
        return Prepared(lambda *arrays: [], where, lambda *arrays: [])
    call = make_raw_callable(sess, fetched.tensors, fetched.ops, feeds, in_caller, waits)
    if call is None:
        return _prepare_by_session(sess, structures, feeds)
    return Prepared(_checking(call, feeds) if feeds else call, where, call)


def pick(values: Sequence[Any], where: Any) -> Any:
    """Returns the values of one structure of fetches, shaped as that; an op has None."""
    if where is None:
        return None
    if type(where) is int:
        return values[where]
    kind, parts = where
    if kind is dict:
        return {name: pick(values, part) for name, part in parts}
    return kind([pick(values, part) for part in parts])


class _NotPreparable(ValueError):
    """A fetch or feed that is left to `Session.run`, which may refuse it."""


class _Fetched:
    """Collects what is to be computed."""

    def __init__(self, graph: tf.Graph, fed: Sequence[str]) -> None:
        self._graph, self._fed = graph, fed  # the latter are names of tensors
        self._places: Dict[str, int] = {}
        self.tensors: List[tf.Tensor] = []
        self.ops: List[tf.Operation] = []

    def find(self, fetches: Any) -> Any:
        """Adds what a structure needs; returns where its values will be."""
        kind = type(fetches)
        if kind is dict:
            return dict, [(name, self.find(part)) for name, part in fetches.items()]
        if kind is list or kind is tuple:
            return kind, [self.find(part) for part in fetches]
        found = self._graph.as_graph_element(fetches)
        if not self._graph.is_fetchable(found):
            raise _NotPreparable
        if isinstance(found, tf.Operation):
            self.ops.append(found)
            return None
        if found.dtype.base_dtype in _WITHOUT_VALUE or found.name in self._fed:
            raise _NotPreparable
        if found.name not in self._places:
            self._places[found.name] = len(self.tensors)
            self.tensors.append(found)
        return self._places[found.name]


def _prepare_by_session(sess: Any, structures: Sequence[Any], feeds: Sequence[Any]) -> Prepared:
    # an empty list, unlike None, would take the slow way through Session.run
    call = sess.make_callable(list(structures), feed_list=list(feeds) or None)
    return Prepared(_checking(call, feeds) if feeds else call, list(range(len(structures))), call)


def _checking(call: Callable[..., Any], feeds: Sequence[Any]) -> Callable[..., Any]:
    inputs = [_input(feed) for feed in feeds]

    def run(*values: Any) -> Any:
        if len(values) != len(inputs):
            raise TypeError(f"{len(inputs)} tensors are fed here, got {len(values)} values.")
        arrays = [fed.feed(value) if fed else value for fed, value in zip(inputs, values)]
        try:
            return call(*arrays)
        except tf.errors.CancelledError as error:
            if "Session has been closed" in str(error):
                raise RuntimeError(f"This session has been closed: {error}") from error
            raise

    return run


def _input(feed: Any) -> Optional[FedInput]:
    """Returns what checks the values of a feed; None leaves them to `Session.run`."""
    if not isinstance(feed, tf.Tensor) or feed.dtype.base_dtype in _WITHOUT_VALUE:
        return None
    return FedInput(repr(feed.name), feed.dtype.base_dtype, feed.shape)
