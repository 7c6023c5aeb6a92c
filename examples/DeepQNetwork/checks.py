"""Checks of a DQN alone: its flags, the machine, the run that is resumed.

`mistakes` needs the flags alone. The others come later, see `tensorpack.contrib.game_flags`, which
has those of any program on games.
"""

import argparse
from typing import Any, Iterator, Mapping, Optional

from algorithm import NAMED, PRESETS, Algorithm, unread_fields

from tensorpack.contrib.game_flags import changed_rules, refusing, task_mistakes
from tensorpack.utils.gpu import get_num_gpu

RESERVED_BYTES = 2 * 2**30  # for TensorFlow, 50 batches in the queue, and everything else
# Weights that were learned with another one are of no use ...
_FIXED_RULES = ("algo", "dueling", "noisy", "network", "atoms")
_ONE_NETWORK = frozenset(["Double", "DQN"])  # ... but for these: they differ in their targets


def mistakes(args: argparse.Namespace) -> Iterator[str]:
    """Yields what is wrong with these flags of DQN.py together, in words of the command line."""
    trains, memory, filled = args.task == "train", args.memory_size, args.init_memory_size
    yield from _algorithm_mistakes(args)
    if args.eval_video and not trains:
        yield "--eval-video is for --task train; --task play writes a video of a game"
    if args.report and not trains:
        yield "--report is for --task train; for a page of a run: tensorpack report LOGDIR"
    if trains and args.final_exploration is not None and args.exploration_steps is None:
        yield "--final-exploration needs --exploration-steps"
    if trains and filled > memory:
        yield f"--init-memory-size {filled} is more than --memory-size {memory}"
    if trains and args.batch_size % args.towers:
        yield f"--batch-size {args.batch_size} is not a multiple of --towers {args.towers}"
    yield from task_mistakes(args)
    if args.deterministic and args.num_players != 1:
        yield f"--deterministic plays one game at a time: --num-players 1, got {args.num_players}"
    if args.deterministic and args.xla:
        yield (
            "--deterministic and --xla exclude each other: XLA compiles depending on earlier "
            "computations, so a resumed run may use other code"
        )


def _algorithm_mistakes(args: argparse.Namespace) -> Iterator[str]:
    preset, learns = PRESETS[args.preset], NAMED[args.algo].learns

    def named(name: str, value: Any = None) -> str:
        """Returns a flag, with the preset that it comes from."""
        flag = f"--{name}" if value is None else f"--{name} {value}"
        same = preset.get(name) == getattr(args, name)
        return f"{flag} (of --preset {args.preset})" if same else flag

    if args.munchausen and (args.double or learns == "c51"):
        other = named("double") if args.double else named("algo", args.algo)
        remedy = "add --no-munchausen" if preset.get("munchausen") else "leave --munchausen out"
        yield f"{named('munchausen')} excludes {other}: {remedy}"
    if learns == "c51" and args.atoms == 1:
        yield f"{named('algo', args.algo)} needs at least 2 --atoms, or 0 for those of its paper"
    for name in unread_fields(learns):
        value, default = getattr(args, name), getattr(Algorithm(), name)
        if value != default:
            of_preset = preset.get(name) == value
            remedy = f"add --{name} {default}" if of_preset else f"leave --{name} out"
            flags = named(name, value), named("algo", args.algo)
            yield f"{flags[0]} has no effect with {flags[1]}: {remedy}"


def check_towers(towers: int) -> None:
    """Checks that there is a GPU for each tower."""
    gpus = get_num_gpu()
    with refusing(f"--towers {towers}", ValueError):
        if towers > max(gpus, 1):
            raise ValueError(
                f"this program sees {gpus} GPUs, of those that --gpu and CUDA_VISIBLE_DEVICES name"
            )


def check_rules(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Returns in words how the rules of a saved state differ from those of the run that resumes it.

    Raises:
      ValueError: the weights are those of another network.
    """
    changed = changed_rules(before, now)
    may_change = ["algo"] if {before.get("algo"), now.get("algo")} <= _ONE_NETWORK else []
    fixed = [changed[name] for name in _FIXED_RULES if name in changed and name not in may_change]
    if fixed:
        raise ValueError(
            f"The run cannot be resumed with another algorithm: {'; '.join(fixed)}. Resume with "
            "the same one, or start a new run with the weights (--load)."
        )
    return "; ".join(changed.values())


def check_memory(memory_size: int, bytes_each: int, available: Optional[int]) -> None:
    """Checks that a replay memory fits into what is free.

    Its pages are taken one by one, so that without this check the process would be killed after
    hours of training.

    Args:
      memory_size: number of transitions, each of which takes `bytes_each`.
      available: free bytes, or None if unknown.

    Raises:
      ValueError: it does not fit; names the largest size that does.
    """
    if available is None or memory_size * bytes_each <= available - RESERVED_BYTES:
        return
    exactly = max(available - RESERVED_BYTES, 0) // bytes_each
    largest = exactly // 1000 * 1000 or exactly
    raise ValueError(
        f"a replay memory of {memory_size} transitions takes {memory_size * bytes_each / 1e9:.1f} "
        f"GB, but {available / 1e9:.1f} GB are free, of which {RESERVED_BYTES / 1e9:.1f} GB are "
        "reserved for everything else: "
        + (f"use --memory-size {largest} or less" if largest else "free some memory first")
    )
