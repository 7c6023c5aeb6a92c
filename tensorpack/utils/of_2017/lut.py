"""Numbers the objects of a list, and finds objects by number and numbers by object."""

from typing import Any, Iterable


class LookUpTable:
    """Maps indices 0, 1, 2 and so on to hashable, different objects, and objects to indices."""

    def __init__(self, objlist: Iterable[Any]) -> None:
        self.idx2obj = list(objlist)
        self.obj2idx = {obj: index for index, obj in enumerate(self.idx2obj)}

    def size(self) -> int:
        """Returns the number of objects."""
        return len(self.idx2obj)

    def get_obj(self, idx: int) -> Any:
        """Returns the object with an index; an IndexError if there is none."""
        return self.idx2obj[idx]

    def get_idx(self, obj: Any) -> int:
        """Returns the index of an object; a KeyError if it is not in the table."""
        return self.obj2idx[obj]

    def __str__(self) -> str:
        return str(self.idx2obj)
