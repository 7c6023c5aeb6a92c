"""The command line of DQN.py: one table of flags, and what is made of their values.

`parse` gives the values, checked by `checks.py`. Other examples on games use the groups `TASK` and
`GAMES`, `add_flags` and `next_commands` too. Imports nothing that is slow.
"""

import argparse
import os
import shlex
import shutil
import sys
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Sequence

import checks
from algorithm import CHOICES, NAMED, PRESETS, Algorithm, get_algorithm

from tensorpack.RL import AtariPlayers, LimitIdle
from tensorpack.utils import get_rng

NAME = "DQN"  # of the example, in the names of log directories
FRAME_SKIP = 4  # emulator frames for each action


class Number(NamedTuple):
    """A type for `add_argument`: numbers in a range."""

    metavar: str
    convert: Callable[[str], Any]
    valid: Callable[[Any], bool]
    needed: str

    def __call__(self, text: str) -> Any:
        try:
            value = self.convert(text)
        except ValueError:
            value = float("nan")
        if not self.valid(value):
            raise argparse.ArgumentTypeError(f"must be {self.needed}, got {text!r}")
        return value


def at_least(least: int) -> Number:
    """Returns the type of whole numbers from `least` on."""
    return Number("N", int, lambda x: x >= least, f"a whole number of at least {least}")


COUNT, NATURAL = at_least(1), at_least(0)
PROBABILITY = Number("P", float, lambda x: 0 <= x <= 1, "a number from 0 to 1")
POSITIVE = Number("R", float, lambda x: 0 < x < float("inf"), "a number greater than 0")
NORM = Number("R", float, lambda x: 0 <= x < float("inf"), "a number of at least 0")
SWITCH = "no-"  # a flag, and the same with "no-", which turns it off


class Flag(NamedTuple):
    """A flag."""

    name: str
    kind: Any  # a `Number`, its choices, bool, `SWITCH`, or the metavar of a text
    default: Any  # ... where it must be given
    help: str  # ends with the default if it does not name it


_OURS = Algorithm()

