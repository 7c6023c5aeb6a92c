"""What defines what is learned, which a run that goes on should have in common with itself."""

from typing import Any, Mapping

__all__ = ["check_rules"]

_FIXED = ("algo",)  # another one would go on with weights that it has not learned


def check_rules(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Compares the rules of a state with those of the run that goes on from it.

    What only one of them knows is not compared: older states know nothing.

    Args:
      before: name of a rule to its value, when the state was saved.
      now: the same of this run.

    Returns:
      what is different and makes the run another one from here on; empty if nothing is.

    Raises:
      ValueError: the algorithm is another one.
    """
    known = {name: value for name, value in before.items() if name in now}
    changed = {name: value for name, value in known.items() if value != now[name]}
    told = {name: f"{name} was {value}, and is {now[name]}" for name, value in changed.items()}
    fixed = [told[name] for name in _FIXED if name in told]
    if fixed:
        raise ValueError(
            f"The run learned by another rule: {'; '.join(fixed)}. Resume with what it was, or "
            "begin another run and give it the weights (--load)."
        )
    return "; ".join(told.values())
