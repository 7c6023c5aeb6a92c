"""Shows a game in a window, or writes it to a video file.

Needs OpenCV. The callback that evaluates, and when it writes a video, is the program's.
"""

import os
from contextlib import suppress
from typing import Any, ContextManager, Optional, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.optional import require

FRAMES_PER_SECOND = 15.0  # the console has 60; the agent sees every fourth

_HEIGHT = 420  # pixels of an enlarged screen, at most
_TITLE = "tensorpack"  # of the window


class VideoFile(ContextManager["VideoFile"]):
    """Writes pictures to an mp4 file, which appears when it is whole; used in a `with` block.

    If the block raises, there is no file, except by Ctrl-C, which keeps what there is. The folder
    is created. `show` and the end of the block raise OSError if the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        root, extension = os.path.splitext(self.path)
        self._temporary = f"{root}.unfinished{extension}"
        self._cv2 = require("cv2", "opencv-python-headless")
        self._writer: Any = None
        self._count = 0

    def show(self, picture: np.ndarray) -> None:
        """Adds a picture, uint8 `[height, width, 3]`, red first; all have one size."""
        if self._writer is None:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            codec = self._cv2.VideoWriter_fourcc(*"mp4v")
            size = picture.shape[1], picture.shape[0]
            self._writer = self._cv2.VideoWriter(self._temporary, codec, FRAMES_PER_SECOND, size)
            if not self._writer.isOpened():
                raise OSError(
                    f"Cannot write a video to {self.path}: it must be a FILE.mp4, in a folder in "
                    "which you may write."
                )
        self._writer.write(np.ascontiguousarray(picture[..., ::-1]))
        self._count += 1

    def close(self, keep: bool = True) -> None:
        """Ends the file; without `keep` it is deleted."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        writer.release()
        try:
            if keep:
                video = self._cv2.VideoCapture(self._temporary)
                count = int(video.get(self._cv2.CAP_PROP_FRAME_COUNT))
                video.release()
                if count != self._count:  # the writer does not report errors
                    pictures = f"{count} of {self._count} pictures"
                    raise OSError(f"{self.path} has {pictures}: is the disk full?")
                os.replace(self._temporary, self.path)
                logger.info(f"Video written to {self.path}.")
        finally:
            with suppress(OSError):
                os.unlink(self._temporary)

    def __exit__(self, kind: Any, *exc_info: object) -> None:
        self.close(keep=kind is None or issubclass(kind, KeyboardInterrupt))


class Window(ContextManager["Window"]):
    """Shows pictures in a window, at the speed of the game; OSError if there can be no window."""

    def __init__(self) -> None:
        self._cv2 = require("cv2", "opencv-python")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise OSError("There is no screen.")
        try:
            self._cv2.namedWindow(_TITLE)
        except self._cv2.error as error:  # opencv-python-headless has no windows
            raise OSError("This OpenCV cannot open windows.") from error

    def show(self, picture: np.ndarray) -> None:
        """Shows a picture, uint8 `[height, width, 3]`, red first, for the time of one frame."""
        self._cv2.imshow(_TITLE, np.ascontiguousarray(picture[..., ::-1]))
        self._cv2.waitKey(int(1000 / FRAMES_PER_SECOND))

    def __exit__(self, *exc_info: object) -> None:
        self._cv2.destroyWindow(_TITLE)


def open_screen(path: Optional[str], path_without_screen: str) -> Union[VideoFile, Window]:
    """Returns what shows the pictures: the video file `path` or, if that is None, a window.

    Where windows cannot be opened, it is the video file `path_without_screen`.
    """
    if path is None:
        try:
            return Window()
        except OSError as error:
            logger.info(f"{error} The game is written to {path_without_screen}.")
            path = path_without_screen
    return VideoFile(path)


class GameVideo(VideoFile):
    """Writes one game of an evaluation to a video; to be used in a `with` block.

    An error of the disk, or frames that are no pictures, are logged and end the video, not the
    evaluation.
    """

    _error: Optional[Exception] = None

    def watch(self, frame: np.ndarray) -> None:
        """Adds a frame, uint8 `[H, W]` or `[H, W, 3]`, enlarged; see `play_n_episodes`."""
        if self._error is None:
            try:
                self.show(enlarge(frame))
            except Exception as error:  # of any kind, if the frame is no picture
                self._error = error

    def __exit__(self, kind: Any, *exc_info: object) -> None:
        try:
            self.close(keep=kind is None and self._error is None)
        except OSError as error:
            self._error = error
        if self._error is not None:
            logger.error(f"There is no video of this evaluation: {self._error}")


def enlarge(screen: np.ndarray) -> np.ndarray:
    """Returns a screen in colours, as large as there is room for, of an even height for videos."""
    times = max(1, _HEIGHT // len(screen))
    if screen.ndim == 2:
        screen = screen[..., np.newaxis].repeat(3, 2)
    large = screen.repeat(times, 0).repeat(times, 1)
    return large[: len(large) // 2 * 2, : large.shape[1] // 2 * 2]
