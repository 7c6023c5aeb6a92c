"""Images from files: a list of them, a folder with a subfolder for each class, or a list in a file.

Files are read and decoded when they are wanted, by OpenCV, and turned as their EXIF says. A file
that is cut off is an error here, where OpenCV would make up the rest of the image.
"""

import hashlib
import io
import os
import sys
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger, shape2d
from tensorpack.utils.checks import as_count, as_names, as_number
from tensorpack.utils.fs import recursive_walk
from tensorpack.utils.optional import require
from tensorpack.utils.viz import dump_dataflow_images as _dump_images

from ..base import DataFlow
from .records import DamagedFile, PathLike, RecordsFlow, input_path

_EXTENSIONS = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
_JPEG, _JPEG_SCAN, _JPEG_END = b"\xff\xd8", b"\xda", b"\xff\xd9"
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND"
MOST_PIXELS = 2**28  # 16,384 x 16,384; no camera has as many

_Resize = Union[None, int, Sequence[int]]


class ImageFromFile(RecordsFlow):
    """Yields `[image]` for each file, or with `names` `[image, path]`: uint8 `[h, w, 3]` in RGB, or
    `[h, w, 1]` in grey.
    """

    def __init__(
        self,
        files: Sequence[PathLike],
        channel: int = 3,
        resize: _Resize = None,
        shuffle: bool = False,
        max_errors: int = 0,
        *,
        names: bool = False,
        max_pixels: Optional[int] = MOST_PIXELS,
    ) -> None:
        """
        Args:
          files: the paths. The list is left as it is, whatever `shuffle` says.
          channel: 3 for colour, 1 for grey.
          resize: (height, width) in pixels, or one number for both; None to leave them.
          shuffle: whether each pass has its own order.
          max_errors: how many files that cannot be read a pass skips, see `RecordsFlow`.
          names: whether each image comes with its path, as it was given.
          max_pixels: a file that has more counts as damaged; None to decode all. Where Pillow is
            installed, it is not decoded, and neither is one of a format that Pillow does not know,
            or with more than twice `PIL.Image.MAX_IMAGE_PIXELS`.
        """
        if isinstance(files, (str, bytes, os.PathLike)):
            raise TypeError(
                f"ImageFromFile takes a list of files, but got {files!r}. For the files of a "
                "folder use ImageFolder."
            )
        given = [os.fsdecode(each) for each in files]
        self.files, self.channel, self.resize = list(map(os.path.abspath, given)), channel, resize
        records = ImageRecords(self.files, given if names else None, channel, resize, max_pixels)
        super().__init__(records, shuffle, max_errors)


class ImageFolder(RecordsFlow):
    """Yields `[image, label]` for the files of a folder that has a subfolder for each class.

    The label is the position of the class in `classes`, a Python integer. Files are in the order of
    their paths, those in subfolders after the others. With `part`, each class is split, by `seed`,
    `test_share` and the names of its files alone.

    Attributes:
      classes: the names of the subfolders, sorted.
      files: the paths of all images of the part.
      labels: the label of each of `files`.
    """

    def __init__(
        self,
        directory: PathLike,
        channel: int = 3,
        resize: _Resize = None,
        shuffle: bool = True,
        max_errors: int = 0,
        *,
        part: Optional[str] = None,
        test_share: float = 0.2,
        seed: int = 0,
        extensions: Sequence[str] = _EXTENSIONS,
        max_pixels: Optional[int] = MOST_PIXELS,
    ) -> None:
        """
        Args:
          directory: the folder.
          channel, resize, shuffle, max_errors, max_pixels: as in `ImageFromFile`.
          part: "train" or "test"; None for all images.
          test_share: the share of the test part in each class, in (0, 1); at least one image of
            each part, if there are two.
          seed: another one makes another split.
          extensions: file suffixes of images, in lower case. How many files have others is logged.
        """
        if part not in (None, "train", "test"):
            raise ValueError(f'ImageFolder: part must be "train", "test" or None, got {part!r}.')
        if not 0 < as_number(self, "test_share", test_share) < 1:
            raise ValueError(f"ImageFolder: test_share is a share like 0.2, got {test_share}.")
        directory = os.path.abspath(directory)
        self.classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not self.classes:
            raise ValueError(f"{directory} has no subfolders, but needs one for each class.")
        self.files: List[str] = []
        self.labels: List[int] = []
        others, endings = 0, tuple(as_names(self, "extensions", extensions))
        for label, name in enumerate(self.classes):
            found = list(recursive_walk(os.path.join(directory, name)))
            images = [path for path in found if path.lower().endswith(endings)]
            if not images:
                raise ValueError(
                    f"{os.path.join(directory, name)} has no images among its {len(found)} files. "
                    "Remove it, or give the right extensions."
                )
            others += len(found) - len(images)
            if part is not None:
                images = _part_of_class(images, directory, part == "test", test_share, seed)
            self.files += images
            self.labels += [label] * len(images)
        logger.info(
            f"{len(self.files)} images of {len(self.classes)} classes in {directory}"
            + (f", the {part} part" if part else "")
            + (f"; {others} other files are left out." if others else ".")
        )
        records = ImageRecords(self.files, self.labels, channel, resize, max_pixels)
        super().__init__(records, shuffle, max_errors)


