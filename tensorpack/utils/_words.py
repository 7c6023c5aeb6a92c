"""Words in messages and on command lines: sizes, numbers, the names nearest to a mistyped one."""

import argparse
import json
import os
import re
import shlex
import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Callable, Iterable, List, Optional, Sequence

LAUNCHED_BY = "TENSORPACK_LAUNCHED_BY"  # set by the launcher: its command line, as JSON
_KEY = "(?:api|auth|access|private|wandb|comet)[-_]?key"
_SECRET = rf"[\w.-]*(?:passw|secret|token|credential|{_KEY})[\w.-]*"
_SECRET_FLAG = re.compile(rf"(\0(?:-{{0,2}}{_SECRET}=|-{_SECRET}\0(?!-)))[^\0]*", re.IGNORECASE)
_SECRET_IN_URL = re.compile(r"(\w+://)[^/@\s\0]+@")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Returns a sentence to append to an error, with a space before it; "" if nothing is near."""
    names = sorted(set(names))
    near = get_close_matches(name, names, 3)
    if not near:  # a part of a long name, such as one without its scope
        near = [other for other in names if name and name.lower() in other.lower()][:3]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def did_you_mean_file(path: str, ending: str = "") -> str:
    """Returns the same about a path that does not exist: the nearest names in its folder.

    Only files with this ending count, and are named without it.
    """
    folder, name = os.path.split(path.rstrip(os.sep))
    try:
        files = os.listdir(folder or os.curdir)
    except OSError:
        return f" There is no folder {folder}." if folder and not os.path.exists(folder) else ""
    stems = [file[: len(file) - len(ending)] for file in files if file.endswith(ending)]
    return did_you_mean(name, stems)


def size_text(nbytes: Optional[float], unknown: str = "?") -> str:
    """Returns a number of bytes such as `12.3 MB` (of a million each); `unknown` for None."""
    if nbytes is None:
        return unknown
    for name, digits in (("B", 0), ("kB", 1), ("MB", 1), ("GB", 1)):
        text = f"{nbytes:.{digits}f}"
        if float(text) < 1000:
            return f"{text} {name}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def command_line() -> List[str]:
    """Returns the command that started this program, as it was given, with Python and its options.

    Under `tensorpack.launch` it is that of the launcher; in a process that `multiprocessing` has
    started, and where the system does not tell, it is made of `sys.argv`.
    """
    if LAUNCHED_BY in os.environ:
        return json.loads(os.environ[LAUNCHED_BY])
    words = list(getattr(sys, "orig_argv", []))  # since Python 3.10
    if not words:
        with suppress(OSError), open("/proc/self/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).split("\0")[:-1]
    by_python = any(word.startswith("from multiprocessing.") for word in words)
    return [sys.executable, *sys.argv] if by_python or not words else words


def command_text(words: Sequence[str]) -> str:
    """Returns a command for a shell, with `***` for secrets."""
    return " ".join(map(shlex.quote, without_secrets(words)))


def without_secrets(arguments: Sequence[str]) -> List[str]:
    """Returns a command line with `***` after flags such as `--api-key`, and for users in URLs."""
    text = _SECRET_FLAG.sub(r"\1***", "\0".join(["", *arguments]))
    return _SECRET_IN_URL.sub(r"\1***@", text).split("\0")[1:]


def number(what: str, fits: Callable[[Any], bool], kind: Callable = float) -> Callable:
    """Returns a type of argparse: a number that fits; an error says that it is not one `what`."""

    def convert(text: str) -> Any:
        with suppress(ValueError):
            if fits(kind(text)):
                return kind(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number {what}")

    return convert
