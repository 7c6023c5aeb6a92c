"""Saves, restores and freezes the collections of a graph."""

from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf


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
