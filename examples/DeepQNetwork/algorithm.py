"""What is learned, from which targets and with which optimizer, as one value.

Imports nothing that is slow: the command line uses it too.
"""

from typing import Any, List, Mapping, NamedTuple, Tuple, Union

__all__ = ["NAMED", "Algorithm", "get_algorithm", "unread_fields"]

# What a network can learn -> the fields of `Algorithm` that only its head, in `losses`, reads. With
# another head they keep their defaults: a value that nothing reads would be printed and compared
# as if it counted.
LEARNS: Mapping[str, Tuple[str, ...]] = {
    "values": ("loss",),
    "c51": ("atoms",),
    "qr": ("atoms",),
    "iqn": ("atoms",),
}
NETWORKS = ("2017", "nature", "dopamine")
LOSSES = ("huber", "mse")
OPTIMIZERS = ("adam", "rmsprop")


class Algorithm(NamedTuple):
    """A variant of deep Q-learning. Everything can be combined but double with Munchausen."""

    learns: str = "values"  # or a distribution: "c51" (of 51 atoms), "qr", "iqn" (quantiles)
    atoms: int = 0  # of a distribution: atoms, quantiles or samples; 0 is the number of its paper
    double: bool = True  # the online network selects the next action, the target network values it
    dueling: bool = False  # value and advantages have layers of their own
    noisy: bool = False  # explores by noise in the weights
    munchausen: bool = False  # adds the log-policy to the reward
    n_step: int = 1  # rewards that are added up before the next state is valued
    priority: float = 0.0  # exponent of prioritised replay; 0 samples uniformly
    discount: float = 0.99  # per action
    network: str = "2017"  # padded, PReLU; or "nature": ReLU, not padded; or "dopamine": padded
    loss: str = "huber"  # of values; or "mse"
    optimizer: str = "adam"  # or "rmsprop", centred
    learning_rate: float = 1e-3  # at the start
    epsilon: float = 1e-3  # of the optimizer
    max_gradient_norm: float = 10.0  # of all gradients together; 0 does not clip


NAMED: Mapping[str, Algorithm] = {
    "Double": Algorithm(),
    "DQN": Algorithm(double=False),
    "Dueling": Algorithm(double=False, dueling=True),
    "C51": Algorithm(learns="c51", double=False),
    "QR": Algorithm(learns="qr", double=False),
    "IQN": Algorithm(learns="iqn", double=False),
}

_CHOICES: Mapping[str, Tuple[str, ...]] = {
    "learns": tuple(LEARNS),
    "network": NETWORKS,
    "loss": LOSSES,
    "optimizer": OPTIMIZERS,
}


def get_algorithm(which: Union[str, Algorithm]) -> Algorithm:
    """Returns an algorithm by its name in `NAMED`, or the given one, checked.

    Raises:
      ValueError: there is none of this name, or a field is out of range.
    """
    if isinstance(which, str):
        if which not in NAMED:
            raise ValueError(f"algorithm must be one of {', '.join(NAMED)}, got {which!r}.")
        return NAMED[which]
    for name, choices in _CHOICES.items():
        value = getattr(which, name)
        if value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
    _check_range("atoms", which.atoms, which.atoms >= 0, "at least 0")
    for name in unread_fields(which.learns):
        if getattr(which, name) != getattr(Algorithm(), name):
            raise ValueError(
                f"{name}={getattr(which, name)!r} has no effect with learns={which.learns!r}: "
                "leave it out."
            )
    _check_range("n_step", which.n_step, which.n_step >= 1, "at least 1")
    _check_range("priority", which.priority, 0 <= which.priority <= 1, "in [0, 1]")
    _check_range("discount", which.discount, 0 <= which.discount <= 1, "in [0, 1]")
    _check_range("learning_rate", which.learning_rate, which.learning_rate > 0, "positive")
    _check_range("epsilon", which.epsilon, which.epsilon > 0, "positive")
    norm = which.max_gradient_norm
    _check_range("max_gradient_norm", norm, norm >= 0, "at least 0")
    if which.munchausen and which.double:
        raise ValueError(
            "munchausen=True needs double=False: its next actions follow the policy of the target "
            "network."
        )
    if which.munchausen and which.learns == "c51":
        raise ValueError('munchausen=True needs learns="values", "qr" or "iqn", got "c51".')
    return which


def unread_fields(learns: str) -> List[str]:
    """Returns the fields that have no effect where this is learned."""
    of_heads = {name for fields in LEARNS.values() for name in fields}
    return sorted(of_heads - set(LEARNS[learns]))


def _check_range(name: str, value: Any, valid: bool, needed: str) -> None:
    if not valid:
        raise ValueError(f"{name} must be {needed}, got {value!r}.")
