"""Checks of a DQN alone: its flags, the group of `--actors`, the machine, the run that is resumed.

`mistakes` needs the flags alone. The others come later, see `tensorpack.contrib.game_flags`, which
has those of any program on games.
"""

import argparse
import ipaddress
import os
from typing import Any, Iterator, List, Mapping, Optional

from algorithm import NAMED, PRESETS, Algorithm, unread_fields

from tensorpack.contrib.game_flags import changed_rules, refusing, task_mistakes
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.workers.processes import usable_cores

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
    yield from _actors_mistakes(args)


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


def _actors_mistakes(args: argparse.Namespace) -> Iterator[str]:
    if args.key is not None and not args.actors:
        yield "--key is for --actors on other machines"
    if not args.actors:
        return
    if args.task != "train":
        yield f"--actors is for --task train; --task {args.task} plays in one process"
    if args.deterministic:
        yield (
            "--deterministic and --actors exclude each other: in which order the games of several "
            "processes come, and with which weights they are played, differs from run to run"
        )
    if args.resume == "must":
        yield (
            "--resume must and --actors exclude each other: the games of actors are not saved, so "
            "such a run cannot be resumed exactly. With --resume auto new games begin, and "
            "everything else is restored"
        )
    if args.key is not None and not os.path.exists(args.key):
        yield (
            f"--key {args.key}: there is no such file. Make it, once, by "
            f"tensorpack.dataflow.make_remote_key({args.key!r}), and copy it to all machines"
        )


def find_group(args: argparse.Namespace) -> Optional[Cluster]:
    """Returns the processes of a run with `--actors`; None for a run of one process."""
    with refusing("--actors", ValueError):
        cluster = Cluster.from_environment()
        size = 1 if cluster is None else cluster.num_workers
        if not args.actors:
            if size > 1 and args.task == "train":
                raise ValueError(
                    f"it is needed for the {size} workers that were started: one learns and the "
                    "others play"
                )
            return None
        if cluster is None or size < 2 or cluster.ps:
            raise ValueError(
                "it needs a group of at least two workers, and no parameter servers: python -m "
                "tensorpack.launch --workers 3 DQN.py --actors ..."
            )
        hosts = map(_host_of, cluster.workers)
        if args.key is None and not all(host is not None and host.is_loopback for host in hosts):
            raise ValueError(
                f"the workers {', '.join(cluster.workers)} are on several machines, so each needs "
                "a --key FILE: make one by tensorpack.dataflow.make_remote_key"
            )
    return cluster


def addresses_of(cluster: Cluster) -> List[str]:
    """Returns the addresses of the learner and of the actors, as this process uses them."""
    found = [f"tcp://{each}" for each in cluster.workers]
    if _host_of(cluster.address) is None:  # sockets are bound to numbers
        found[cluster.index] = f"tcp://*:{cluster.address.rpartition(':')[2]}"
    return found


def _host_of(address: str) -> Any:
    """Returns the host as an `ipaddress`; None if it is a name."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return None


def check_towers(towers: int) -> None:
    """Checks that there is a GPU for each tower."""
    gpus = get_num_gpu()
    with refusing(f"--towers {towers}", ValueError):
        if towers > max(gpus, 1):
            raise ValueError(
                f"this program sees {gpus} GPUs, of those that --gpu and CUDA_VISIBLE_DEVICES name"
            )


def give_cores(cluster: Cluster) -> None:
    """Gives a learner the cores that actors of its machine, one thread each, do not need.

    The launcher gives all workers the same; what the user has set otherwise stays. Called before
    TensorFlow is loaded.
    """
    host = cluster.address.rpartition(":")[0]
    here = [each.rpartition(":")[0] for each in cluster.workers].count(host)
    cores = usable_cores()
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        if os.environ.get(name) == str(max(1, cores // here)):
            os.environ[name] = str(max(1, cores - (here - 1)))


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
