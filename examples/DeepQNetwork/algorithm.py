"""What is learned, from which targets and with which optimizer, as one value; published settings.

Imports nothing that is slow: the command line uses it too.
"""

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Tuple, Union

from networks import NETWORKS


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
    importance_weights: bool = True  # of prioritised replay; they multiply the losses
    discount: float = 0.99  # per action
    network: str = "2017"  # a name in `networks.NETWORKS`
    loss: str = "huber"  # of values; or "mse"
    optimizer: str = "adam"  # or "rmsprop", centred
    learning_rate: float = 1e-3  # at the start
    epsilon: float = 1e-3  # of the optimizer
    max_gradient_norm: float = 10.0  # of all gradients together; 0 does not clip


NAMED: Dict[str, Algorithm] = {
    "Double": Algorithm(),
    "DQN": Algorithm(double=False),
    "Dueling": Algorithm(double=False, dueling=True),
    "C51": Algorithm(learns="c51", double=False),
    "QR": Algorithm(learns="qr", double=False),
    "IQN": Algorithm(learns="iqn", double=False),
}

# What a network can learn -> the fields that only its head, in `losses`, reads. With another head
# they keep their defaults: a value that nothing reads would be printed and compared as if it
# counted.
LEARNS: Dict[str, Tuple[str, ...]] = {
    "values": ("loss",),
    "c51": ("atoms",),
    "qr": ("atoms",),
    "iqn": ("atoms",),
}
CHOICES: Mapping[str, Collection[str]] = {
    "learns": LEARNS,
    "network": NETWORKS,
    "loss": ("huber", "mse"),
    "optimizer": ("adam", "rmsprop"),
}
_RANGES = {
    "at least 0": (["atoms", "max_gradient_norm"], lambda x: x >= 0),
    "at least 1": (["n_step"], lambda x: x >= 1),
    "in [0, 1]": (["priority", "discount"], lambda x: 0 <= x <= 1),
    "positive": (["learning_rate", "epsilon"], lambda x: x > 0),
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
    values = {name: getattr(which, name) for name in Algorithm._fields}
    for name, choices in CHOICES.items():
        if values[name] not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {values[name]!r}.")
    for needed, (names, valid) in _RANGES.items():
        for name in names:
            if not valid(values[name]):
                raise ValueError(f"{name} must be {needed}, got {values[name]!r}.")
    for name in unread_fields(which.learns):
        if values[name] != getattr(Algorithm(), name):
            raise ValueError(
                f"{name}={values[name]!r} has no effect with learns={which.learns!r}: leave it out."
            )
    if which.munchausen and which.double:
        raise ValueError(
            "munchausen=True needs double=False: its next actions follow the policy of the target "
            "network."
        )
    if which.munchausen and which.learns == "c51":
        raise ValueError('munchausen=True needs learns="values", "qr" or "iqn", got "c51".')
    if which.learns == "c51" and which.atoms == 1:
        raise ValueError('learns="c51" needs at least 2 atoms, or atoms=0 for those of its paper.')
    return which


def unread_fields(learns: str) -> List[str]:
    """Returns the fields that have no effect where this is learned."""
    of_heads = {name for fields in LEARNS.values() for name in fields}
    return sorted(of_heads - set(LEARNS.get(learns, ())))


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


# Published settings, and ours for few steps, as tables: the name of a flag to its value.
# `--preset NAME` sets the flags of a table; a flag that is given too overrides it. What a table
# does not name is as without a preset. A line is a topic: network and loss; optimizer; memory and
# updates; exploration; games; length of the run.
#
# An agent step is an action, which is a transition. `exploration_steps` counts them from the first
# update on. `target_sync` counts updates, each of which has `update_freq` agent steps: 8000 agent
# steps of Dopamine are 2000 updates. The table of Mnih et al., followed here, says 10,000 updates;
# their program counts 10,000 agent steps. Their RMSProp has an epsilon of 0.01 for the sum of the
# gradients of a batch; ours has their mean, which is 32 times smaller, and its square 32**2 times.

# fmt: off
# What all of the published settings have in common. Epochs of 25,000 agent steps, evaluated every
# 250,000 of them, which is an iteration of Dopamine; in all 50 million, 200 million frames.
_PUBLISHED = {
    "discount": 0.99, "max_gradient_norm": 0.0,
    "batch_size": 32, "update_freq": 4, "memory_size": 1000000,
    "idle_frames": 0,
    "steps_per_epoch": 6250, "max_epoch": 2000, "eval_every": 10,
}
# Mnih et al., 2015, Human-level control through deep reinforcement learning. The error is clipped
# to [-1, 1], a game to five minutes.
_DQN2015 = {
    **_PUBLISHED,
    "network": "nature", "algo": "DQN", "loss": "huber",
    "optimizer": "rmsprop", "learning_rate": 2.5e-4, "optimizer_epsilon": 0.01 / 32**2,
    "init_memory_size": 50000, "target_sync": 10000,
    "exploration_steps": 1000000, "final_exploration": 0.1, "eval_epsilon": 0.05,
    "sticky": 0.0, "life_loss_ends": True, "noop_max": 30, "max_frames": 18000,
}
# Castro et al., 2018, Dopamine. A game has half an hour.
_DOPAMINE = {
    **_PUBLISHED,
    "network": "dopamine",
    "optimizer": "adam",
    "init_memory_size": 20000, "target_sync": 2000,
    "exploration_steps": 250000, "final_exploration": 0.01, "eval_epsilon": 0.001,
    "sticky": 0.25, "life_loss_ends": False, "noop_max": 0, "max_frames": 108000,
}
PRESETS: Dict[str, Mapping[str, Any]] = {
    "2017": {},  # the main job: Double DQN with Adam, schedules in epochs
    "dqn2015": _DQN2015,
    # van Hasselt et al., 2016, Deep reinforcement learning with Double Q-learning, with the
    # settings of `dqn2015`, not those that were tuned for it.
    "double2016": {**_DQN2015, "algo": "Double"},
    # `jax/agents/dqn/configs/dqn.gin`, which has Adam and the squared error.
    "dopamine-dqn": {
        **_DOPAMINE,
        "algo": "DQN", "loss": "mse",
        "learning_rate": 6.25e-5, "optimizer_epsilon": 1.5e-4,
    },
    # Dabney et al., 2018, Distributional reinforcement learning with quantile regression, as in
    # `jax/agents/quantile/configs/quantile.gin`. Its agent weights the loss that it shows, not the
    # one whose gradient it takes.
    "dopamine-qr": {
        **_DOPAMINE,
        "algo": "QR", "atoms": 200, "n_step": 3, "priority": 0.5, "importance_weights": False,
        "learning_rate": 5e-5, "optimizer_epsilon": 3.125e-4,
    },
    # Hessel et al., 2018, as in `jax/agents/rainbow/configs/rainbow.gin`: without the parts of the
    # paper that `--noisy --dueling --double` add; with noisy layers it has no random actions:
    # `--exploration-steps 1 --final-exploration 0`.
    "rainbow": {
        **_DOPAMINE,
        "algo": "C51", "atoms": 51, "n_step": 3, "priority": 0.5,
        "learning_rate": 6.25e-5, "optimizer_epsilon": 1.5e-4,
    },
    # Ours, for less than a million agent steps. Of Dopamine's algorithms QR learns most in the
    # first 750,000 steps. This has twice as many updates per step, each of which is larger and
    # takes half the time, and an exploration that is over after a fifth of the steps, and that
    # finds rewards which are many actions away. An epoch has 25,000 agent steps too.
    "fast": {
        **_DOPAMINE,
        "network": "nature", "algo": "QR", "atoms": 64, "n_step": 3, "priority": 0.5,
        "dueling": True, "munchausen": True,
        "learning_rate": 1e-4, "optimizer_epsilon": 1.5e-4, "max_gradient_norm": 10.0,
        "update_freq": 2, "init_memory_size": 10000,
        "exploration_steps": 50000, "random_repeat": 100,
        "idle_frames": 3600,
        "steps_per_epoch": 12500, "max_epoch": 30,
    },
}
# fmt: on
