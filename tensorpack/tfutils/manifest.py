"""The list of a checkpoint's files with their sizes and checksums, kept beside them.

`PREFIX.manifest.json` describes `PREFIX.index`, `PREFIX.data-*` and whatever else was saved with
them. It carries a checksum of itself. The files are named without their prefix, so that a copy
under another name has the same manifest.
"""

import errno
import hashlib
import json
import os
from typing import Any, Dict, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.fs import hash_file

from ._prefix import names_with_prefix
from .checkpoint import MANIFEST, CheckpointCorrupt, CheckpointReader

__all__ = ["INDEX", "MANIFEST", "check_manifest", "read_manifest", "suffixes", "write_manifest"]

INDEX = ".index"

_FORMAT = 1


def write_manifest(prefix: str, step: int) -> None:
    """Describes the files `{prefix}.*`, which are a whole checkpoint.

    Args:
      prefix: of the checkpoint.
      step: the global step that it belongs to.

    Raises:
      CheckpointCorrupt: TensorFlow cannot read what is there.
      OSError: a file cannot be read, or the manifest not written.
    """
    files = {path[len(prefix) :]: _measure(path) for path in names_with_prefix(prefix + ".")}
    content = {
        "files": files,
        "format": _FORMAT,
        "step": int(step),
        "tensorflow": tf.__version__,
        "variables": _variables(prefix),
    }
    content["sha256"] = _checksum(content)
    with open(prefix + MANIFEST, "wb") as file:
        file.write(_encode(content))


def read_manifest(prefix: str) -> Optional[Dict[str, Any]]:
    """Returns the manifest of a checkpoint, None if it has none.

    Raises:
      CheckpointCorrupt: the manifest is damaged.
    """
    path = prefix + MANIFEST
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(prefix, error) from error
    try:
        content = json.loads(data.decode("ascii"))
    except ValueError as error:
        raise CheckpointCorrupt(prefix, f"{path} is no JSON: {error}") from error
    if not isinstance(content, dict) or _encode(content) != data:
        raise CheckpointCorrupt(prefix, f"{path} is not as it was written")
    if content.pop("sha256", None) != _checksum(content):
        raise CheckpointCorrupt(prefix, f"the checksum of {path} itself is wrong")
    if content.get("format") != _FORMAT:
        raise CheckpointCorrupt(
            prefix, f"{path} has format {content.get('format')}, this version reads {_FORMAT}"
        )
    return content


def check_manifest(prefix: str) -> bool:
    """Compares the files of a checkpoint with its manifest.

    Returns:
      True if all are as they were written, False if there is no manifest.

    Raises:
      CheckpointCorrupt: a file is missing or not as it was written.
      PermissionError: a file may not be read.
    """
    content = read_manifest(prefix)
    if content is None:
        return False
    for suffix, expected in sorted(content["files"].items()):
        _check_file(prefix, suffix, expected)
    return True


def suffixes(prefix: str) -> List[str]:
    """Returns how the names of a checkpoint's files go on behind the prefix.

    The manifest is the first and the index, which makes it a checkpoint, the last one. So files
    with a manifest and without an index are what is left of one, or not yet one.
    """
    try:
        content = read_manifest(prefix)
    except CheckpointCorrupt:
        content = None
    if content is not None:
        found = set(content["files"])
    else:
        found = {path[len(prefix) :] for path in names_with_prefix(prefix + ".data-")}
        found |= {INDEX} if os.path.lexists(prefix + INDEX) else set()
    between = sorted(found - {INDEX, MANIFEST})
    first = [MANIFEST] if os.path.lexists(prefix + MANIFEST) else []
    return first + between + ([INDEX] if INDEX in found else [])


def _check_file(prefix: str, suffix: str, expected: Dict[str, Any]) -> None:
    path = prefix + suffix
    try:
        # The size first: it costs nothing, and says more.
        size = os.path.getsize(path)
        if size != expected["size"]:
            reason = f"{path} has {size} bytes, its manifest says {expected['size']}"
            raise CheckpointCorrupt(prefix, reason)
        if _measure(path) != expected:
            raise CheckpointCorrupt(prefix, f"the checksum of {path} is not that of its manifest")
    except OSError as error:
        raise _unreadable(prefix, error) from error


def _unreadable(prefix: str, error: OSError) -> Exception:
    if error.errno in (errno.ENOENT, errno.EIO, errno.EISDIR, errno.ENOTDIR):
        return CheckpointCorrupt(prefix, str(error))
    return error


def _variables(prefix: str) -> Dict[str, Any]:
    names = CheckpointReader(prefix).names
    reader = tf.train.NewCheckpointReader(prefix)
    types, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
    return {name: {"dtype": types[name].name, "shape": list(shapes[name])} for name in names}


def _measure(path: str) -> Dict[str, Any]:
    size, sha256 = hash_file(path)
    return {"sha256": sha256, "size": size}


def _encode(content: Dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii")


def _checksum(content: Dict[str, Any]) -> str:
    return hashlib.sha256(_encode(content)).hexdigest()
