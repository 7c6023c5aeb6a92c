"""The command line of DQN.py: one table of flags, and what is made of their values.

`parse` gives the values, checked by `checks.py`. What any program on games has is in
`tensorpack.contrib.game_flags`. Imports nothing that is slow.
"""

import argparse
import os
from typing import Dict, Optional, Sequence

import checks
from algorithm import CHOICES, NAMED, PRESETS, Algorithm, get_algorithm

from tensorpack.contrib import game_flags
from tensorpack.contrib.game_flags import COUNT, NATURAL, NORM, POSITIVE, PROBABILITY, SWITCH, Flag

NAME = "DQN"  # of the example, in the names of log directories
_OURS = Algorithm()

# fmt: off
LEARNING = [
    Flag("preset", PRESETS, "2017", "settings of a publication, see README.md; a flag that "
         "is given too overrides them (default: 2017, whose defaults are listed here)"),
    Flag("num-players", COUNT, 1, "games played at once in training, see README.md"),
    Flag("batch-size", COUNT, 64, "transitions in a batch"),
    Flag("update-freq", COUNT, 4, "transitions played for each batch, by all players together"),
    Flag("memory-size", COUNT, 10**6, "transitions in the replay memory (7 kB each)"),
    Flag("init-memory-size", COUNT, 50000, "transitions played before the training begins"),
    Flag("target-sync", COUNT, 2500, "steps between two updates of the target network"),
]
ALGORITHM = [
    Flag("algo", NAMED, "Double", "what is learned: values (Double, DQN, Dueling) or "
         "distributions of returns (C51, QR, IQN); the flags below add to it"),
    Flag("double", SWITCH, None, "the online network selects the next action, the target network "
         "values it (default: with --algo Double)"),
    Flag("dueling", SWITCH, None, "value and advantages have layers of their own (default: with "
         "--algo Dueling)"),
    Flag("noisy", SWITCH, _OURS.noisy, "explore by noise in the weights; random actions stay, "
         "unless --exploration-steps 1 --final-exploration 0 ends them"),
    Flag("munchausen", SWITCH, _OURS.munchausen, "add the log-policy to the reward; not with "
         "--double or --algo C51"),
    Flag("n-step", COUNT, _OURS.n_step, "rewards that are added up before the next state is "
         "valued"),
    Flag("priority", PROBABILITY, _OURS.priority, "exponent of prioritised replay, 0.5 in Rainbow; "
         "0 samples uniformly"),
    Flag("importance-weights", SWITCH, _OURS.importance_weights, "weight the losses against the "
         "bias of --priority"),
    Flag("atoms", NATURAL, _OURS.atoms, "atoms, quantiles or samples of a distribution; 0 is the "
         "number of its paper"),
    Flag("discount", PROBABILITY, _OURS.discount, "of rewards, per action"),
    Flag("network", CHOICES["network"], _OURS.network, "2017 has padded convolutions and PReLU; "
         "nature, of Mnih et al., 2015, ReLU and no padding, so that an update takes two thirds of "
         "the time; dopamine ReLU and padding"),
    Flag("loss", CHOICES["loss"], _OURS.loss, "of values; distributions have their own"),
    Flag("optimizer", CHOICES["optimizer"], _OURS.optimizer, "rmsprop is centred"),
    Flag("optimizer-epsilon", POSITIVE, _OURS.epsilon, "epsilon of the optimizer (default: 1e-3)"),
    Flag("max-gradient-norm", NORM, _OURS.max_gradient_norm, "all gradients together are clipped "
         "to this norm; 0 does not clip"),
]
SCHEDULE = [
    Flag("steps-per-epoch", COUNT, 25000, "steps (batches) in an epoch"),
    Flag("max-epoch", COUNT, 1000, "epochs to train for"),
    Flag("eval-every", COUNT, 10, "epochs between two evaluations"),
    Flag("eval-episodes", COUNT, 50, "whole games in an evaluation, and in --task eval"),
    Flag("eval-video", bool, False, "after each evaluation, write a video of one of its games to "
         "LOGDIR/videos/"),
    Flag("report", bool, False, "when the training is over, write LOGDIR/report.html: its result, "
         "curves, time, log"),
    Flag("learning-rate", POSITIVE, None, "constant learning rate (default: 1e-3, 4e-4 after epoch "
         "60, 2e-4 after epoch 100)"),
    Flag("exploration-steps", COUNT, None, "actions, from the first update on, over which the "
         "probability of a random action falls from 1 to --final-exploration, linearly (default: "
         "to 0.1 over 10 epochs, to 0.01 over 310 more)"),
    Flag("final-exploration", PROBABILITY, None, "probability of a random action after "
         "--exploration-steps (default: 0.01)"),
    Flag("random-repeat", COUNT, 1, "how often a random action is done in succession, at most"),
]
COMPUTING = [
    Flag("gpu", "IDS", None, "GPUs to use, such as 0 or 0,1 (sets CUDA_VISIBLE_DEVICES), -1 for "
         "none; the second one plays (default: all)"),
    Flag("towers", COUNT, 1, "GPUs to train on, each with an equal part of a batch"),
    *game_flags.SEED_AND_PRECISION,
    Flag("deterministic", bool, False, "play and train in turns, so that the same command always "
         "gives the same weights, also if the run is stopped and resumed; slower; needs --seed and "
         "--num-players 1"),
    Flag("xla", bool, False, "compile the network by XLA, which takes seconds for each shape of a "
         "batch; on CPUs slower than without it with TensorFlow 2, a little faster with TensorFlow "
         "1"),
]
GROUPS = {
    "task": game_flags.TASK, "learning": LEARNING, "algorithm": ALGORITHM,
    "games": game_flags.GAMES, "schedule": SCHEDULE, "computing": COMPUTING,
}
# fmt: on


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser."""
    parser = argparse.ArgumentParser(
        prog="DQN.py",
        description="Trains a deep Q network on an Atari game, plays with it, or evaluates it.",
    )
    for title, flags in GROUPS.items():
        game_flags.add_flags(parser.add_argument_group(title), flags, NAME)
    return parser


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Flags that are not given have the value of the preset, or else of `NAMED[args.algo]`.
    `algorithm` is the `Algorithm` of the flags.

    Raises:
      SystemExit: with code 2 if a flag is wrong, 0 after `--help`.
    """
    parser = make_parser()
    parser.set_defaults(**PRESETS[parser.parse_args(argv).preset])
    for name, value in NAMED[parser.parse_args(argv).algo]._asdict().items():
        if parser.get_default(name) == getattr(_OURS, name):  # no preset has set the flag
            parser.set_defaults(**{name: value})
    args = parser.parse_args(argv)
    for mistake in checks.mistakes(args):
        parser.error(mistake)
    args.algorithm = algorithm_of(args)
    args.logdir = game_flags.logdir_of(args, NAME)
    args.script = os.path.join(os.path.dirname(__file__), parser.prog)
    return args


def algorithm_of(args: argparse.Namespace) -> Algorithm:
    """Returns what the flags ask for."""
    named = NAMED[args.algo]
    if args.munchausen:  # its targets have another next action
        named = named._replace(double=False)
    given = {name: getattr(args, name, None) for name in Algorithm._fields}
    given["epsilon"] = args.optimizer_epsilon
    return get_algorithm(named._replace(**{k: v for k, v in given.items() if v is not None}))


def commands_of(args: argparse.Namespace, logdir: Optional[str]) -> Dict[str, str]:
    """Returns the commands that are of use after a run, see `next_commands`."""
    parser = make_parser()
    parser.set_defaults(**PRESETS[args.preset])
    return game_flags.next_commands(NAME, args.script, parser, args, ["algorithm", "games"], logdir)