def _part_of_class(
    paths: List[str], directory: str, is_test: bool, share: float, seed: int
) -> List[str]:
    def rank(path: str) -> bytes:
        return hashlib.sha256(os.fsencode(f"{seed}/{os.path.relpath(path, directory)}")).digest()

    count = min(max(round(share * len(paths)), 1), len(paths) - 1)
    test = set(sorted(paths, key=rank)[:count])
    return [path for path in paths if (path in test) == is_test]


class ImageFromList(RecordsFlow):
    """Yields `[image, label]` for the lines of a file, see `read_image_list`.

    The other arguments are those of `ImageFromFile`.
    """

    def __init__(
        self,
        list_file: PathLike,
        directory: Optional[PathLike] = None,
        channel: int = 3,
        resize: _Resize = None,
        shuffle: bool = True,
        max_errors: int = 0,
        *,
        max_pixels: Optional[int] = MOST_PIXELS,
    ) -> None:
        files, labels = map(list, zip(*read_image_list(list_file, directory)))
        records = ImageRecords(files, labels, channel, resize, max_pixels)
        super().__init__(records, shuffle, max_errors)


def read_image_list(
    list_file: PathLike, directory: Optional[PathLike] = None
) -> List[Tuple[str, int]]:
    """Returns the paths and labels of a text file that has `path label` on each line.

    A path may have spaces in it; lines without anything are left out. The text is UTF-8. Relative
    paths begin at `directory`, by default the folder of the list.
    """
    list_file = input_path(list_file)
    root = os.path.dirname(list_file) if directory is None else os.path.abspath(directory)
    entries = []
    with open(list_file, "rb") as file:
        for number, line in enumerate(file, 1):
            parts = line.strip().rsplit(None, 1)
            if not parts:
                continue
            try:
                path, label = (part.decode("utf-8-sig") for part in parts)
                entries.append((os.path.join(root, path), int(label)))
            except ValueError as error:
                where = f"{list_file}: line {number}"
                raise DamagedFile(f"{where} is not a path and a label: {error}.") from error
    if not entries:
        raise DamagedFile(f"{list_file} has no lines.")
    return entries


def dump_dataflow_images(
    df: DataFlow, dirname: str, max_count: Optional[int] = None, index: int = 0
) -> int:
    """Writes up to `max_count` images as `000.jpg`, ... to a folder; returns their number.

    Component `index` is `[h, w]`, `[h, w, 1]` or `[h, w, 3]` in BGR.
    """
    number = sys.maxsize if max_count is None else max_count
    return _dump_images(df, index, batched=False, number=number, output_dir=dirname)


