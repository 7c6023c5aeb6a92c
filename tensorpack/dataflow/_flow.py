"""What is taken as a flow: what can be iterated and reset, whether it is a `DataFlow` or not."""

from typing import Any

__all__ = ["is_flow", "what_instead"]


def is_flow(value: Any) -> bool:
    """Returns whether `value` is a flow. A class of flows is none."""
    return not isinstance(value, type) and _has_methods(value)


def what_instead(value: Any) -> str:
    """Returns what a `value` that is no flow is, and what to do about it, for an error message."""
    if isinstance(value, type) and _has_methods(value):
        return f"the class {value.__name__}. Make a flow of it: {value.__name__}(...)."
    return (
        f"a {type(value).__name__}. Wrap a list in DataFromList, any other iterable in "
        "DataFromIterable."
    )


def _has_methods(value: Any) -> bool:
    return hasattr(value, "__iter__") and callable(getattr(value, "reset_state", None))