# fmt: off
TASK = [
    Flag("rom", "GAME.bin", ..., "the game: a path, or a file name in "
         "$TENSORPACK_DATASET/atari_rom/ or in ale-py"),
    Flag("task", ("train", "play", "eval"), "train", "default: train"),
    Flag("load", "MODEL", None, "load the weights of a checkpoint, a log directory or an .npz "
         "file; a training starts a new run with them"),
    Flag("resume", "never|auto|must|PATH", "never", "continue a run exactly: auto resumes the run "
         "in the log directory if there is one, must is an error if it cannot be resumed exactly, "
         "PATH resumes the run in another log directory, or from a checkpoint in it, and writes to "
         "that directory"),
    Flag("video", "FILE.mp4", None, "write the game of --task play to a file (default: show it in "
         "a window, or without a screen write LOGDIR/play.mp4)"),
    Flag("logdir", "DIR", None, "directory for the log, the summaries and the models (default: "
         "train_log/{name}-GAME; with --resume PATH: the directory of PATH)"),
]
LEARNING = [
    Flag("preset", tuple(PRESETS), "2017", "settings of a publication, see README.md; a flag that "
         "is given too overrides them (default: 2017, whose defaults are listed here)"),
    Flag("num-players", COUNT, 1, "games played at once in training, see README.md"),
    Flag("batch-size", COUNT, 64, "transitions in a batch"),
    Flag("update-freq", COUNT, 4, "transitions played for each batch, by all players together"),
    Flag("memory-size", COUNT, 10**6, "transitions in the replay memory (7 kB each)"),
    Flag("init-memory-size", COUNT, 50000, "transitions played before the training begins"),
    Flag("target-sync", COUNT, 2500, "steps between two updates of the target network"),
]
ALGORITHM = [
    Flag("algo", tuple(NAMED), "Double", "what is learned: values (Double, DQN, Dueling) or "
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
GAMES = [  # how they are played, and how scores compare
    Flag("sticky", PROBABILITY, 0.0, "probability with which a frame repeats the action of the one "
         "before, whatever the agent chose; 0.25 in most figures published since 2018"),
    Flag("life-loss-ends", SWITCH, True, "a lost life ends an episode for learning"),
    Flag("noop-max", NATURAL, 30, "a game begins with a random number of frames without an action, "
         "less than N; 0 for none"),
    Flag("fire-on-reset", SWITCH, False, "press FIRE once at the start of a game and after a lost "
         "life, instead of what the agent chose; for games that wait for it"),
    Flag("max-frames", at_least(FRAME_SKIP), 120000, "emulator frames after which a game is cut "
         f"off, in training and in evaluations; 60 are a second, {FRAME_SKIP} an action"),
    Flag("eval-epsilon", PROBABILITY, 0.001, "probability of a random action in evaluations and in "
         "--task play"),
    Flag("idle-frames", NATURAL, 3600, "emulator frames after which an evaluation ends a game "
         "whose screen and score do not change; 0 for never, as in publications (default: 3600, a "
         "minute)"),
]
SCHEDULE = [
    Flag("steps-per-epoch", COUNT, 25000, "steps (batches) in an epoch"),
    Flag("max-epoch", COUNT, 1000, "epochs to train for"),
    Flag("eval-every", COUNT, 10, "epochs between two evaluations"),
    Flag("eval-episodes", COUNT, 50, "whole games in an evaluation, and in --task eval"),
    Flag("eval-video", bool, False, "after each evaluation, write a video of one of its games, "
         "with the values of the actions, to LOGDIR/videos/"),
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
SEED_AND_PRECISION = [
    Flag("seed", NATURAL, None, "seed of all random streams"),
    Flag("precision", ("fp32", "bf16", "fp16"), "fp32", "bf16 computes convolutions and matrix "
         "products in bfloat16: faster on CPUs that have instructions for it, with other rounding; "
         "needs TensorFlow 2 and no GPU; fp16 is float16, for GPUs of compute capability 7.0; "
         "models stay float32"),
]
COMPUTING = [
    Flag("gpu", "IDS", None, "GPUs to use, such as 0 or 0,1 (sets CUDA_VISIBLE_DEVICES), -1 for "
         "none; the second one plays (default: all)"),
    Flag("towers", COUNT, 1, "GPUs to train on, each with an equal part of a batch"),
    *SEED_AND_PRECISION,
    Flag("deterministic", bool, False, "play and train in turns, so that the same command always "
         "gives the same weights, also if the run is stopped and resumed; slower; needs --seed and "
         "--num-players 1"),
    Flag("actors", bool, False, "learn in one process, and play in the others: see README.md for "
         "the command that starts them; each plays --num-players games"),
    Flag("weights-every", COUNT, 200, "steps between two updates of the weights of --actors"),
    Flag("key", "FILE", None, "the key of tensorpack.dataflow.make_remote_key, the same on all "
         "machines; needed for --actors on several"),
    Flag("xla", bool, False, "compile the network by XLA, which takes seconds for each shape of a "
         "batch; on CPUs slower than without it with TensorFlow 2, a little faster with TensorFlow "
         "1"),
]
# fmt: on

GROUPS = {
    "task": TASK,
    "learning": LEARNING,
    "algorithm": ALGORITHM,
    "games": GAMES,
    "schedule": SCHEDULE,
    "computing": COMPUTING,
}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser."""
    parser = argparse.ArgumentParser(
        prog="DQN.py",
        description="Trains a deep Q network on an Atari game, plays with it, or evaluates it.",
    )
    for title, flags in GROUPS.items():
        add_flags(parser.add_argument_group(title), flags, NAME)
    return parser


def add_flags(group: Any, flags: Sequence[Flag], name: str = "") -> None:
    """Adds flags to a group of a parser, or to a parser; `name` is that of the example."""
    for flag in flags:
        option = f"--{flag.name}"
        about: Dict[str, Any] = {"help": _help_of(flag).replace("{name}", name)}
        about.update({"required": True} if flag.default is ... else {"default": flag.default})
        if flag.kind in (bool, SWITCH):
            about["action"] = "store_true"
        elif isinstance(flag.kind, Number):
            about.update(type=flag.kind, metavar=flag.kind.metavar)
        else:
            about["choices" if isinstance(flag.kind, tuple) else "metavar"] = flag.kind
        group.add_argument(option, **about)
        if flag.kind == SWITCH:
            about = {"help": f"not {option}", "dest": flag.name.replace("-", "_")}
            about.update(action="store_false", default=flag.default)
            group.add_argument(f"--no-{flag.name}", **about)


def _help_of(flag: Flag) -> str:
    value = flag.default
    if flag.kind == SWITCH and value is not None:
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = f"{value:g}"
    if "default: " in flag.help or value in (None, ...) or flag.kind is bool:
        return flag.help
    return f"{flag.help} (default: {value})"


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Flags that are not given have the value of the preset. `algorithm` is the `Algorithm` of the
    flags.

    Raises:
      SystemExit: with code 2 if a flag is wrong, 0 after `--help`.
    """
    parser = make_parser()
    parser.set_defaults(**PRESETS[parser.parse_args(argv).preset])
    args = parser.parse_args(argv)
    for mistake in checks.mistakes(args):
        parser.error(mistake)
    args.algorithm = algorithm_of(args)
    args.logdir = checks.logdir_of(args, NAME)
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


def get_player(
    args: argparse.Namespace,
    rom: str,
    num_envs: int,
    seed: Optional[int] = None,
    backend: str = "auto",
    evaluated: bool = False,
) -> Any:
    """Returns games with the options of the flags, see `AtariPlayers`; by default a random seed.

    Training and evaluation play the same games.
    """
    player = AtariPlayers(
        rom,
        num_envs=num_envs,
        frame_skip=FRAME_SKIP,
        seed=int(get_rng().randint(2**31)) if seed is None else seed,
        backend=backend,
        max_noops=args.noop_max,
        sticky=args.sticky,
        fire_on_reset=args.fire_on_reset,
        max_episode_actions=args.max_frames // FRAME_SKIP,
    )
    idle_actions = args.idle_frames // FRAME_SKIP
    return LimitIdle(player, idle_actions) if evaluated and idle_actions else player


def rules_of_games(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns what decides how scores of these games compare: the values of `GAMES` by name."""
    names = (flag.name.replace("-", "_") for flag in GAMES)
    return {name: getattr(args, name) for name in names}


def commands_of(args: argparse.Namespace, logdir: Optional[str]) -> Dict[str, str]:
    """Returns the commands that are of use after a run, see `next_commands`."""
    parser = make_parser()
    parser.set_defaults(**PRESETS[args.preset])
    return next_commands(NAME, args.script, parser, args, ("algorithm", "games"), logdir)


# What `next_commands` does not write out as it was given.
_NOT_AGAIN = {"help", "rom", "task", "load", "resume", "logdir", "video"}


def next_commands(
    name: str,
    script: str,
    parser: argparse.ArgumentParser,
    args: argparse.Namespace,
    needed: Collection[str],
    logdir: Optional[str],
) -> Dict[str, str]:
    """Returns the commands that a run names when it ends: `commands` of a `TrainConfig`.

    They resume it, and use its model. Only flags are written out whose values are not the defaults.

    Args:
      name: of the example.
      script: the program.
      parser: has the defaults, those of a preset too.
      args: what it has parsed.
      needed: titles of the groups of flags that an evaluation must have as the training had them.
      logdir: the log directory of the run, which may be a numbered one; None if it has none.
    """
    python = sys.executable
    python = "python" if shutil.which("python") == python else _shortest(python)
    program = [python, _shortest(os.path.abspath(script)), "--rom", args.rom]
    where = None if logdir is None else _shortest(logdir)
    there = [] if where in (None, checks.default_logdir(args, name)) else ["--logdir", where]
    resume = [*program, *_words(parser, args, None), *there, "--resume", "auto"]
    commands = {"resume": "the same command with --resume auto, for the whole group"}
    if not getattr(args, "actors", False):
        commands["resume"] = _join(resume)
    model = [*program, *_words(parser, args, needed), "--task"]
    for purpose, task in [("evaluate it", "eval"), ("watch it play", "play")]:
        # The trainer puts the path of the last checkpoint there.
        commands[purpose] = _join([*model, task, "--load"]) + " {model}"
    return commands


def _words(
    parser: argparse.ArgumentParser, args: argparse.Namespace, titles: Optional[Collection[str]]
) -> List[str]:
    """Returns the flags whose values are not the defaults, with them; of all groups, or some."""
    words = []
    for group in parser._action_groups:
        for action in group._group_actions:
            value = getattr(args, action.dest, None)
            # A preset has defaults of all groups.
            wanted = titles is None or group.title in titles or action.dest == "preset"
            if not wanted or action.dest in _NOT_AGAIN or value == parser.get_default(action.dest):
                continue
            if action.nargs != 0:
                words += [action.option_strings[0], str(value)]
            elif value == action.const:
                words.append(action.option_strings[0])
    return words


def _shortest(path: str) -> str:
    """Returns a path as seen from the working directory, if it is below that."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith(os.pardir) else relative


def _join(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(each) for each in words)