class ImageRecords:
    """Images by index, with labels unless these are None; `bgr` is the order of OpenCV."""

    def __init__(
        self,
        files: List[str],
        labels: Optional[Sequence[Any]],
        channel: int = 3,
        resize: _Resize = None,
        max_pixels: Optional[int] = MOST_PIXELS,
        bgr: bool = False,
    ) -> None:
        check_decoding(channel, max_pixels)
        self._size = None if resize is None else shape2d(resize)
        self.files, self._labels, self._options = files, labels, (channel, bgr, max_pixels)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> List[Any]:
        path = self.files[index]
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise DamagedFile(f"{path} cannot be read: {error}.") from error
        image = decode_image(data, path, *self._options)
        if self._size is not None:
            image = require("cv2").resize(image, self._size[::-1])
        if image.ndim == 2:
            image = image[:, :, np.newaxis]
        return [image] if self._labels is None else [image, self._labels[index]]


def check_decoding(channel: int, max_pixels: Optional[int]) -> None:
    """Raises what `decode_image` would with these options, and if a library is not installed."""
    if channel not in (1, 3):
        raise ValueError(f"An image has 3 channels, or 1 for grey, but got channel={channel}.")
    require("cv2")  # to be missed now, and not in the middle of a run
    if max_pixels is not None:
        as_count("Images", "max_pixels", max_pixels)


def decode_image(
    data: bytes,
    path: str,
    channel: int = 3,
    bgr: bool = False,
    max_pixels: Optional[int] = MOST_PIXELS,
) -> np.ndarray:
    """Returns the image in a file's content, uint8 `[h, w, 3]`, or `[h, w]` for one channel."""
    cv2 = require("cv2")
    if not data:
        raise DamagedFile(f"{path} is empty.")
    if _is_cut_off(data):
        raise DamagedFile(f"{path} is cut off after {len(data)} bytes: its end is missing.")
    if max_pixels is not None:
        _check_size(image_size(data, path), path, max_pixels)
    colour = cv2.IMREAD_COLOR if channel == 3 else cv2.IMREAD_GRAYSCALE
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), colour)
        if image is not None and channel == 3 and not bgr:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    except cv2.error as error:
        raise DamagedFile(f"{path} is not an image that OpenCV reads: {error}.") from error
    if image is None:
        raise DamagedFile(f"{path} is not an image that OpenCV reads ({len(data)} bytes).")
    if max_pixels is not None:  # without Pillow, or if its header is not what OpenCV reads
        _check_size(image.shape, path, max_pixels)
    return image


def _check_size(size: Sequence[int], path: str, max_pixels: int) -> None:
    if size[0] * size[1] > max_pixels:
        raise DamagedFile(
            f"{path} is refused: it has {size[0]} x {size[1]} pixels, more than "
            f"max_pixels={max_pixels}. If that is its size, give a higher limit."
        )


def image_size(data: bytes, path: str) -> Tuple[int, int]:
    """Returns (height, width) in a file's header, or (0, 0) if Pillow is not installed."""
    try:
        pillow: Any = require("PIL.Image")
    except ModuleNotFoundError:
        return 0, 0
    try:
        with pillow.open(io.BytesIO(data)) as image:
            width, height = image.size
    except pillow.DecompressionBombError as error:
        raise DamagedFile(
            f"{path} is refused: {error} If that is its size, give max_pixels=None."
        ) from error
    except Exception as error:  # of any kind, for a header that is damaged
        raise DamagedFile(
            f"{path} is not an image that Pillow recognises ({len(data)} bytes). What only OpenCV "
            "reads is decoded with max_pixels=None."
        ) from error
    return height, width


def _is_cut_off(data: bytes) -> bool:
    """Whether these are the first bytes of a JPEG or PNG file whose end is missing."""
    if data.startswith(_PNG):
        return data.rfind(_PNG_END, len(_PNG)) < 0
    if not data.startswith(_JPEG):
        return False
    place = len(_JPEG)  # of a segment; one before the pixels may hold a small copy of the image
    while data[place : place + 1] == b"\xff" and data[place + 1 : place + 2] != _JPEG_SCAN:
        is_fill = data[place + 1 : place + 2] == b"\xff"
        place += 1 if is_fill else 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return data.rfind(_JPEG_END, place) < 0
