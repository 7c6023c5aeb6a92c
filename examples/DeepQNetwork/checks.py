"""Checks a command line against the machine, its files and the run that is resumed.

A flag that cannot work ends the program before a graph is built: one line on standard error, exit
code 2, as in `flags`. TensorFlow is loaded only where a check needs it, after --gpu is in force.
"""

import argparse
import contextlib
import ipaddress
import os
from typing import Any, Iterator, List, Mapping, Optional, Type

from task_flags import POLICIES

import tensorpack as tp
from tensorpack.RL import check_rom, find_rom
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.processes import usable_cores

__all__ = [
    "addresses_of",
    "check_memory",
    "check_precision",
    "check_rules",
    "check_towers",
    "find_game",
    "find_group",
    "find_weights",
    "give_cores",
    "prepare_log_dir",
    "refusing",
]

RESERVED_BYTES = 2 * 2**30  # for TensorFlow, 50 batches in the queue, and everything else
# Weights that were learned with another one are of no use ...
_FIXED_RULES = ("algo", "dueling", "noisy", "network", "atoms")
_ONE_NETWORK = frozenset(["Double", "DQN"])  # ... but for these: they differ in their targets


@contextlib.contextmanager
def refusing(flag: str, *errors: Type[Exception]) -> Iterator[None]:
    """Ends the program if one of these errors is raised, because it means that a flag is wrong.

    Args:
      flag: with its value.
      errors: their types; others pass through.
    """
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
        if args.key is None and not all(map(_is_here, cluster.workers)):
            raise ValueError(
                f"the workers {', '.join(cluster.workers)} are on several machines, so each needs "
                "a --key FILE: make one by tensorpack.dataflow.make_remote_key"
            )
    return cluster


def addresses_of(cluster: Cluster) -> List[str]:
    """Returns the addresses of the learner and of the actors, as this process uses them."""
    found = [f"tcp://{each}" for each in cluster.workers]
    host, _, port = cluster.address.rpartition(":")
    if not _is_number(host) and host != "localhost":
        found[cluster.index] = f"tcp://*:{port}"  # sockets are bound to numbers
    return found


def _is_here(address: str) -> bool:
    host = address.rpartition(":")[0]
    if host == "localhost":
        return True
    return _is_number(host) and ipaddress.ip_address(host.strip("[]")).is_loopback


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def find_weights(path: str) -> str:
    """Returns the checkpoint or `.npz` archive that `--load` names; of a directory, the newest.

    An archive is read, of a checkpoint only the index.
    """
    from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
    from tensorpack.tfutils.sessinit import get_model_loader

    with refusing(f"--load {path}", OSError, ValueError, tp.CheckpointCorrupt):
        if path.endswith(".npy"):
            get_model_loader(path)  # its error says what to do with it
        if path.endswith(".npz"):
            load_checkpoint_vars(path)
            return path
        return CheckpointReader(path).path


def check_precision(precision: str) -> None:
    """Checks that this TensorFlow can compute in this precision."""
    if precision == "fp32":
        return
    from tensorpack.tfutils.precision import ComputeOptions

    with refusing(f"--precision {precision}", RuntimeError):
        ComputeOptions(precision).apply_to(tp.tfv1.ConfigProto())


def prepare_log_dir(dirname: str, resume: str) -> str:
    """Does what `tensorpack.prepare_log_dir` does, for `--logdir` and `--resume`."""
    from tensorpack.utils.checkpoints import candidates

    flag = f"--logdir {dirname}" if resume in POLICIES else f"--resume {resume}"
    with refusing(flag, OSError, tp.CheckpointCorrupt):
        if resume == "must" and not candidates(dirname):
            raise FileNotFoundError("there is no checkpoint in it, and --resume must needs one")
        return tp.prepare_log_dir(dirname, resume)


def check_towers(towers: int) -> None:
    """Checks that there is a GPU for each tower."""
    gpus = get_num_gpu()
    if towers > max(gpus, 1):
        with refusing(f"--towers {towers}", ValueError):
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
    """Compares the rules of a saved state with those of the run that resumes it.

    Rules that only one of them has are not compared: older states have none.

    Args:
      before: name of a rule to its value, when the state was saved.
      now: the same of this run.

    Returns:
      the differences in words; empty if there are none.

    Raises:
      ValueError: the weights are those of another network.
    """
    changed = {
        name: f"{name} was {value}, and is {now[name]}"
        for name, value in before.items()
        if name in now and value != now[name]
    }
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
      memory_size: number of transitions.
      bytes_each: what one of them takes.
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
