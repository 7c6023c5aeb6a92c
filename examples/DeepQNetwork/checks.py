"""What a command line can only be judged by with a look at the machine; wrong ones end the program.

As with `flags`, that is by a line on standard error and exit code 2. All of it comes before a graph
is built.
"""

import contextlib
from typing import Iterator, Type

import flags

# TensorFlow is loaded when `tp` is first used: where it is needed, and after --gpu is in force.
import tensorpack as tp
from tensorpack.RL import check_rom, find_rom

__all__ = ["check_precision", "find_game", "find_weights", "prepare_log_dir", "refusing"]


@contextlib.contextmanager
def refusing(flag: str, *errors: Type[Exception]) -> Iterator[None]:
    """Turns errors that mean that a flag is wrong into the end of the program.

    Args:
      flag: with its value.
      errors: their types; others pass through.
    """
    try:
        yield
    except errors as error:
        flags.make_parser().error(f"{flag}: {error}")


def find_game(name: str) -> str:
    """Returns the path of the game that `--rom` names."""
    with refusing(f"--rom {name}", ImportError, OSError, ValueError):
        path = find_rom(name)
        check_rom(path)
    return path


def find_weights(path: str) -> str:
    """Returns the checkpoint or archive that `--load` means."""
    from weights import find_model

    with refusing(f"--load {path}", OSError, ValueError, tp.CheckpointCorrupt):
        return find_model(path)


def check_precision(precision: str) -> None:
    """Checks that this TensorFlow can compute so."""
    if precision == "fp32":
        return
    from tensorpack.tfutils.precision import Computing

    with refusing(f"--precision {precision}", RuntimeError):
        Computing(precision).configured(tp.tfv1.ConfigProto())


def prepare_log_dir(dirname: str, resume: str) -> str:
    """Does what `tensorpack.prepare_log_dir` does, for `--logdir` and `--resume`."""
    from tensorpack.tfutils.checkpoint_search import candidates

    flag = f"--logdir {dirname}" if resume in flags.POLICIES else f"--resume {resume}"
    with refusing(flag, OSError, tp.CheckpointCorrupt):
        if resume == "must" and not candidates(dirname):
            raise FileNotFoundError("there is no checkpoint in it, and --resume must needs one")
        return tp.prepare_log_dir(dirname, resume)
