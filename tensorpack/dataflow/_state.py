"""What flows that keep a state have in common: which states they take back."""

from typing import Any, Sequence

__all__ = ["check_count", "check_state"]


def check_state(flow: Any, state: Any, names: Sequence[str]) -> None:
    """Raises ValueError unless `state` is a dict of exactly these names."""
    if not isinstance(state, dict) or set(state) != set(names):
        found = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise ValueError(
            f"This is not a state of {type(flow).__name__}: it needs {sorted(names)}, but got "
            f"{found}. Load a state into a flow that is made as the one it came from."
        )


def check_count(flow: Any, count: Any, limit: int) -> None:
    """Raises ValueError unless `count` is an integer from 0 to `limit`."""
    if not isinstance(count, int) or not 0 <= count <= limit:
        raise ValueError(
            f"This is not a state of this {type(flow).__name__}: it is at {count!r}, but a pass "
            f"has {limit}. Load a state into a flow that is made as the one it came from."
        )
