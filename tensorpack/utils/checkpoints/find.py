"""Finds the newest checkpoint in a directory that is whole.

The file `checkpoint`, which TensorFlow keeps, is only a hint: it may be missing, damaged, or name a
checkpoint that is.
"""

import os
import re
from typing import Callable, List, Optional, Tuple, TypeVar

from .. import logger
from .files import INDEX, REPLACED, CheckpointCorrupt, names_with_prefix, step_of, verify

POINTER = "checkpoint"

_LINE = re.compile(
    rb'^\s*(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*"((?:[^"\\\n]|\\.)*)"\s*$',
    re.MULTILINE,
)
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)")

Found = TypeVar("Found")


class NoValidCheckpoint(CheckpointCorrupt):
    """There are checkpoints in a directory, and each of them is damaged.

    Attributes:
      path: of the directory.
      reason: what is wrong with each.
    """

    def __str__(self) -> str:
        return (
            f"No checkpoint in {self.path} is whole: {self.reason}. Repair or restore one, or "
            "move them all away to start a new run."
        )


def newest_valid(directory: str, content: bool = True) -> Optional[str]:
    """Returns the newest whole checkpoint in a directory, as a prefix.

    That is the one which the file `checkpoint` names; otherwise one of those that it lists, from
    the end; otherwise the one of the highest step. Each damaged one that is skipped is logged.

    Returns None if there is no checkpoint, damaged or not. For `content` see `verify`.
    """

    def check(prefix: str) -> str:
        verify(prefix, content)
        return prefix

    return first_whole(directory, check)


def first_whole(directory: str, read: Callable[[str], Optional[Found]]) -> Optional[Found]:
    """Returns the first object that a function makes of the checkpoints in a directory, if any.

    `read` takes a prefix; it returns None to have the next one, and raises `CheckpointCorrupt` or
    `FileNotFoundError` if that one is damaged.
    """
    problems, skipped = [], False
    for prefix in candidates(directory):
        try:
            found = read(prefix)
        except (CheckpointCorrupt, FileNotFoundError) as error:
            reason = getattr(error, "reason", f"{prefix + INDEX} is missing")
            problems.append(f"{prefix} ({reason})")
            logger.warning(f"Skipping the checkpoint {prefix}: {reason}")
            continue
        if found is not None:
            if problems:
                logger.warning(f"The newest whole checkpoint in {directory} is {prefix}.")
            return found
        skipped = True
    if problems and not skipped:
        raise NoValidCheckpoint(directory, "; ".join(problems))
    return None


def get_all_checkpoints(
    dir: "str | os.PathLike[str]", prefix: str = "model"
) -> List[Tuple[str, int]]:
    """Returns the checkpoints `{prefix}-{step}` in a directory, as (path, step), by step."""
    found = []
    for name in os.listdir(dir):
        stem, _, suffix = name.rpartition(".")
        step = step_of("model" + stem[len(prefix) :]) if stem.startswith(prefix) else None
        if suffix == INDEX[1:] and step is not None:
            found.append((os.path.join(os.fsdecode(dir), stem), step))
    return sorted(found, key=lambda each: each[1])


def candidates(directory: str) -> List[str]:
    """Returns all checkpoints in a directory, whole or not, the best first, each once."""
    if not os.path.isdir(directory):
        return []
    found = [prefix for prefix, _ in reversed(get_all_checkpoints(directory))]
    end = REPLACED + INDEX
    paths = names_with_prefix(os.path.join(directory, "model-"))
    replaced = {path[: -len(end)] for path in paths if path.endswith(end)}
    ordered = []
    for prefix in dict.fromkeys(pointed_to(directory)[::-1] + found + sorted(replaced)):
        # One whose replacement was cut short comes after its replacement.
        if prefix not in replaced or os.path.exists(prefix + INDEX):
            ordered.append(prefix)
        if prefix in replaced:
            ordered.append(prefix + REPLACED)
    return ordered


def pointed_to(directory: str) -> List[str]:
    """Returns the checkpoints that the file `checkpoint` lists, the newest last.

    Those in other directories do not count. Logs a warning if that, or damage, leaves none of them.
    """
    pointer = os.path.join(directory, POINTER)
    try:
        with open(pointer, "rb") as file:
            lines = _LINE.findall(file.read())
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning(f"{pointer} is ignored: {error}")
        return []
    paths = [os.fsdecode(_ESCAPED.sub(_unescape, text)) for _, text in lines]
    # The newest last, where it is not so already.
    newest = [path for (key, _), path in zip(lines, paths) if key == b"model_checkpoint_path"]
    listed = [path for path in paths if path not in newest[-1:]] + newest[-1:]
    here = [
        os.path.join(directory, os.path.basename(path))
        for path in dict.fromkeys(listed)
        if _is_beside(path, directory)
    ]
    if not here:
        logger.warning(f"{pointer} names no checkpoint beside it, and is ignored.")
    return here


def _is_beside(path: str, directory: str) -> bool:
    parent, name = os.path.split(path)
    return bool(name) and (not parent or os.path.abspath(parent) == os.path.abspath(directory))


def _unescape(match: "re.Match[bytes]") -> bytes:
    text = match.group(1)
    return bytes([int(text, 8) & 0xFF]) if text.isdigit() else text
