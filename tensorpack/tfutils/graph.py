"""Scopes and collections of a graph: contexts and decorators that open and restore them."""

import functools
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, TypeVar

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import accepts_old_keywords

from .common import PerGraph

F = TypeVar("F", bound=Callable[..., Any])

_cached_scopes: PerGraph[dict] = PerGraph(dict)


def auto_reuse_variable_scope(func: Optional[F] = None, *, by_variable: bool = False) -> Any:
    """Decorates a function so that it makes its variables once, and reuses them from then on.

    Once means: for each graph and each name of the variable scope that it is called in. Only a
    call that returned counts. The name scope is the caller's.

    Args:
      func: the function; without it, the decorator is returned.
      by_variable: decide for each variable by itself, as `tf.AUTO_REUSE` does: a later call may
        make variables that earlier ones did not need. A misspelt name is then a new variable.
    """
    if func is None:
        return functools.partial(auto_reuse_variable_scope, by_variable=by_variable)
    called_in: PerGraph[set] = PerGraph(set)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        scope = tf.get_variable_scope()
        seen = called_in.get()
        if by_variable or scope.name in seen:
            # a scope that only reuses, such as that of a second tower, makes nothing
            reuse = (scope.reuse or tf.AUTO_REUSE) if by_variable else True
            with tf.variable_scope(scope, reuse=reuse, auxiliary_name_scope=False):
                return func(*args, **kwargs)
        result = func(*args, **kwargs)
        seen.add(scope.name)
        return result

    return wrapper  # type: ignore[return-value]


@accepts_old_keywords(name="name_scope")
def under_name_scope(name_scope: Optional[str] = None) -> Callable[[F], F]:
    """Returns a decorator that runs a function under a new name scope at each call.

    By default it has the name of the function. A call may name its scope: `rms(x,
    name_scope="activation")`. Calls that name the same one share it.
    """

    def open_scope(func: Callable, kwargs: Dict[str, Any]) -> Any:
        if kwargs.get("name_scope") is not None:
            return cached_name_scope(kwargs.pop("name_scope"), top_level=False)
        return tf.name_scope(kwargs.pop("name_scope", name_scope) or func.__name__)

    return _under(open_scope)


def under_variable_scope() -> Callable[[F], F]:
    """Returns a decorator that runs a function in the variable scope of the function's name."""
    return _under(lambda func, kwargs: tf.variable_scope(func.__name__))


def _under(open_scope: Callable[[Callable, Dict[str, Any]], Any]) -> Callable[[F], F]:
    def decorate(func: F) -> F:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with open_scope(func, kwargs):
                return func(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def get_name_scope_name() -> str:
    """Returns the full name of the open name scope, without a `/` at its end; "" for the root."""
    return tf.get_default_graph().get_name_scope()


@contextmanager
def cached_name_scope(name: str, top_level: bool = True) -> Iterator[str]:
    """Opens a name scope, which is the same one whenever it is opened under this name in a graph.

    Args:
      name: of the scope; made unique by TensorFlow when it is opened first.
      top_level: whether it lies in the root, rather than in the scope that is open now.

    Yields:
      The scope's full name, ending with `/`.
    """
    scopes = _cached_scopes.get()
    parent = "" if top_level else tf.get_default_graph().get_name_scope()
    full = scopes.get((parent, name), name)  # with a `/` at its end, it is opened as it is
    with tf.name_scope(parent + "/" if parent else None), tf.name_scope(full) as scope:
        scopes[parent, name] = scope
        yield scope


def backup_collection(keys: Optional[Iterable[str]] = None) -> Dict[str, List[Any]]:
    """Returns what is in collections of the default graph, by default in all of them, as copies."""
    graph = tf.get_default_graph()
    chosen = graph.get_all_collection_keys() if keys is None else keys
    return {key: graph.get_collection(key) for key in chosen}


def restore_collection(backup: Dict[str, List[Any]]) -> None:
    """Sets collections of the default graph back to what `backup_collection` returned.

    Collections that are not in the backup stay as they are.
    """
    graph = tf.get_default_graph()
    for key, members in backup.items():
        graph.get_collection_ref(key)[:] = members


def clear_collection(keys: Iterable[str]) -> None:
    """Empties collections of the default graph."""
    restore_collection({key: [] for key in keys})


@contextmanager
def freeze_collection(keys: Iterable[str]) -> Iterator[None]:
    """Undoes what the block did to these collections when it ends, also by an error."""
    backup = backup_collection(keys)
    try:
        yield
    finally:
        restore_collection(backup)
