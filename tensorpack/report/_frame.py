"""Writes the last frame of the video on standard input as a PNG, in a process of its own.

So a crafted video can crash, hold up or fill with memory nothing else. OpenCV gets no name of a
file but `/dev/stdin`: in others it looks for protocols, and for patterns of further files.
"""

import os
import resource
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

_MEMORY_BYTES = 400 << 20  # beyond that of the modules


def main() -> None:
    """Writes the frame; the exit code is not 0 if there is none."""
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "threads;1"
    cv2: Any = import_module("cv2")  # whose types differ from version to version
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY_BYTES, size + _MEMORY_BYTES))
    video = cv2.VideoCapture("/dev/stdin", cv2.CAP_FFMPEG)
    count = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
    video.set(cv2.CAP_PROP_POS_FRAMES, max(count - 1, 0))
    read, frame = video.read()
    encoded, png = cv2.imencode(".png", frame) if read else (False, None)
    if not encoded:
        sys.exit(1)
    sys.stdout.buffer.write(png.tobytes())


if __name__ == "__main__":
    main()
