"""What a run may leave behind, looked for from outside: processes, shared memory, files."""

import os
import tempfile
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_LABEL = "TENSORPACK_FAULT_CASE"
_GRACE_SECONDS = 10.0  # what other programs hold in shared memory goes, too


class Surroundings:
    """What is there before a child runs, and the environment that makes its traces recognisable.

    Args:
      directory: an empty one for this child alone. Its folder for temporary files lies beside it,
        not in it: sockets are made there, whose paths have to be short.
    """

    def __init__(self, directory):
        self._label = f"{os.getpid()}-{time.monotonic_ns()}"
        self._temporary = Path(tempfile.mkdtemp(prefix="t", dir=str(directory.parent)))
        self._shared = _shared_memory()
        self.env = {_LABEL: self._label, "TMPDIR": str(self._temporary)}

    def leftovers(self):
        """Sentences about what is there still, after a moment for what is about to go."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while True:
            found = self._processes() + self._files() + self._segments()
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def _processes(self):
        label = f"{_LABEL}={self._label}".encode()
        return [
            f"process {path.parent.name}: {_read(path.parent / 'cmdline')!r}"
            for path in Path("/proc").glob("[0-9]*/environ")
            if label in _read(path)
        ]

    def _files(self):
        return [f"temporary file {path}" for path in self._temporary.iterdir()]

    def _segments(self):
        new = _shared_memory() - self._shared
        if not new:
            return []
        maps = b"".join(_read(path) for path in Path("/proc").glob("[0-9]*/maps"))
        # what is mapped belongs to somebody who lives, so not to the child
        return [f"shared memory {name}" for name in new if os.fsencode(name) not in maps]


def _shared_memory():
    return set(os.listdir(str(SHARED_MEMORY))) if SHARED_MEMORY.is_dir() else set()


def _read(path):
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile, or belongs to somebody else
        return b""
