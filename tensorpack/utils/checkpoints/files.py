"""The files of one checkpoint, and the manifest with their sizes and checksums.

The checkpoint `model-5000` has the files `model-5000.index`, `model-5000.data-*` and perhaps
`model-5000.state`. `model-5000.manifest.json` describes them. It names the files without their
prefix, so a copy under another name has the same manifest. A checkpoint exists if its index does:
the system renames one file at a time, so the index is renamed last and removed first.
"""

import errno
import json
import os
import re
import shutil
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from .._hashing import hash_file
from ..atomic import fsync_path
from ..packing.packed_arrays import aligned_empty

INDEX = ".index"
MANIFEST = ".manifest.json"
UNFINISHED = ".unfinished"
REPLACED = ".replaced"
END_OF_FILE = re.compile(r"\.(index|manifest\.json|state|data-[^./]*)$")  # of a checkpoint

_FORMAT = 1
_NAME = re.compile(r"model-([0-9]{1,18})")
TABLE_END = bytes.fromhex("57fb808b247547db")  # of each table of TensorFlow: its magic number


class CheckpointCorrupt(RuntimeError):
    """A checkpoint exists, but cannot be read as a whole: its `path`, and the `reason`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        alone = os.path.isfile(self.path) and not os.path.exists(self.path + INDEX)
        if alone and not self.path.endswith((".npz", ".npy")):
            advice = "Give one such as train_log/run/model-5000, a log directory or an .npz file."
            return f"{self.path} is not a checkpoint ({self.reason}). {advice}"
        return f"The checkpoint {self.path} is damaged ({self.reason}). Load an earlier one."


@contextmanager
def errors_of(prefix: str, path: str = "") -> Iterator[None]:
    """Raises what tells of damage, in a block that reads a checkpoint, as `CheckpointCorrupt`;
    names the file at `path` where the error may not.

    What may go away, such as a missing permission, is left as it is.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise CheckpointCorrupt(prefix, f"{error.filename} is missing") from error
    except (OSError, ValueError, TypeError, LookupError) as error:
        if isinstance(error, OSError) and error.errno != errno.EIO:
            raise
        reason = f"{path} is not as it was written: {error!r}" if path else str(error)
        raise CheckpointCorrupt(prefix, reason) from error


