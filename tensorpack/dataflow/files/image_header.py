"""The size of an image by the header of its file, so that a huge one is refused before decoding."""

import io
import re
from importlib import import_module
from typing import List, Optional, Tuple

from tensorpack.utils.optional import require

JPEG, JPEG_SCAN = b"\xff\xd8", 0xDA
PNG = b"\x89PNG\r\n\x1a\n"
# How the files begin that OpenCV decodes, with the names of Pillow's plugins for their headers.
_BEGINS = re.compile(
    rb"(?P<Jpeg>\xff\xd8)|(?P<Png>\x89PNG\r\n\x1a\n)|(?P<WebP>RIFF....WEBP)|(?P<Gif>GIF8[79]a)"
    rb"|(?P<Bmp>BM)|(?P<Tiff>II[*+]\0|MM\0[*+])|(?P<Ppm>P[1-6f]\s)|(?P<Sun>\x59\xa6\x6a\x95)"
    rb"|(?P<Jpeg2K>\0\0\0\x0cjP  |\xff\x4f\xff\x51)|(?P<Avif>....ftyp)",
    re.DOTALL,
)


def image_size(data: bytes) -> Optional[Tuple[int, int]]:
    """Returns (height, width) in pixels of the image in a file; None if they are not known.

    Not by `PIL.Image.open`, which has a limit of its own, for the whole process.
    """
    require("PIL")
    begin = _BEGINS.match(data)
    if begin is None:
        return None
    try:
        plugin = import_module(f"PIL.{begin.lastgroup}ImagePlugin")
        width, height = getattr(plugin, f"{begin.lastgroup}ImageFile")(io.BytesIO(data)).size
    except Exception:  # of any kind, for a header that is damaged on purpose
        return None
    return height, width


def jpeg_markers(data: bytes) -> List[Tuple[int, int]]:
    """Returns the markers of a JPEG file up to its first scan, and where they begin.

    If there is no scan, the last one is 0, where the next marker would be.
    """
    found = []
    place = len(JPEG)
    while place + 4 <= len(data) and data[place] == 0xFF:
        kind = data[place + 1]
        if kind == 0xFF:  # a filling byte
            place += 1
            continue
        found.append((kind, place))
        if kind == JPEG_SCAN:
            return found
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return [*found, (0, place)]
