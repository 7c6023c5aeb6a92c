"""Runs Python with less than this machine has: a small disk at a directory, or few rights.

    python -m tests.faults.enclosed disk 2m DIRECTORY -m MODULE ...
    python -m tests.faults.enclosed user -m MODULE ...

What is mounted is seen by that process alone and is gone with it. A `user` is not root to the
system where it counts threads, but reads files as before.
"""

import os
import shutil
import subprocess
import sys

NOBODY = "65534"
_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
_USER = ["setpriv", f"--ruid={NOBODY}", "--bounding-set=-sys_resource,-sys_admin"]


def can_mount():
    """Whether a small disk can be made: by root, or by anyone where the system allows it."""
    return _unshare() is not None


def can_be_counted():
    """Whether a process can be run whose threads the system counts."""
    return os.getuid() != 0 or _works(_USER + ["true"])


def _unshare():
    for rights in ("-m", "-rm"):
        if _works(["unshare", rights, "sh", "-c", _MOUNT, "sh", "64k", "/mnt", "true"]):
            return rights
    return None


def _works(command):
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def main(kind, *rest):
    """Becomes the process that is wanted; the process id stays the same."""
    if kind == "disk":
        size, directory, *rest = rest
        command = ["unshare", _unshare(), "sh", "-c", _MOUNT, "sh", size, directory]
    else:
        command = _USER if os.getuid() == 0 else []
    command = [*command, sys.executable, "-u", *rest]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