def step_of(name: str) -> Optional[int]:
    """Returns the step of a checkpoint named such as `model-5000`, None for other names."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match.group(1))


def write_manifest(prefix: str, step: int, files: Dict[str, Any], more: Dict[str, Any]) -> None:
    """Describes the files `{prefix}.*`, which are a whole checkpoint.

    `files` has, by suffix, the entries of files that need not be read for it, and gets the others;
    `more` are further entries of the manifest.
    """
    for suffix in suffixes(prefix):
        if suffix not in files:
            size, sha256 = hash_file(prefix + suffix)
            files[suffix] = {"sha256": sha256, "size": size}
    content = {**more, "files": files, "format": _FORMAT, "step": int(step)}
    with open(prefix + MANIFEST, "w", encoding="ascii") as file:
        json.dump(content, file, indent=1, sort_keys=True)


def read_manifest(prefix: str) -> Optional[Dict[str, Any]]:
    """Returns the manifest of a checkpoint, None if it has none."""
    path = prefix + MANIFEST
    if not os.path.lexists(path):
        return None
    with errors_of(prefix, path), open(path, "rb") as file:
        content: Any = json.loads(file.read())
        if {**content, "files": {**content["files"]}}["format"] != _FORMAT:
            raise ValueError(f"it has format {content['format']}, this version reads {_FORMAT}")
        return content  # type: ignore[no-any-return]


def saved_step(prefix: str) -> int:
    """Returns the step at which a checkpoint was saved; -1 if it does not say it, or is damaged."""
    with suppress(CheckpointCorrupt):
        return (read_manifest(prefix) or {}).get("step", -1)
    return -1


def verify(prefix: str, content: bool = True, except_for: str = "") -> Optional[Dict[str, Any]]:
    """Checks that a checkpoint is as it was written; returns its manifest.

    The content of the file with the suffix `except_for` is not compared, nor, without `content`,
    that of any file: sizes take no time. A checkpoint without a manifest, which another program
    wrote, needs to have all its files, and its index to have an end; other damage shows when it is
    loaded.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      CheckpointCorrupt: a part of it is missing or damaged.
    """
    manifest = read_manifest(prefix)
    if manifest is not None:
        with errors_of(prefix):
            for suffix, entry in sorted(manifest["files"].items()):
                _check(prefix + suffix, content=content and suffix != except_for, **entry)
        if INDEX not in manifest["files"]:
            raise CheckpointCorrupt(prefix, f"{prefix + INDEX} is missing")
        return manifest
    paths = names_with_prefix(prefix + ".data-")
    # Until 2016 a checkpoint was one file, named as the prefix, in the format that an index has.
    table = prefix + INDEX if paths or not os.path.isfile(prefix) else prefix
    with open(table, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(TABLE_END)))
        if file.read() != TABLE_END:
            raise CheckpointCorrupt(prefix, f"{table} is not a table of TensorFlow, or is cut")
    totals = {path.rpartition("-of-")[2] for path in paths}
    if table != prefix and totals != {f"{len(paths):05d}"}:
        raise CheckpointCorrupt(prefix, f"a file {prefix}.data-* is missing")
    return None


def read_file(path: str, size: int, sha256: str) -> np.ndarray:
    """Returns a file, uint8 `[size]`; raises ValueError if it is not that of a manifest."""
    memory = aligned_empty([size], np.uint8)
    _check(path, size, sha256, memory=memory)
    return memory


def _check(path: str, size: int, sha256: str, content: bool = True, memory: Any = None) -> None:
    if os.path.getsize(path) != size:
        raise ValueError(f"{path} has {os.path.getsize(path)} bytes, its manifest says {size}")
    if content and hash_file(path, memory) != (size, sha256):
        raise ValueError(f"the checksum of {path}, its SHA-256, is not that of its manifest")


def suffixes(prefix: str) -> List[str]:
    """Returns the suffixes of the files of a checkpoint, or of what is left of one: the manifest
    first and the index last.
    """
    names = [path[len(prefix) :] for path in names_with_prefix(prefix + ".")]
    ours = filter(END_OF_FILE.fullmatch, names)
    return sorted(ours, key=lambda suffix: (suffix != MANIFEST, suffix == INDEX, suffix))


def names_with_prefix(prefix: str) -> List[str]:
    """Returns the paths that begin with a prefix, sorted.

    Raises OSError if the directory cannot be read; `glob` would find nothing there.
    """
    directory, begin = os.path.split(prefix)
    names = [name for name in os.listdir(directory or ".") if name.startswith(begin)]
    return [os.path.join(directory, name) for name in sorted(names)]


def remove_checkpoint(prefix: str) -> None:
    """Removes a checkpoint, or what is left of one, its index first and its manifest last."""
    for suffix in reversed(suffixes(prefix)):
        with suppress(FileNotFoundError):
            os.remove(prefix + suffix)


def discard(prefix: str) -> None:
    """Removes all files and directories that begin with a prefix, as far as that is possible."""
    with suppress(OSError):  # of the directory
        for path in names_with_prefix(prefix):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
                continue
            with suppress(OSError):  # the next start tries again
                os.remove(path)


def replace_checkpoint(
    target: str, write: Callable[[str], object], publish: Callable[[], object] = lambda: None
) -> None:
    """Lets a function write a checkpoint with a manifest as `TARGET.unfinished.*`, brings it to the
    disk, renames it to `TARGET.*`, and calls `publish`.

    A checkpoint that had the name before has a second one, `TARGET.replaced`, until the new one is
    safe. If anything fails, all is as before.
    """
    unfinished, backup = target + UNFINISHED, target + REPLACED
    is_replacing, has_backup = (os.path.lexists(path + INDEX) for path in (target, backup))
    renamed: List[str] = []
    discard(unfinished)
    try:
        write(unfinished)
        parts = suffixes(unfinished)
        for suffix in parts:
            fsync_path(unfinished + suffix)
        if is_replacing:
            with suppress(CheckpointCorrupt):  # an earlier backup is better than a damaged one
                if has_backup:
                    verify(target)
                remove_checkpoint(backup)
                has_backup = False
                _link_files(target, backup)
            os.remove(target + INDEX)
        for suffix in parts:
            os.replace(unfinished + suffix, target + suffix)
            renamed.append(suffix)
        fsync_path(os.path.dirname(target) or ".")
        publish()
    except BaseException:
        with suppress(OSError):  # what cannot be put back is found as it is
            if not is_replacing:
                for suffix in reversed(renamed):
                    os.remove(target + suffix)
            elif renamed or not os.path.lexists(target + INDEX):
                restore_backup(target)
            elif not has_backup:
                remove_checkpoint(backup)
        discard(unfinished)
        raise
    if is_replacing or has_backup:
        with suppress(OSError):
            remove_checkpoint(backup)


def restore_backup(target: str) -> None:
    """Gives a checkpoint its name back, from `TARGET.replaced`."""
    remove_checkpoint(target)
    _link_files(target + REPLACED, target)
    remove_checkpoint(target + REPLACED)


def _link_files(source: str, target: str) -> None:
    """Gives a checkpoint a second name, and brings that to the disk."""
    for suffix in suffixes(source):
        try:
            os.link(source + suffix, target + suffix)
        except OSError:  # not every file system has links
            shutil.copyfile(source + suffix, target + suffix)
            fsync_path(target + suffix)
    fsync_path(os.path.dirname(target) or ".")
