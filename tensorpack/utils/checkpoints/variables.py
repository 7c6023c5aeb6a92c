"""What is known of variables by name, and which values of a file fit into which of them."""

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

import numpy as np

_KINDS = {"bfloat": "float", "half": "float", "double": "float", "uint": "int", "qint": "int"}


class Variable(NamedTuple):
    """The name of a variable's dtype, and its shape: None for any, and in it for any size."""

    dtype: str
    shape: Any

    def __str__(self) -> str:
        return f"{self.dtype} {'of any shape' if self.shape is None else list(self.shape)}"

    @property
    def kind(self) -> str:
        """Its dtype without the number of bits, such as "float"."""
        letters = re.sub(r"[0-9]+.*", "", self.dtype)
        return _KINDS.get(letters, letters)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape or (), dtype=np.int64))

    @property
    def nbytes(self) -> Optional[int]:
        """What they take in memory; None for strings and the like."""
        bits = re.search("[0-9]{1,4}", {"bool": "8"}.get(self.dtype, self.dtype))
        return int(bits.group()) // 8 * self.size if bits else None


class Match(NamedTuple):
    """A row of `match`.

    Attributes:
      name: of the variable.
      ours, theirs: what is known of it in the model, and in what is to be loaded.
      verdict: "same"; "cast" or "dtype" for another dtype of the same or of another kind; "shape";
        "missing" or "extra" for what only the model or only the other has.
    """

    name: str
    ours: Optional[Variable]
    theirs: Optional[Variable]
    verdict: str


def match(ours: Dict[str, Variable], theirs: Dict[str, Variable]) -> List[Match]:
    """Returns how each variable of a model and of what is to be loaded into it fit, by name."""
    names = sorted({*ours, *theirs})
    pairs = ((name, ours.get(name), theirs.get(name)) for name in names)
    return [Match(name, our, their, _verdict(our, their)) for name, our, their in pairs]


def _verdict(ours: Optional[Variable], theirs: Optional[Variable]) -> str:
    if ours is None or theirs is None:
        return "extra" if ours is None else "missing"
    if ours.shape is not None and theirs.shape is not None:
        pairs = zip(ours.shape, theirs.shape)
        if len(ours.shape) != len(theirs.shape) or any(a not in (None, b) for a, b in pairs):
            return "shape"
    if ours.dtype == theirs.dtype:
        return "same"
    return "cast" if ours.kind == theirs.kind else "dtype"


def take_present_names(ours: Iterable[str], theirs: Dict[str, Any]) -> Dict[str, str]:
    """Renames in what a checkpoint has the powers of Adam's betas in a branch, as
    `AccumGrad/cond/beta1_power` of earlier versions on TensorFlow 1, to the names that a graph has
    for them, if it is clear which is which; returns the names there by those in the graph.
    """
    renamed: Dict[str, str] = {}
    for power in "beta1_power", "beta2_power":
        earlier = [name for name in theirs if re.search(f"(^|/){power}(_[0-9]+)?$", name)]
        present = [name for name in ours if re.fullmatch(f"{power}(_[0-9]+)?", name)]
        kinds = {re.sub("_[0-9]+/", "/", name) for name in earlier}
        if len(present) == len(earlier) and len(kinds) == 1 and "cond" in kinds.pop().split("/"):
            renamed.update(zip(sorted(present, key=_numbered), sorted(earlier, key=_numbered)))
    for name, old_name in renamed.items():
        theirs[name] = theirs.pop(old_name)
    return renamed


def _numbered(name: str) -> List[Any]:
    """Returns a key that sorts names as their numbers are, in the order in which they were made."""
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]


def scope_hint(model: Iterable[str], saved: Iterable[str]) -> str:
    """Returns advice, after a space, if a model has in a scope what is to be loaded; else ""."""
    for name in model:
        scope = next((name[: -len(other) - 1] for other in saved if name.endswith(f"/{other}")), "")
        if scope:
            return f" SaverRestore(path, prefix={scope!r}) loads them under that scope."
    return ""


def without_output(name: str) -> str:
    """Returns the name of a variable without `:0`."""
    return name[:-2] if name.endswith(":0") else name


def by_name(values: Dict[str, Any]) -> Dict[str, Any]:
    """Returns values by names without `:0`; a ValueError if two of them mean one variable."""
    result: Dict[str, Any] = {}
    for name, value in values.items():
        short = without_output(name)
        if short in result:
            raise ValueError(f"{short!r} and '{short}:0' are one variable: give one of them.")
        result[short] = value
    return result


def variables_of(values: Dict[str, Any]) -> Dict[str, Variable]:
    """Returns what is known of values, by name."""
    arrays = {name: np.asarray(value) for name, value in sorted(values.items())}
    return {name: Variable(array.dtype.name, array.shape) for name, array in arrays.items()}


def variables_in(manifest: Dict[str, Dict[str, Any]]) -> Dict[str, Variable]:
    """Returns what a manifest, or the index of a checkpoint, says of variables, by name."""
    entries = sorted(manifest.items())
    return {name: Variable(entry["dtype"], tuple(entry["shape"])) for name, entry in entries}
