"""The command line of programs that learn an Atari game: flags in common, and what is made of them.

A program has tables of `Flag`, of which `TASK` and `GAMES` are here, and adds them to its parser by
`add_flags`. `task_mistakes` needs the flags alone. The other checks come later, when a flag that
cannot work ends the program before a graph is built: one line on standard error, exit code 2, as
for the flags. TensorFlow is loaded only where a check needs it.
"""

import argparse
import contextlib
import os
import sys
import textwrap
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence

from tensorpack.RL import AtariPlayers, LimitIdle, check_rom, find_rom
from tensorpack.utils import get_rng, logger
from tensorpack.utils._words import command_line, command_text, did_you_mean_file, number
from tensorpack.utils.checkpoints.files import CheckpointCorrupt
from tensorpack.utils.checkpoints.find import candidates
from tensorpack.utils.packing.npz import NAMED_ARRAYS

FRAME_SKIP = 4  # emulator frames for each action
POLICIES = ("never", "auto", "must")  # of --resume


COUNT = number("from 1 on", lambda n: n >= 1, int)
NATURAL = number("from 0 on", lambda n: n >= 0, int)
_AN_ACTION = number(f"from {FRAME_SKIP} on", lambda n: n >= FRAME_SKIP, int)
PROBABILITY = number("from 0 to 1", lambda x: 0 <= x <= 1)
POSITIVE = number("greater than 0", lambda x: 0 < x < float("inf"))
NORM = number("of at least 0", lambda x: 0 <= x < float("inf"))
SWITCH = "no-"  # a flag, and the same with "no-", which turns it off


class Flag(NamedTuple):
    """A flag."""

    name: str
    kind: Any  # the type of a number, its choices, bool, `SWITCH`, or the metavar of a text
    default: Any  # ... where it must be given
    help: str  # ends with the default if it does not name it


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
GAMES = [  # how they are played, and how scores compare
    Flag("sticky", PROBABILITY, 0.0, "probability with which a frame repeats the action of the one "
         "before, whatever the agent chose; 0.25 in most figures published since 2018"),
    Flag("life-loss-ends", SWITCH, True, "a lost life ends an episode for learning"),
    Flag("noop-max", NATURAL, 30, "a game begins with a random number of frames without an action, "
         "less than N; 0 for none"),
    Flag("fire-on-reset", SWITCH, False, "press FIRE once at the start of a game and after a lost "
         "life, instead of what the agent chose; for games that wait for it"),
    Flag("max-frames", _AN_ACTION, 120000, "emulator frames after which a game is cut "
         f"off, in training and in evaluations; 60 are a second, {FRAME_SKIP} an action"),
    Flag("eval-epsilon", PROBABILITY, 0.001, "probability of a random action in evaluations and in "
         "--task play"),
    Flag("idle-frames", NATURAL, 3600, "emulator frames after which an evaluation ends a game "
         "whose screen and score do not change; 0 for never, as in publications (default: 3600, a "
         "minute)"),
]
SEED_AND_PRECISION = [
    Flag("seed", NATURAL, None, "seed of all random streams"),
    Flag("precision", ("fp32", "bf16", "fp16"), "fp32", "bf16 computes convolutions and matrix "
         "products in bfloat16: faster on CPUs that have instructions for it, with other rounding; "
         "needs TensorFlow 2 and no GPU; fp16 is float16, for GPUs of compute capability 7.0; "
         "models stay float32"),
]
# fmt: on


def add_flags(group: Any, flags: Sequence[Flag], name: str = "") -> None:
    """Adds flags to a group of a parser, or to a parser; `name` is that of the example."""
    for flag in flags:
        option = f"--{flag.name}"
        about: Dict[str, Any] = {"help": _help_of(flag).replace("{name}", name)}
        about.update({"required": True} if flag.default is ... else {"default": flag.default})
        if flag.kind in (bool, SWITCH):
            about["action"] = "store_true"
        elif callable(flag.kind):
            about.update(type=flag.kind, metavar="N")
        else:
            about["metavar" if isinstance(flag.kind, str) else "choices"] = flag.kind
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


def task_mistakes(args: argparse.Namespace) -> Iterator[str]:
    """Yields what is wrong with the flags of `TASK`, `SEED_AND_PRECISION` and `--deterministic`."""
    task, resume = args.task, args.resume
    if task != "train" and args.load is None:
        yield f"--task {task} needs a model: --load train_log/.../model-NNN"
    if args.load is not None and not _is_model(args.load):
        yield (
            f"--load {args.load}: there is no such checkpoint, .npz file or log directory."
            f"{_nearest(args.load)}"
        )
    if resume != "never" and task != "train":
        yield f"--resume is for --task train; --task {task} loads its model by --load"
    if resume != "never" and args.load is not None:
        yield (
            "--resume and --load exclude each other: --resume continues a run with all of its "
            "state (weights, optimizer, replay memory, games, random streams, epoch); --load "
            "starts a new run with the weights alone"
        )
    if resume not in POLICIES:
        if not _is_model(resume):
            yield (
                f"--resume {resume}: it must be one of {', '.join(POLICIES)}, or an existing log "
                f"directory or checkpoint.{_nearest(resume)}"
            )
        directory = _directory_of(resume)
        if os.path.realpath(args.logdir or directory) != os.path.realpath(directory):
            yield (
                f"--resume {resume} writes to {directory}, so --logdir {args.logdir} is not "
                f"possible: leave it out. To keep {directory} unchanged, copy it and resume the "
                "copy; to start a new run with its weights, use --load"
            )
    if args.deterministic and task != "train":
        yield f"--deterministic is for --task train; --task {task} needs only --seed"
    if args.deterministic and args.seed is None:
        yield "--deterministic needs a seed: --seed N"


