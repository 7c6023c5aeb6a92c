"""Finds the newest checkpoint in a directory that is whole.

The file `checkpoint`, which TensorFlow keeps, is only a hint: it may be missing, damaged, or name a
checkpoint that is.
"""

import os
import re
from typing import Callable, Dict, List, Optional, Tuple, TypeVar

from .. import logger
from .files import INDEX, REPLACED, CheckpointCorrupt, names_with_prefix, step_of, verify

POINTER = "checkpoint"

_LINE = re.compile(
    rb'^\s*(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*"((?:[^"\\\n]|\\.)*)"\s*$',
    re.MULTILINE,
)
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)")

Result = TypeVar("Result")


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

    def read(prefix: str) -> str:
        verify(prefix, content)
        return prefix

    return first_whole(directory, read)


def first_whole(directory: str, read: Callable[[str], Optional[Result]]) -> Optional[Result]:
    """Returns the first object that a function makes of the checkpoints in a directory, if any.

    `read` takes a prefix; it returns None to have the next one, and raises `CheckpointCorrupt` or
    `FileNotFoundError` if that one is damaged.
    """
    problems, is_any_whole = [], False
    for prefix in candidates(directory):
        try:
            result = read(prefix)
        except (CheckpointCorrupt, FileNotFoundError) as error:
            reason = getattr(error, "reason", f"{prefix + INDEX} is missing")
            problems.append(f"{prefix} ({reason})")
            logger.warning(f"Skipping the checkpoint {prefix}: {reason}")
            continue
        if result is not None:
            if problems:
                logger.warning(f"The newest whole checkpoint in {directory} is {prefix}.")
            return result
        is_any_whole = True
    if problems and not is_any_whole:
        raise NoValidCheckpoint(directory, "; ".join(problems))
    return None


def get_all_checkpoints(
    dir: "str | os.PathLike[str]", prefix: str = "model"
) -> List[Tuple[str, int]]:
    """Returns the checkpoints `{prefix}-{step}` in a directory, as (path, step), by step."""
    name = re.compile(re.escape(prefix) + r"-([0-9]{1,18})\.index")
    matches = filter(None, map(name.fullmatch, os.listdir(os.fsdecode(dir))))
    found = [(int(match.group(1)), match.group()[: -len(INDEX)]) for match in matches]
    return [(os.path.join(os.fsdecode(dir), stem), step) for step, stem in sorted(found)]


def candidates(directory: str) -> List[str]:
    """Returns all checkpoints in a directory, whole or not, the best first, each once."""
    if not os.path.isdir(directory):
        return []
    end = REPLACED + INDEX
    paths = names_with_prefix(os.path.join(directory, "model-"))
    replaced = {path[: -len(end)] for path in paths if path.endswith(end)}
    prefixes = {*replaced, *(prefix for prefix, _ in get_all_checkpoints(directory))}
    by_step = sorted(prefixes, key=lambda path: step_of(os.path.basename(path)) or 0, reverse=True)
    result = []
    for prefix in dict.fromkeys(pointed_to(directory)[::-1] + by_step):
        # One whose replacement was cut short comes after its replacement.
        if prefix not in replaced or os.path.exists(prefix + INDEX):
            result.append(prefix)
        if prefix in replaced:
            result.append(prefix + REPLACED)
    return result


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
    lines.sort(key=lambda line: line[0] == b"model_checkpoint_path")  # the newest last
    names: Dict[str, None] = {}
    for _, text in lines:
        parent, name = os.path.split(os.fsdecode(_ESCAPED.sub(_unescape, text)))
        if name and (not parent or os.path.abspath(parent) == os.path.abspath(directory)):
            names.pop(name, None)
            names[name] = None
    if not names:
        logger.warning(f"{pointer} names no checkpoint beside it, and is ignored.")
    return [os.path.join(directory, name) for name in names]


def _unescape(match: "re.Match[bytes]") -> bytes:
    text = match.group(1)
    return bytes([int(text, 8) & 0xFF]) if text.isdigit() else text
