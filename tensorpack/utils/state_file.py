"""The state of a run as one file: a tree of plain values and arrays that comes back exactly."""

from typing import Any

from ._state_container import read_container, write_container
from ._state_tree import decode_tree, encode_tree

__all__ = ["read_state", "write_state"]

_KIND = b"tp-state"


def write_state(path: str, tree: Any) -> None:
    """Writes a tree to a file, in place of what is there.

    That is neither atomic nor durable: write to another name, see that it is on the disk, rename.

    Args:
      path: of the file.
      tree: None, bool, int of any size, float, str, bytes, numpy scalars, numpy arrays without
        objects, and lists, tuples and dictionaries with str keys of these. It is at most 64 levels
        deep. Types count exactly: a subclass, such as a named tuple, is refused. Arrays of any
        memory layout come back in C order.

    Raises:
      TypeError: there is something else in it; the text names the place, such as
        'callbacks/ExpReplay/rng'. The file has not been touched.
      OSError: the file cannot be written.
    """
    encoded, arrays = encode_tree(tree)
    with open(path, "wb") as file:
        write_container(file, _KIND, encoded, arrays)


def read_state(path: str) -> Any:
    """Returns the tree of a file. Reading never runs code; the arrays may be written to.

    Raises:
      ValueError: the file is damaged, is not a state, or is of another version.
      FileNotFoundError: there is none.
      OSError: it cannot be read.
    """
    try:
        container = read_container(path, _KIND)
        return decode_tree(container.content, container.arrays)
    except ValueError as error:
        raise ValueError(f"Cannot use the state in {path}: {error}.") from error
