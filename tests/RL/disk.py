"""A disk for the segments of replay memories, in memory, that can be slow and can fail."""

import numpy as np

from tensorpack.utils.checkpoints import CheckpointStore, SegmentRef, find_restore_point


class Disk:
    """Keeps what memories save. `last` are the references of the last state, `before` those of
    the one before it: what a directory with two states has to keep.
    """

    def __init__(self):
        self.last, self.before, self.written = [], [], []
        self._files = {}

    def save(self, memory, fails=False):
        """Saves a memory; returns the state as it comes back from a file."""
        return self.finish(memory.state_dict(), fails)

    def finish(self, state, fails=False):
        """Writes the segments of a state and says so."""
        leaf = state["entries"]
        refs = list(leaf.saved)
        for meta, arrays in leaf.new:
            refs.append(SegmentRef(f"segment-{len(self._files)}", 0, "", dict(meta)))
            self._files[refs[-1].name] = {name: array.copy() for name, array in arrays.items()}
        leaf.on_done(None if fails else refs)
        if fails:
            return None
        self.written = refs[len(leaf.saved) :]
        self.before, self.last = self.last, refs
        return {**state, "entries": SavedOnDisk(refs, self._files)}

    def num_entries(self):
        """How many entries the last two states hold."""
        return sum({ref.name: ref.meta["count"] for ref in self.last + self.before}.values())


class SavedOnDisk:
    """The segments of a state that was loaded."""

    reusable = True

    def __init__(self, refs, files):
        self.refs, self._files = refs, files

    def read(self, ref):
        arrays = {name: array.copy() for name, array in self._files[ref.name].items()}
        for array in arrays.values():
            array.flags.writeable = False
        return arrays


def through_a_checkpoint(state, directory):
    """Returns a state after it was saved and read again, without any variables."""
    store = CheckpointStore(str(directory))
    store.save(1, lambda prefix: open(prefix + ".index", "wb").close(), {"it": state})
    return find_restore_point(str(directory)).state["it"]


def assert_same(memory, other):
    """All of two memories' contents is equal, to the bit."""
    rings = memory._rings
    place = np.arange(len(memory._frames)) % rings.lane_size
    filled = place < np.repeat(rings.filled(), rings.lane_size)  # the others were never written
    for name in memory._columns:
        ours, theirs = (m._columns[name][filled] for m in (memory, other))
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    np.testing.assert_array_equal(rings.written, other._rings.written)
    for name in ("_episode", "_num_sampleable"):
        np.testing.assert_array_equal(getattr(memory, name), getattr(other, name), err_msg=name)
