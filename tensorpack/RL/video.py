"""Shows a game in a window, or writes it to a video file; with the values of the actions.

Needs OpenCV. The callback that evaluates, and when it writes a video, is the program's.
"""

import os
from contextlib import suppress
from typing import Any, ContextManager, List, Optional, Sequence, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.atomic import fsync_path
from tensorpack.utils.optional import require

from .player import Player

FRAMES_PER_SECOND = 15.0  # the console has 60; the agent sees every fourth

_HEIGHT = 420  # pixels of a picture, at most, unless the screen itself has more
_WIDTH = 300  # pixels of the panel
_MEMORY = 200  # values that its line shows
_BACKGROUND, _TEXT, _CHOSEN, _OTHER = (24, 24, 24), (220, 220, 220), (255, 160, 40), (110, 130, 160)


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
            self._writer = self._open(picture.shape[1], picture.shape[0])
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
                self._check()
                fsync_path(self._temporary)
                os.replace(self._temporary, self.path)
                logger.info(f"Video written to {self.path}.")
        finally:
            with suppress(OSError):
                os.unlink(self._temporary)

    def _open(self, width: int, height: int) -> Any:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        codec = self._cv2.VideoWriter_fourcc(*"mp4v")
        writer = self._cv2.VideoWriter(self._temporary, codec, FRAMES_PER_SECOND, (width, height))
        if not writer.isOpened():
            raise OSError(
                f"Cannot write a video to {self.path}: it must be a FILE.mp4, in a folder in which "
                "you may write."
            )
        return writer

    def _check(self) -> None:
        """Reads how many pictures the file has, because the writer tells no errors."""
        written = self._cv2.VideoCapture(self._temporary)
        count = int(written.get(self._cv2.CAP_PROP_FRAME_COUNT)) if written.isOpened() else 0
        written.release()
        if count != self._count:
            raise OSError(f"{self.path} has {count} of {self._count} pictures: is the disk full?")

    def __exit__(self, kind: Any, *exc_info: object) -> None:
        self.close(keep=kind is None or issubclass(kind, KeyboardInterrupt))


class Window(ContextManager["Window"]):
    """Shows pictures in a window, at the speed of the game; OSError if there can be no window."""

    _title = "tensorpack"

    def __init__(self) -> None:
        self._cv2 = require("cv2", "opencv-python")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise OSError("There is no screen.")
        try:
            self._cv2.namedWindow(self._title)
        except self._cv2.error as error:  # opencv-python-headless has no windows
            raise OSError("This OpenCV cannot open windows.") from error

    def show(self, picture: np.ndarray) -> None:
        """Shows a picture, uint8 `[height, width, 3]`, red first, for the time of one frame."""
        self._cv2.imshow(self._title, np.ascontiguousarray(picture[..., ::-1]))
        self._cv2.waitKey(int(1000 / FRAMES_PER_SECOND))

    def __exit__(self, *exc_info: object) -> None:
        self._cv2.destroyWindow(self._title)


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


