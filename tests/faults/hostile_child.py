"""Runs subcommands over log directories, in a process of its own that measures what they take.

Takes an object of JSON on each line of standard input: `commands`, lists of arguments, and `watch`,
a folder whose files are not to be opened. Answers each command with a line.
"""

import contextlib
import ctypes
import io
import json
import os
import re
import resource
import struct
import sys
import time
import traceback

_OPENED = 0x20  # of inotify
_GUARD_BYTES = 3 << 30  # of addresses beyond those taken at the start


class Watch:
    """Tells which files in a folder were opened, by whatever code."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(self._fd, os.fsencode(folder), _OPENED) < 0:
            raise OSError(ctypes.get_errno(), "inotify", folder)

    def opened(self):
        """The names since the last call; "" is the folder itself."""
        names = []
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self._fd, 1 << 16)
                while data:
                    (length,) = struct.unpack_from("12xI", data)
                    names.append(os.fsdecode(data[16 : 16 + length].rstrip(b"\0")))
                    data = data[16 + length :]
        return names

    def close(self):
        os.close(self._fd)


class Missing:
    """Makes a module one that is not installed."""

    def __init__(self, name):
        self._name = name

    def find_spec(self, name, path=None, target=None):
        """Raises what an import of it raises."""
        if name.split(".")[0] == self._name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def resident(name):
    """Bytes of memory: "VmRSS", those now, or "VmHWM", the most since `forget`."""
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.MULTILINE).group(1))


def forget():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def run(main, argv, watch, begin):
    """Runs a command line; returns what it did."""
    out, err = io.StringIO(), io.StringIO()
    forget()
    watch.opened()
    started = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as error:
            code = error.code
        except BaseException:
            code = traceback.format_exc()
    return {
        "code": code,
        "out": out.getvalue()[:100000],
        "err": err.getvalue()[:100000],
        "seconds": time.monotonic() - started,
        "opened": watch.opened(),
        "memory": resident("VmHWM") - begin,
        "begin": begin,
        "of_children": 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
    }


def main():
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in sys.argv[1:]:  # what is loaded anyway does not count
        if name.startswith("-"):
            sys.meta_path.insert(0, Missing(name[1:]))
            continue
        with contextlib.suppress(ImportError):
            __import__(name)
    from tensorpack.command.program import main as program

    begin = resident("VmRSS")
    limit = resident("VmSize") + _GUARD_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        request = json.loads(line)
        watch = Watch(request["watch"])
        for argv in request["commands"]:
            answers.write(json.dumps(run(program, argv, watch, begin)) + "\n")
            answers.flush()
        watch.close()


if __name__ == "__main__":
    main()