def logdir_of(args: argparse.Namespace, name: str) -> str:
    """Returns the log directory of a run of the example of this name."""
    if args.logdir is not None:
        return args.logdir
    return _default_logdir(args, name) if args.resume in POLICIES else _directory_of(args.resume)


def _default_logdir(args: argparse.Namespace, name: str) -> str:
    game = os.path.splitext(os.path.basename(args.rom))[0]
    return os.path.join("train_log", f"{name}-{game}")


def _directory_of(path: str) -> str:
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def _nearest(path: str) -> str:
    return did_you_mean_file(path, ".index") or did_you_mean_file(path)


def _is_model(path: str) -> bool:
    return os.path.exists(path) or os.path.exists(path + ".index")


@contextlib.contextmanager
def refusing(flag: str, *errors: Any) -> Iterator[None]:
    """Ends the program where an error of these types says that `flag`, with its value, is wrong."""
    try:
        yield
    except errors as error:
        argparse.ArgumentParser(usage="%(prog)s --help lists the flags").error(f"{flag}: {error}")


def find_game(name: str) -> str:
    """Returns the path of the game that `--rom` names."""
    with refusing(f"--rom {name}", ImportError, OSError, ValueError):
        path = find_rom(name)
        check_rom(path)
    return path


def find_weights(path: str) -> str:
    """Returns the checkpoint or file of arrays that `--load` names; of a directory, the newest.

    A file of arrays is read, of a checkpoint only the index.
    """
    from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars

    with refusing(f"--load {path}", OSError, ValueError, CheckpointCorrupt):
        if path.endswith(NAMED_ARRAYS):
            load_checkpoint_vars(path)
            return path
        return CheckpointReader(path).path


def check_precision(precision: str) -> None:
    """Checks that this TensorFlow can compute in this precision."""
    if precision != "fp32":
        from tensorpack.compat import tfv1
        from tensorpack.tfutils.precision import ComputeOptions

        with refusing(f"--precision {precision}", RuntimeError):
            ComputeOptions(precision).apply_to(tfv1.ConfigProto())


def prepare_log_dir(dirname: str, resume: str) -> str:
    """Does what `tensorpack.prepare_log_dir` does, for `--logdir` and `--resume`."""
    from tensorpack import train

    flag = f"--logdir {dirname}" if resume in POLICIES else f"--resume {resume}"
    with refusing(flag, OSError, CheckpointCorrupt):
        if resume == "must" and not candidates(dirname):
            raise FileNotFoundError("there is no checkpoint in it, and --resume must needs one")
        return train.prepare_log_dir(dirname, resume)


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
    idle_actions = -(-args.idle_frames // FRAME_SKIP)  # 0 stands for no limit, and 1 does not
    return LimitIdle(player, idle_actions) if evaluated and idle_actions else player


def rules_of_games(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns what decides how scores of these games compare: the values of `GAMES` by name."""
    return {name: getattr(args, name) for name in (flag.name.replace("-", "_") for flag in GAMES)}


def changed_rules(before: Dict[str, Any], now: Dict[str, Any]) -> Dict[str, str]:
    """Returns in words, by name, how the rules of a saved state differ from those of this run.

    Rules, name to value, that only one of them has are not compared: not all algorithms have all.
    """
    return {
        name: f"{name} was {value}, and is {now[name]}"
        for name, value in before.items()
        if name in now and value != now[name]
    }


def log_rules(rules: Dict[str, Any]) -> None:
    """Logs the rules, a few lines of them."""
    words = ", ".join(f"{name}={value}".replace(" ", "_") for name, value in rules.items())
    logger.info("Settings: \n" + textwrap.fill(words, 100, break_long_words=False))


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
    command, flags = command_line(), sys.argv[1:]
    program = command[: len(command) - len(flags)]
    is_of_script = os.path.realpath(sys.argv[0]) == os.path.realpath(script)
    if not is_of_script or command[len(program) :] != flags:  # another program calls this one
        program = [_shortest(sys.executable), _shortest(os.path.abspath(script))]
    program += ["--rom", args.rom]
    where = None if logdir is None else _shortest(logdir)
    logdir_flag = [] if where in (None, _default_logdir(args, name)) else ["--logdir", where]
    resume = command_text([*program, *_words(parser, args), *logdir_flag, "--resume", "auto"])
    model = command_text([*program, *_words(parser, args, needed), "--task"])
    return {  # the trainer puts the path of the last checkpoint there
        "resume": resume,
        "evaluate it": f"{model} eval --load {{model}}",
        "watch it play": f"{model} play --load {{model}}",
    }


def _words(parser: Any, args: argparse.Namespace, titles: Collection[str] = ()) -> List[str]:
    """Returns the flags whose values are not the defaults, with them; of some groups, or of all."""
    words = []
    for group in parser._action_groups:
        for action in group._group_actions:
            value = getattr(args, action.dest, None)
            # A preset has defaults of all groups.
            wanted = not titles or group.title in titles or action.dest == "preset"
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