class ValuePanel:
    """Draws what the agent sees, and beside it the values of the actions.

    Above there is a bar for each action, the chosen one in another colour; below a line: the value
    of the best action over the last 200 actions. Bars and line have one scale, from the lowest to
    the highest value of that time. `names` are those of the actions.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._cv2 = require("cv2", "opencv-python-headless")
        self._names = list(names)
        self._count = 0
        self._values = np.zeros(len(self._names))
        self._lowest: List[float] = []
        self._highest: List[float] = []

    def draw(self, screen: np.ndarray, action: int, values: Optional[np.ndarray]) -> np.ndarray:
        """Returns the next picture, uint8 `[height, width, 3]`, red first.

        It has the screen, uint8 `[H, W]` or `[H, W, 3]`, enlarged, and the `values` of all actions,
        `[num_actions]`; these are None if chance chose the action.
        """
        self._count += 1
        if values is not None:
            self._values = np.nan_to_num(np.asarray(values, float))
            self._lowest = [*self._lowest[1 - _MEMORY :], float(self._values.min())]
            self._highest = [*self._highest[1 - _MEMORY :], float(self._values.max())]
        game = enlarge(screen)
        panel = np.full((len(game), _WIDTH, 3), _BACKGROUND, np.uint8)
        low, high = min(self._lowest, default=0.0), max(self._highest, default=1.0)
        high = max(high, low + 1e-3)
        above = len(panel) * 3 // 5
        self._draw_bars(panel[:above], action, (self._values - low) / (high - low))
        self._draw_line(panel[above:], low, high)
        note = f"action {self._count}" + (", by chance" if values is None else "")
        self._write(panel, note, 8, 14)
        return np.concatenate([game, panel], 1)

    def _draw_bars(self, area: np.ndarray, action: int, lengths: np.ndarray) -> None:
        row = min(24, (len(area) - 24) // len(self._names))
        for i, name in enumerate(self._names):
            top, color = 24 + i * row, _CHOSEN if i == action else _OTHER
            end = 112 + int(round(124 * lengths[i]))
            self._cv2.rectangle(area, (112, top + 2), (max(end, 113), top + row - 3), color, -1)
            self._write(area, name, 8, top + row - 4, color if i == action else _TEXT)
            self._write(area, f"{self._values[i]:.2f}", 244, top + row - 4)

    def _draw_line(self, area: np.ndarray, low: float, high: float) -> None:
        self._write(area, f"value of the best action, {low:.2f} to {high:.2f}", 8, 14)
        top, bottom = 24, len(area) - 8
        self._cv2.rectangle(area, (8, top), (_WIDTH - 8, bottom), _OTHER, 1)
        heights = (np.array(self._highest) - low) / (high - low)
        x = 8 + np.arange(len(heights)) * (_WIDTH - 16) / (_MEMORY - 1)
        points = np.stack([x, bottom - heights * (bottom - top)], 1).round().astype(np.int32)
        self._cv2.polylines(area, [points], False, _CHOSEN, 1)

    def _write(self, area: np.ndarray, text: str, x: int, y: int, color: Any = _TEXT) -> None:
        font = self._cv2.FONT_HERSHEY_SIMPLEX
        self._cv2.putText(area, text, (x, y), font, 0.36, color, 1, self._cv2.LINE_AA)


class GameVideo(ContextManager["GameVideo"]):
    """Writes one game of an evaluation to a video; to be used in a `with` block.

    An error of the disk, or frames that are no pictures, are logged and end the video, not the
    evaluation. `names` are those of the actions.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._panel = ValuePanel(names)
        self._file = VideoFile(path)
        self._error: Optional[Exception] = None

    def watch(self, frame: np.ndarray, action: int, values: Optional[np.ndarray]) -> None:
        """Adds a frame, with the decision of the agent; see `play_n_episodes`."""
        if self._error is not None:
            return
        try:
            self._file.show(self._panel.draw(frame, action, values))
        except Exception as error:  # of any kind, if the frame is no picture
            self._error = error

    def __exit__(self, kind: Any, *exc_info: object) -> None:
        try:
            self._file.close(keep=kind is None and self._error is None)
        except OSError as error:
            self._error = error
        if self._error is not None:
            logger.error(f"There is no video of this evaluation: {self._error}")


def action_names(player: Player) -> Sequence[str]:
    """Returns the names of a player's actions, their numbers if they have none."""
    return player.action_names or [str(action) for action in range(player.num_actions)]


def enlarge(screen: np.ndarray) -> np.ndarray:
    """Returns a screen in colours, as large as there is room for, of an even height for videos."""
    times = max(1, _HEIGHT // len(screen))
    if screen.ndim == 2:
        screen = screen[..., np.newaxis].repeat(3, 2)
    large = screen.repeat(times, 0).repeat(times, 1)
    return large[: len(large) // 2 * 2, : large.shape[1] // 2 * 2]
