"""What must be true of a log directory after any kill, and of the output of the run before it."""

import os
import re

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import find_restore_point, verify
from tensorpack.utils.checkpoints import get_all_checkpoints
from tensorpack.utils.checkpoints.find import SEGMENTS, segments_of

from .run_case import check_statistics

__all__ = ["check_directory", "check_resumption", "newest_step"]

_SAVED = re.compile(r"Model saved to \S*?model-([0-9]+)\.\s")
_STARTED = re.compile(r"Start training with global_step=([0-9]+)")
# What a resumed run says if something of it was lost.
_LOSSES = (
    *("cannot be continued exactly", "populated again", "cannot be restored", "A new run starts"),
    *("Skipping the checkpoint", "is whole; the best one", "position of the run is not known"),
)
_WITH_SEGMENTS = 2  # how many states keep theirs


def newest_step(log):
    """The step of the newest state that is whole in every part, 0 if nothing has been saved."""
    found = find_restore_point(str(log)) if log.exists() else None
    if found is None:
        return 0
    assert found.problem is None, found.problem
    return _step_of(found.prefix)


def check_directory(log, output, before):
    """Checks the files that a run left, however it ended.

    Args:
      log: the log directory, a path.
      output: all that the run printed.
      before: what `newest_step` was before it.

    Returns:
      What `newest_step` is now.
    """
    newest = newest_step(log)
    said = [int(step) for step in _SAVED.findall(output)]
    assert newest >= max([before, *said]), f"was {before}, saved {said}, has {newest}"
    for prefix, _ in get_all_checkpoints(str(log)) if newest else []:
        verify(prefix)
    check_statistics(log)
    check_events(log)
    assert not list(log.glob("*.corrupt*")), sorted(os.listdir(str(log)))
    if said and output.count("PHASE save ") == len(said):  # no save was under way
        check_nothing_more(log)
    return newest


def check_resumption(output, before):
    """Checks that a run went on from the newest state, and lost nothing of it.

    Args:
      output: all that the run printed.
      before: what `newest_step` was before it.
    """
    started = _STARTED.search(output)
    assert started is None or int(started.group(1)) == before, (started, before)
    said = [each for each in _LOSSES if each in output]
    assert not said, said


def check_nothing_more(log):
    """Checks that after a save there is nothing that no state needs."""
    names = os.listdir(str(log))
    left = [name for name in names if ".unfinished" in name or ".replaced" in name]
    assert not left, left
    prefixes = sorted((prefix for prefix, _ in get_all_checkpoints(str(log))), key=_step_of)
    needed = {ref.name for each in prefixes[-_WITH_SEGMENTS:] for ref in segments_of(each)}
    there = set(os.listdir(str(log / SEGMENTS)))
    assert there == needed, (sorted(there - needed), sorted(needed - there))


def check_events(log):
    """Checks that no value is there twice, and none before another one's step, but for what
    TensorBoard leaves out: all from the step of a later `SessionLog.START` on.
    """
    seen, newest = set(), 0
    for path in sorted(log.glob("events.out.tfevents.*")):
        for event in _events(path):
            if event.session_log.status == tf.SessionLog.START:
                seen = {(tag, step) for tag, step in seen if step < event.step}
                newest = max((step for _, step in seen), default=0)
            tags = {value.tag for value in event.summary.value}
            assert not tags or event.step >= newest, (path.name, event.step, newest)
            newest = max(newest, event.step if tags else 0)
            twice = seen & {(tag, event.step) for tag in tags}
            assert not twice, (path.name, sorted(twice))
            seen |= {(tag, event.step) for tag in tags}


def _events(path):
    """The whole events of a file; a kill may have cut off the last one."""
    try:
        yield from tf.train.summary_iterator(str(path))
    except tf.errors.DataLossError:
        return


def _step_of(prefix):
    return int(prefix.rpartition("-")[2])
