"""The git commit that a script was run from, and whether its checkout has changes.

The commit is read from the files of git, without a process. Only git itself can tell whether there
are changes; it runs beside the caller, who asks later and never waits for long.
"""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from typing import Any, Dict, Optional

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ANSWER_SECONDS = 1.0  # that git still has at the end


class GitFacts:
    """Finds the checkout that a file (or None) lies in, and asks git for changes; `close` it."""

    def __init__(self, path: Optional[str]) -> None:
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._facts: Optional[Dict[str, Any]] = None
        top = None if path is None else _checkout_of(os.path.dirname(os.path.realpath(path)))
        if top is not None:
            self._facts = {**_head_of(top), "dirty": None}
            self._ask(top)

    def known(self) -> Optional[Dict[str, Any]]:
        """Returns "commit", "branch" and "dirty", each None if not known (yet): whether a file that
        git tracks has changed. None outside of a checkout.
        """
        code = None if self._process is None else self._process.poll()
        if self._facts is not None and code in (0, 1):
            self._facts["dirty"] = bool(code)
        return self._facts

    def close(self) -> Optional[Dict[str, Any]]:
        """Ends the question, and returns what is known then."""
        if self._process is not None:
            try:
                self._process.wait(_ANSWER_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                with suppress(subprocess.TimeoutExpired):  # it hangs in the file system
                    self._process.wait(_ANSWER_SECONDS)
        return self.known()

    def _ask(self, top: str) -> None:
        git = shutil.which("git")
        if git is None:
            return
        # Neither takes a lock, nor starts a monitor or a program that shows differences.
        options = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-C", top]
        command = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--"]
        null = subprocess.DEVNULL
        with suppress(OSError):  # no more processes, or no memory for one
            self._process = subprocess.Popen(
                [git, *options, *command], stdin=null, stdout=null, stderr=null
            )


def _checkout_of(folder: str) -> Optional[str]:
    """The nearest folder at or above this one that has a `.git`."""
    while not os.path.exists(os.path.join(folder, ".git")):
        folder, before = os.path.dirname(folder), folder
        if folder == before:
            return None
    return folder


def _head_of(top: str) -> Dict[str, Any]:
    """The commit and the branch of a checkout, None for what cannot be read."""
    folder = os.path.join(top, ".git")
    if os.path.isfile(folder):  # a worktree or a submodule: the file names the folder
        folder = os.path.join(top, _read(folder).partition("gitdir:")[2].strip())
    common = os.path.join(folder, _read(os.path.join(folder, "commondir")).strip())
    head = _read(os.path.join(folder, "HEAD")).strip()
    if not head.startswith("ref:"):
        return {"commit": _as_hash(head), "branch": None}
    reference = head[len("ref:") :].strip()
    commit = _as_hash(_read(os.path.join(common, *reference.split("/"))).strip())
    if commit is None:
        lines = _read(os.path.join(common, "packed-refs")).splitlines()
        packed = {name: value for value, _, name in (each.partition(" ") for each in lines)}
        commit = _as_hash(packed.get(reference, ""))
    branch = reference[len("refs/heads/") :] if reference.startswith("refs/heads/") else reference
    return {"commit": commit, "branch": branch}


def _as_hash(text: str) -> Optional[str]:
    return text if _HASH.fullmatch(text) else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, ValueError):  # of a name with zeros, from a file that a crash has damaged
        return ""
