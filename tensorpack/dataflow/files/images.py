"""Images from files: a list of them, a folder with a subfolder for each class, or a list in a file.

Files are read and decoded when they are needed, by OpenCV, and turned as their EXIF says.
"""

import hashlib
import io
import os
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from tensorpack.utils import logger, shape2d
from tensorpack.utils.fs import recursive_walk
from tensorpack.utils.optional import require

from .records import DamagedFile, PathLike, RecordsFlow, input_path

_EXTENSIONS = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
_ENDS = {b"\xff\xd8": b"\xff\xd9", b"\x89PNG": b"IEND"}  # of JPEG and PNG, by how they begin
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
          names: whether each image comes with its path, as in `files`.
          max_pixels: a file that has more counts as damaged, as does one that Pillow does not read;
            None to decode all. Without Pillow there is no limit but that of OpenCV.
        """
        paths = [os.fsdecode(path) for path in files]
        self.files, self.channel, self.resize = list(map(os.path.abspath, paths)), channel, resize
        records = ImageRecords(self.files, paths if names else None, channel, resize, max_pixels)
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
        """
        if part not in (None, "train", "test"):
            raise ValueError(f'ImageFolder: part must be "train", "test" or None, got {part!r}.')
        directory = os.path.abspath(directory)
        self.classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not self.classes:
            raise ValueError(f"{directory} has no subfolders, but needs one for each class.")
        self.files: List[str] = []
        self.labels: List[int] = []
        skipped = 0
        for label, name in enumerate(self.classes):
            paths = list(recursive_walk(os.path.join(directory, name)))
            images = [path for path in paths if path.lower().endswith(_EXTENSIONS)]
            if not images:
                raise ValueError(
                    f"{os.path.join(directory, name)} has no images among its {len(paths)} files, "
                    f"with {', '.join(_EXTENSIONS)}. Remove it, or use ImageFromFile."
                )
            skipped += len(paths) - len(images)
            if part is not None:
                images = _part_of_class(images, directory, part == "test", test_share, seed)
            self.files += images
            self.labels += [label] * len(images)
        logger.info(
            f"{len(self.files)} images of {len(self.classes)} classes in {directory}"
            + (f", the {part} part" if part else "")
            + (f"; {skipped} other files are left out." if skipped else ".")
        )
        records = ImageRecords(self.files, self.labels, channel, resize, max_pixels)
        super().__init__(records, shuffle, max_errors)


def _part_of_class(
    paths: List[str], directory: str, is_test: bool, fraction: float, seed: int
) -> List[str]:
    def rank(path: str) -> bytes:
        return hashlib.sha256(os.fsencode(f"{seed}/{os.path.relpath(path, directory)}")).digest()

    count = min(max(round(fraction * len(paths)), 1), len(paths) - 1)
    test = set(sorted(paths, key=rank)[:count])
    return [path for path in paths if (path in test) == is_test]


class ImageFromList(RecordsFlow):
    """Yields `[image, label]` for the lines `path label` of a UTF-8 file.

    A path may have spaces in it; relative ones begin at `directory`, by default the folder of the
    list. The other arguments are those of `ImageFromFile`.
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
        list_file = input_path(list_file)
        root = os.path.abspath(os.path.dirname(list_file) if directory is None else directory)
        files: List[str] = []
        labels: List[int] = []
        with open(list_file, encoding="utf-8-sig") as file:
            for number, line in enumerate(map(str.strip, file), 1):
                if not line:
                    continue
                try:
                    path, label = line.rsplit(None, 1)
                    labels.append(int(label))
                except ValueError as error:
                    where = f"{list_file}: line {number}"
                    raise DamagedFile(f"{where} is not a path and a label: {line!r}.") from error
                files.append(os.path.join(root, path))
        records = ImageRecords(files, labels, channel, resize, max_pixels)
        super().__init__(records, shuffle, max_errors)


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
        check_decoding(channel)
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
            image = require("cv2").resize(image, self._size[::-1]).reshape(*self._size, -1)
        return [image] if self._labels is None else [image, self._labels[index]]


def check_decoding(channel: int) -> None:
    """Raises if `decode_image` has no such `channel`, or OpenCV is not installed."""
    if channel not in (1, 3):
        raise ValueError(f"An image has 3 channels, or 1 for grey, but got channel={channel}.")
    require("cv2")  # to be missed now, and not in the middle of a run


def decode_image(
    data: bytes,
    path: str,
    channel: int = 3,
    bgr: bool = False,
    max_pixels: Optional[int] = MOST_PIXELS,
) -> np.ndarray:
    """Returns the image in a file's content, uint8 `[h, w, channel]`."""
    cv2 = require("cv2")
    if not data:
        raise DamagedFile(f"{path} is empty.")
    pixels = 0 if max_pixels is None else _check_header(data, path, max_pixels)
    for start, end in _ENDS.items():  # where OpenCV before 5 makes up the rest of the image
        if data.startswith(start) and data.rfind(end, pixels) < 0:
            raise DamagedFile(f"{path} is cut off after {len(data)} bytes: its end is missing.")
    flags = cv2.IMREAD_GRAYSCALE if channel == 1 else cv2.IMREAD_COLOR
    swap = channel == 3 and not bgr
    if swap and hasattr(cv2, "IMREAD_COLOR_RGB"):  # since OpenCV 4.11
        flags, swap = cv2.IMREAD_COLOR_RGB, False
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
        if image is None:
            raise cv2.error("its content is damaged, or of another format")
    except cv2.error as error:
        what = f"{path} is not an image that OpenCV reads ({len(data)} bytes)"
        raise DamagedFile(f"{what}: {error}.") from error
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if swap else image
    return image[:, :, np.newaxis] if channel == 1 else image


def _check_header(data: bytes, path: str, max_pixels: int) -> int:
    """Checks the size in a header; returns where the pixels begin, 0 if Pillow is not installed."""
    try:
        pillow: Any = require("PIL.Image")
    except ModuleNotFoundError:
        return 0
    file = io.BytesIO(data)
    try:
        width, height = pillow.open(file).size
    except Exception as error:  # of any kind, for a header that is damaged
        raise DamagedFile(
            f"{path} is not an image that Pillow reads ({len(data)} bytes): "
            f"{str(error).partition(' <')[0]}. With max_pixels=None OpenCV tries it."
        ) from error
    if width * height > max_pixels:
        raise DamagedFile(
            f"{path} is refused: it has {height} x {width} pixels, more than "
            f"max_pixels={max_pixels}. If that is its size, give a higher limit."
        )
    return file.tell()
