"""Shows a game in a window, or writes it to a video file."""

import os
from typing import Any, Optional, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.optional import require

__all__ = ["VideoFile", "Window", "open_screen"]

FRAMES_PER_SECOND = 15.0  # the console has 60; the agent sees every fourth
_SCALE = 3  # pixels of the video for each pixel of the screen, in both directions


class VideoFile:
    """Writes screens to an mp4 file; to be used in a `with` block.

    Args:
      path: of the file; its folder is created.

    Raises:
      OSError: in `show`, the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._cv2 = require("cv2", "opencv-python-headless")
        self._writer: Any = None

    def show(self, screen: np.ndarray) -> None:
        """Adds a screen, uint8 `[height, width, 3]`, red first; all have one size."""
        large = enlarge(screen)
        if self._writer is None:
            self._writer = self._open(large.shape[1], large.shape[0])
        self._writer.write(large)

    def _open(self, width: int, height: int) -> Any:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        codec = self._cv2.VideoWriter_fourcc(*"mp4v")
        writer = self._cv2.VideoWriter(self.path, codec, FRAMES_PER_SECOND, (width, height))
        if not writer.isOpened():
            raise OSError(f"Cannot write a video to {self.path}: give another --video FILE.mp4.")
        return writer

    def __enter__(self) -> "VideoFile":
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._writer is not None:
            self._writer.release()
            logger.info(f"Video written to {self.path}.")


class Window:
    """Shows screens in a window, at the speed of the game; to be used in a `with` block.

    Raises:
      OSError: there is no screen, or this OpenCV cannot open windows.
    """

    _title = "DeepQNetwork"

    def __init__(self) -> None:
        self._cv2 = require("cv2", "opencv-python")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise OSError("There is no screen.")
        try:
            self._cv2.namedWindow(self._title)
        except self._cv2.error as error:  # opencv-python-headless has no windows
            raise OSError("This OpenCV cannot open windows.") from error

    def show(self, screen: np.ndarray) -> None:
        """Shows a screen, uint8 `[height, width, 3]`, red first, for the time of one frame."""
        self._cv2.imshow(self._title, enlarge(screen))
        self._cv2.waitKey(int(1000 / FRAMES_PER_SECOND))

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._cv2.destroyWindow(self._title)


def open_screen(path: Optional[str], path_without_screen: str) -> Union[VideoFile, Window]:
    """Returns what shows the frames: a file if one is named, else a window if possible.

    Args:
      path: of the video file; None to show the frames in a window.
      path_without_screen: of the video file where windows cannot be opened.
    """
    if path is None:
        try:
            return Window()
        except OSError as error:
            logger.info(f"{error} The game is written to {path_without_screen}.")
            path = path_without_screen
    return VideoFile(path)


def enlarge(screen: np.ndarray) -> np.ndarray:
    """Returns the screen enlarged, and with blue first, as OpenCV needs it."""
    large = screen.repeat(_SCALE, 0).repeat(_SCALE, 1)
    return np.ascontiguousarray(large[..., ::-1])
