"""Writes the checkpoints of a run, so that none that was reported as saved is ever lost.

A save is either done and on the disk, or has changed nothing, whatever stops it: an error, a
signal, the power. The files are TensorFlow's own (`model-5000.index`, `model-5000.data-...` and
the text file `checkpoint`), with a manifest beside them. What is loaded is the business of
`checkpoint_search`.
"""

import errno
import os
import time
from typing import Callable, Dict, List, Optional, Set, Tuple

from tensorpack.utils import logger
from tensorpack.utils.atomic import fsync_path, write_atomic

from ._prefix import discard
from ._publication import REPLACED, UNFINISHED, Publication, remove_checkpoint
from .checkpoint import CheckpointCorrupt
from .checkpoint_search import NoValidCheckpoint, newest_valid, pointed_to, verify
from .manifest import INDEX, MANIFEST, suffixes, write_manifest

__all__ = ["CheckpointStore", "NoValidCheckpoint", "copy_checkpoint", "newest_valid", "verify"]

_POINTER = "checkpoint"


class CheckpointStore:
    """Owns the checkpoints `model-{step}` that one run writes into a directory.

    Args:
      directory: where they are; made when the first is saved.
      max_to_keep: how many of the newest are kept; 0 for all. There are always two, so that one
        is left when the newest turns out to be damaged.
      keep_checkpoint_every_n_hours: one that is old enough to be deleted is kept for ever instead,
        each time so many hours have passed.
      clock: seconds that never go back.

    Raises:
      ValueError: `max_to_keep` is negative.
    """

    def __init__(
        self,
        directory: str,
        max_to_keep: Optional[int] = 10,
        keep_checkpoint_every_n_hours: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 0:
            raise ValueError(f"max_to_keep is a number of checkpoints, or 0, got {max_to_keep}.")
        self.directory = directory
        self._max_to_keep = max(max_to_keep, 2) if max_to_keep else None
        self._keep_seconds = keep_checkpoint_every_n_hours * 3600
        self._clock = clock
        self._next_keep = clock() + self._keep_seconds
        self._saved: Dict[str, Optional[float]] = {}  # prefix to when, the newest last
        self._to_delete: List[str] = []
        self._protected: Set[str] = set()
        self._clean()

    def path_of(self, step: int) -> str:
        """Returns the prefix of the checkpoint of a step, which need not exist."""
        return os.path.join(self.directory, f"model-{step}")

    def adopt(self) -> None:
        """Counts the checkpoints that the file `checkpoint` lists among those to keep."""
        for prefix in pointed_to(self.directory):
            if os.path.exists(prefix + INDEX):
                self._saved.setdefault(prefix, None)

    def go_on_from(self, prefix: str) -> None:
        """Makes a checkpoint of the directory the newest one, as `checkpoint` and all that read it
        see it, whatever others there are. For a run that goes on from it.

        Raises:
          OSError: it failed.
        """
        if os.path.realpath(os.path.dirname(prefix)) != os.path.realpath(self.directory):
            return
        own = os.path.join(self.directory, os.path.basename(prefix))
        listed = [each for each in pointed_to(self.directory) if os.path.exists(each + INDEX)]
        if listed[-1:] != [own]:
            self._point_to([each for each in listed if each != own] + [own])
        self._saved.pop(own, None)
        self._saved[own] = None

    def protect(self, prefix: str) -> None:
        """Keeps a checkpoint until it is released."""
        self._protected.add(prefix)

    def release(self, prefix: str) -> None:
        """Allows a protected checkpoint to be deleted again when its time has come."""
        self._protected.discard(prefix)

    def save(self, step: int, write: Callable[[str], object]) -> str:
        """Saves a checkpoint, then deletes those whose time has come.

        Args:
          step: the global step.
          write: called with a prefix, writes the checkpoint in TensorFlow's format, and any other
            file of it, under names that consist of the prefix, a dot and something.

        Returns:
          The prefix of the checkpoint.

        Raises:
          OSError: it failed, or may have. Nothing has changed.
          Exception: so does whatever `write` raises.
        """
        final = self.path_of(step)
        unfinished = final + UNFINISHED
        self._make_directory()
        discard(unfinished)
        publication = Publication(unfinished, final)
        try:
            write(unfinished)
            _describe(unfinished, step)
            publication.publish()
            saved, next_keep, to_delete = self._plan(final)
            self._point_to(list(saved))
        except BaseException:
            publication.undo()
            discard(unfinished)
            raise
        publication.finish()
        self._saved, self._next_keep = saved, next_keep
        self._to_delete = [path for path in self._to_delete if path != final] + to_delete
        self._delete()
        return final

    def _make_directory(self) -> None:
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory, exist_ok=True)
            fsync_path(os.path.dirname(os.path.abspath(self.directory)))

    def _plan(self, newest: str) -> Tuple[Dict[str, Optional[float]], float, List[str]]:
        """What is kept, from when on one is kept for ever, and what goes, with `newest` saved."""
        saved = {prefix: when for prefix, when in self._saved.items() if prefix != newest}
        saved[newest] = self._clock()
        next_keep, to_delete = self._next_keep, []
        beyond = list(saved)[: -self._max_to_keep] if self._max_to_keep else []
        for prefix in beyond:
            if prefix in self._protected:
                continue
            when = saved.pop(prefix)
            if when is not None and when >= next_keep:
                next_keep += self._keep_seconds
            else:
                to_delete.append(prefix)
        return saved, next_keep, to_delete

    def _point_to(self, prefixes: List[str]) -> None:
        """Has the file `checkpoint` list these, the newest last."""
        path = os.path.join(self.directory, _POINTER)
        names = [os.path.basename(prefix) for prefix in prefixes]
        lines = [f'model_checkpoint_path: "{names[-1]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
        before = _content(path)
        try:
            write_atomic(path, ("\n".join(lines) + "\n").encode(), path + UNFINISHED)
        except BaseException:
            if _content(path) != before:
                _restore(path, before)
            raise

    def _delete(self) -> None:
        """Deletes what is due; what cannot be deleted is tried again after the next save."""
        due, self._to_delete = self._to_delete, []
        for prefix in due:
            try:
                remove_checkpoint(prefix)
                remove_checkpoint(prefix + REPLACED)
            except OSError as error:
                logger.warning(f"Cannot delete the old checkpoint {prefix}: {error}")
                self._to_delete.append(prefix)

    def _clean(self) -> None:
        """Removes what a save or a deletion that was cut short has left, and nothing else."""
        names = os.listdir(self.directory) if os.path.isdir(self.directory) else []
        for name in filter(_is_unfinished, names):
            discard(os.path.join(self.directory, name))
        manifests = [name for name in names if _is_manifest(name)]
        listed = pointed_to(self.directory) if manifests else []
        for name in manifests:
            prefix = os.path.join(self.directory, name[: -len(MANIFEST)])
            index_of_any = [prefix + INDEX, prefix + REPLACED + INDEX]
            if prefix not in listed and not any(map(os.path.exists, index_of_any)):
                logger.info(f"{prefix} was left unfinished; what there is of it is removed.")
                self._to_delete.append(prefix)
        self._delete()


def copy_checkpoint(source: str, target: str) -> None:
    """Copies a checkpoint with its manifest; the target is the old or the new one, and whole.

    Args:
      source: prefix of the checkpoint.
      target: prefix of the copy.

    Raises:
      CheckpointCorrupt: the copy, and so perhaps the source, is damaged. Nothing has changed.
      OSError: it failed, or may have. Nothing has changed.
    """
    unfinished = target + UNFINISHED
    discard(unfinished)
    publication = Publication(unfinished, target)
    try:
        for suffix in suffixes(source):
            _copy_file(source + suffix, unfinished + suffix)
        verify(unfinished)
        publication.publish()
    except BaseException:
        publication.undo()
        discard(unfinished)
        raise
    publication.finish()


def _copy_file(source: str, target: str) -> None:
    with open(source, "rb") as original, open(target, "wb") as copy:
        for chunk in iter(lambda: original.read(1 << 20), b""):
            copy.write(chunk)


def _describe(prefix: str, step: int) -> None:
    try:
        write_manifest(prefix, step)
    except CheckpointCorrupt as error:
        # The disk has not kept what it was given, which is a failure of the save.
        raise OSError(errno.EIO, f"what was written cannot be read: {error.reason}") from error


def _content(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _restore(path: str, content: Optional[bytes]) -> None:
    try:
        if content is None:
            os.remove(path)
        else:
            write_atomic(path, content, path + UNFINISHED)
    except OSError:
        pass  # it names a checkpoint that is gone, which whoever reads it is prepared for


def _is_unfinished(name: str) -> bool:
    if name == _POINTER + UNFINISHED:
        return True
    step, _, rest = name[len("model-") :].partition(".")
    ours = rest.startswith(UNFINISHED[1:]) or rest.endswith(UNFINISHED)
    return name.startswith("model-") and step.isdigit() and ours


def _is_manifest(name: str) -> bool:
    step = name[len("model-") : -len(MANIFEST)]
    return name.startswith("model-") and name.endswith(MANIFEST) and step.isdigit()
