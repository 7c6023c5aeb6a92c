"""Images that a run has left: those of `DumpTensorAsImage`, and the last frame of its videos."""

import base64
import os
import re
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, List, NamedTuple, Optional

_MOST = 24
_IMAGE_BYTES = 1 << 20  # of one image
_ALL_BYTES = 6 << 20  # of all
_FOLDERS = ("", "images", "samples", "videos")
_IMAGES, _VIDEOS = (".png", ".jpg", ".jpeg", ".gif", ".webp"), (".mp4", ".avi", ".webm")
# The kind of a file is told from its first bytes: its name may say anything.
_KINDS = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_SERIES = re.compile(r"^(.*?)[-_]?(?:ep(?:och)?)?(\d+)((?:-\d+)?)\.\w+$")


class Sample(NamedTuple):
    """An image to show."""

    name: str  # of the file, in the directory
    uri: str  # `data:image/...`
    note: str  # "" or what it is


def find_samples(directory: str, troubles: List[str]) -> List[Sample]:
    """Returns the newest image of each series, then the last frame of the newest video.

    `troubles` gets a line if some are left out.
    """
    found: List[Sample] = []
    left_out = total = 0
    paths = _listed(directory)
    for path in _newest_of_series([each for each in paths if each.lower().endswith(_IMAGES)]):
        uri = None
        if len(found) < _MOST:
            with suppress(OSError), open(os.path.join(directory, path), "rb") as file:
                content = file.read(_IMAGE_BYTES + 1)
                uri = _as_uri(content) if len(content) <= _IMAGE_BYTES else None
        if uri is None or total + len(uri) > _ALL_BYTES:
            left_out += 1
            continue
        total += len(uri)
        found.append(Sample(path, uri, ""))
    videos = [each for each in paths if each.lower().endswith(_VIDEOS)]
    if videos:
        newest = max(videos, key=lambda each: (_modified(directory, each), each))
        uri = _as_uri(_last_frame(os.path.join(directory, newest)))
        if uri is not None:
            found.append(Sample(newest, uri, "the last frame of the newest video"))
    if left_out:
        troubles.append(
            f"{left_out} images are not shown: at most {_MOST} are, of a megabyte at most each."
        )
    return found


def _listed(directory: str) -> List[str]:
    paths: List[str] = []
    for folder in _FOLDERS:
        with suppress(OSError):
            names = sorted(os.listdir(os.path.join(directory, folder)))
            paths += [os.path.join(folder, name) for name in names]
    return paths


def _newest_of_series(paths: List[str]) -> List[str]:
    """Of images that differ in the number of the epoch only, the one of the highest number."""
    newest: Dict[Any, Any] = {}
    for path in paths:
        match = _SERIES.match(path)
        key = (match.group(1), match.group(3)) if match else (path, "")
        number = int(match.group(2)) if match else 0
        if key not in newest or number >= newest[key][0]:
            newest[key] = (number, path)
    return [path for _, path in newest.values()]


def _modified(directory: str, path: str) -> float:
    with suppress(OSError):
        return os.path.getmtime(os.path.join(directory, path))
    return 0.0


def _as_uri(content: bytes) -> Optional[str]:
    kinds = [kind for kind, pattern in _KINDS.items() if pattern.match(content)]
    if not kinds:
        return None
    return f"data:image/{kinds[0]};base64,{base64.b64encode(content).decode('ascii')}"


def _last_frame(path: str) -> bytes:
    """A video's last frame as a PNG; nothing without OpenCV, or if it cannot be read."""
    try:
        cv2: Any = import_module("cv2")  # whose types differ from version to version
    except ImportError:
        return b""
    video = cv2.VideoCapture(path)
    video.set(cv2.CAP_PROP_POS_FRAMES, max(video.get(cv2.CAP_PROP_FRAME_COUNT) - 1, 0))
    was_read, frame = video.read()
    video.release()
    return cv2.imencode(".png", frame)[1].tobytes() if was_read else b""  # type: ignore
