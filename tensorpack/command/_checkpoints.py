"""Opens a checkpoint, a log directory or an `.npz` archive for the subcommands that look into one.

What the manifest of a checkpoint says is read from there, without TensorFlow; values, and
checkpoints that another program wrote, need TensorFlow.
"""

import functools
import glob
import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Optional

from tensorpack.utils._words import did_you_mean_file

from ._common import CommandError

if TYPE_CHECKING:
    from tensorpack.utils.checkpoints.variables import Variable

ARRAYS = (".npz", ".npy")  # how the names of files end that `read_npz` reads
_USUAL = " Give a log directory, NAME.npz, or a prefix such as train_log/run/model-5000."


class Saved(NamedTuple):
    """A checkpoint or archive.

    Attributes:
      path: the prefix of the checkpoint, or the archive.
      variables: by name.
      manifest: of a checkpoint that this library wrote.
      read: returns the value of a variable as a numpy array.
    """

    path: str
    variables: Dict[str, "Variable"]
    manifest: Optional[Dict[str, Any]]
    read: Callable[[str], Any]


def open_saved(path: str) -> Saved:
    """Opens an `.npz` archive; or a checkpoint by its prefix, one of its files, the file
    `checkpoint` or a log directory, which mean the newest one there.

    Raises:
      CommandError: there is no checkpoint, or TensorFlow is needed to read it and is missing.
      CheckpointCorrupt: it is damaged.
    """
    prefix = find_prefix(path)
    if prefix.endswith(ARRAYS):
        return _open_archive(prefix)
    from tensorpack.utils.checkpoints.files import read_manifest
    from tensorpack.utils.checkpoints.variables import known_from

    manifest = read_manifest(prefix)
    described = (manifest or {}).get("variables")
    if described is None:
        described = _reader(prefix).variables
    reader = functools.lru_cache(maxsize=None)(lambda: _reader(prefix))
    return Saved(prefix, known_from(described), manifest, lambda name: reader().read(name))


def find_prefix(path: str) -> str:
    """Returns the prefix of the checkpoint, or the path of the archive, that a path means."""
    from tensorpack.utils.checkpoints.files import END_OF_FILE, TABLE_END
    from tensorpack.utils.checkpoints.find import candidates

    if os.path.isfile(path) and path.endswith(ARRAYS):
        return path
    folder, name = (path, "checkpoint") if os.path.isdir(path) else os.path.split(path)
    if name == "checkpoint":
        found = candidates(folder or ".")
        if found:
            return found[0]
        inside = os.path.join(glob.escape(folder), "*")
        runs = map(os.path.dirname, sorted(glob.glob(os.path.join(inside, "checkpoint"))))
        some = " or ".join([*runs, *sorted(glob.glob(f"{inside}.npz"))][:3])
        advice = f"Try {some}." if some else "Give the log directory of a run."
        raise CommandError(f"There is no checkpoint in {folder or '.'}. {advice}")
    path = END_OF_FILE.sub("", path)
    if os.path.isfile(path + ".index"):
        return path
    if not os.path.isfile(path):
        near = did_you_mean_file(path, ".index") or did_you_mean_file(path)
        raise CommandError(f"There is no checkpoint {path!r}.{near or _USUAL}")
    # Until 2016 a checkpoint was one file, named as the prefix, in the format that an index has.
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - len(TABLE_END)))
        if file.read() != TABLE_END:
            raise CommandError(f"{path} is not a checkpoint.{_USUAL}")
    return path


def _open_archive(path: str) -> Saved:
    from tensorpack.utils.checkpoints.files import CheckpointCorrupt
    from tensorpack.utils.checkpoints.variables import by_name, known_of
    from tensorpack.utils.packing.npz import read_npz

    try:
        arrays = by_name(read_npz(path))
    except ValueError as error:
        raise CheckpointCorrupt(path, str(error)) from error
    return Saved(path, known_of(arrays), None, arrays.__getitem__)


def _reader(prefix: str) -> Any:
    """Returns a `CheckpointReader`; this loads TensorFlow."""
    from tensorpack.utils.checkpoints.files import verify

    verify(prefix, content=False)
    if prefix.encode("utf-8", "replace") != os.fsencode(prefix):
        raise CommandError(f"TensorFlow opens no path that is not UTF-8: rename {prefix}.")
    try:
        from tensorpack.tfutils.checkpoint import CheckpointReader
    except ModuleNotFoundError as error:
        raise CommandError(f"The values in {prefix} are in TensorFlow's format. {error}") from error
    return CheckpointReader(prefix)


def matching(names: Iterable[str], pattern: Optional[str]) -> List[str]:
    """Returns the names in which the regular expression of `--select` has a match; all for None."""
    try:
        return [name for name in names if re.search(pattern or "", name)]
    except re.error as error:
        raise CommandError(f"--select {pattern!r} is no regular expression: {error}.") from error


def of_training(names: Iterable[str]) -> List[str]:
    """Returns the names of variables that only training uses."""
    from tensorpack.utils.naming import is_training_name

    return [name for name in names if name == "global_step" or is_training_name(name)]
