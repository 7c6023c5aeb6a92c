"""Flags of the algorithm, one for each field of `Algorithm`."""

import argparse
from typing import Any, Dict

from algorithm import (
    LOSSES,
    NAMED,
    NETWORKS,
    OPTIMIZERS,
    Algorithm,
    get_algorithm,
    unread_fields,
)
from presets import PRESETS
from task_flags import at_least, number, positive, probability, switch

__all__ = ["add_algorithm", "algorithm_of", "rules_of"]

_SAME_NAME = (
    *("atoms", "dueling", "noisy", "munchausen", "n_step", "priority", "discount", "network"),
    *("loss", "optimizer", "max_gradient_norm"),
)


def add_algorithm(group: "argparse._ArgumentGroup") -> None:
    """Adds the flags."""
    add = group.add_argument
    add(
        "--algo",
        choices=list(NAMED),
        default="Double",
        help="what is learned: values (Double, DQN, Dueling) or distributions of returns (C51, QR, "
        "IQN); the flags below add to it (default: Double)",
    )
    switch(
        group,
        "--double",
        None,
        "the online network selects the next action, the target network values it (default: with "
        "--algo Double)",
    )
    switch(
        group,
        "--dueling",
        None,
        "value and advantages have layers of their own (default: with --algo Dueling)",
    )
    switch(
        group,
        "--noisy",
        False,
        "explore by noise in the weights; random actions stay, unless --exploration-steps 1 "
        "--final-exploration 0 ends them",
    )
    switch(
        group,
        "--munchausen",
        False,
        "add the log-policy to the reward; not with --double or --algo C51",
    )
    _add_sampling_and_network(group)
    _add_optimizer(group)


def _add_sampling_and_network(group: "argparse._ArgumentGroup") -> None:
    """Adds the flags of what is sampled and what the network is."""
    add = group.add_argument
    number(group, "--n-step", 1, "rewards that are added up before the next state is valued")
    add(
        "--priority",
        type=probability,
        default=0.0,
        metavar="P",
        help="exponent of prioritised replay, 0.5 in Rainbow; 0 samples uniformly (default: 0)",
    )
    add(
        "--atoms",
        type=at_least(0),
        default=0,
        metavar="N",
        help="atoms, quantiles or samples of a distribution; 0 is the number of its paper "
        "(default: 0)",
    )
    add(
        "--discount",
        type=probability,
        default=0.99,
        metavar="P",
        help="of rewards, per action (default: 0.99)",
    )
    add(
        "--network",
        choices=NETWORKS,
        default="2017",
        help="2017 has padded convolutions and PReLU; nature, of Mnih et al., 2015, ReLU and no "
        "padding, so that an update takes two thirds of the time; dopamine ReLU and padding "
        "(default: 2017)",
    )


def _add_optimizer(group: "argparse._ArgumentGroup") -> None:
    """Adds the flags of how the network is trained."""
    add = group.add_argument
    add(
        "--loss",
        choices=LOSSES,
        default="huber",
        help="of values; distributions have their own (default: huber)",
    )
    add(
        "--optimizer", choices=OPTIMIZERS, default="adam", help="rmsprop is centred (default: adam)"
    )
    add(
        "--optimizer-epsilon",
        type=positive,
        default=1e-3,
        metavar="R",
        help="epsilon of the optimizer (default: 1e-3)",
    )
    add(
        "--max-gradient-norm",
        type=_norm,
        default=10.0,
        metavar="R",
        help="all gradients together are clipped to this norm; 0 does not clip (default: 10)",
    )


def _norm(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else positive(text)


def algorithm_of(args: argparse.Namespace) -> Algorithm:
    """Returns what the flags ask for.

    Raises:
      ValueError: two of them exclude each other.
    """
    _check_munchausen(args)
    _check_unread(args)
    named = NAMED[args.algo]
    fields: Dict[str, Any] = {name: getattr(args, name) for name in _SAME_NAME}
    fields["dueling"] = named.dueling if args.dueling is None else args.dueling
    # Munchausen targets have another next action.
    double = named.double and not args.munchausen
    fields["double"] = double if args.double is None else args.double
    if args.learning_rate is not None:
        fields["learning_rate"] = args.learning_rate
    return get_algorithm(named._replace(epsilon=args.optimizer_epsilon, **fields))


def _check_munchausen(args: argparse.Namespace) -> None:
    """Raises ValueError, in words of the command line, if another flag excludes --munchausen."""
    if not args.munchausen:
        return
    if args.double:
        other = _named(args, "--double", "double")
    elif NAMED[args.algo].learns == "c51":
        other = _named(args, f"--algo {args.algo}", "algo")
    else:
        return
    of_preset = PRESETS[args.preset].get("munchausen")
    remedy = "add --no-munchausen" if of_preset else "leave --munchausen out"
    raise ValueError(f"{_named(args, '--munchausen', 'munchausen')} excludes {other}: {remedy}")


def _check_unread(args: argparse.Namespace) -> None:
    """Raises ValueError, in words of the command line, if nothing reads a flag that is given."""
    for name in unread_fields(NAMED[args.algo].learns):
        value, default = getattr(args, name), getattr(Algorithm(), name)
        if value != default:
            of_preset = PRESETS[args.preset].get(name) == value
            remedy = f"add --{name} {default}" if of_preset else f"leave --{name} out"
            raise ValueError(
                f"{_named(args, f'--{name} {value}', name)} has no effect with "
                f"{_named(args, f'--algo {args.algo}', 'algo')}: {remedy}"
            )


def _named(args: argparse.Namespace, flag: str, name: str) -> str:
    """Returns a flag, with the preset that it comes from."""
    of_preset = PRESETS[args.preset].get(name) == getattr(args, name)
    return f"{flag} (of --preset {args.preset})" if of_preset else flag


def rules_of(algorithm: Algorithm) -> Dict[str, Any]:
    """Returns the fields that count, by the names of their flags, but for the learning rate, a
    schedule.
    """
    fields = algorithm._asdict()
    if algorithm.learns != "values":
        name = algorithm.learns.upper()
    elif algorithm.dueling:
        name = "Dueling"
    else:
        name = "Double" if algorithm.double else "DQN"
    for unread in ["learns", "learning_rate", *unread_fields(algorithm.learns)]:
        del fields[unread]
    return {"algo": name, "optimizer_epsilon": fields.pop("epsilon"), **fields}
