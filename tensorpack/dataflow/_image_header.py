"""The size of an image by the header of its file, so that a huge one is refused before decoding.

Sources: JPEG ITU-T T.81 (B.2.2), PNG (W3C, 11.2.2), BMP (Windows bitmap headers), WebP (RFC 9649),
TIFF 6.0, and the netpbm documents for PGM and PPM.
"""

import re
import struct
from typing import List, Optional, Tuple

_Size = Optional[Tuple[int, int]]  # height and width in pixels; None if the header is not known

JPEG, JPEG_SCAN = b"\xff\xd8", 0xDA
PNG = b"\x89PNG\r\n\x1a\n"
# The start of a frame: 0xC0 to 0xCF, of which these are other markers.
_NO_FRAME = (0xC4, 0xC8, 0xCC)
_PNM = re.compile(rb"P[1-6](?:\s|#[^\n]*\n)+(\d{1,18})(?:\s|#[^\n]*\n)+(\d{1,18})\s")
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_SHORT = 256, 257, 3


def image_size(data: bytes) -> _Size:
    """Returns (height, width) in pixels of the image in a file; None if the header is not known."""
    try:
        if data.startswith(JPEG):
            return _of_jpeg(data)
        if data.startswith(PNG):
            width, height = struct.unpack_from(">II", data, 16)
            return height, width
        if data.startswith(b"BM"):
            return _of_bmp(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _of_webp(data)
        if data[:4] in (b"II*\0", b"MM\0*"):
            return _of_tiff(data, "<" if data[:1] == b"I" else ">")
    except struct.error:  # the header is cut off
        return None
    pnm = _PNM.match(data)
    return (int(pnm.group(2)), int(pnm.group(1))) if pnm else None


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


def _of_jpeg(data: bytes) -> _Size:
    for kind, place in jpeg_markers(data):
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAME:
            return struct.unpack_from(">HH", data, place + 5)  # type: ignore[return-value]
    return None


def _of_bmp(data: bytes) -> _Size:
    if struct.unpack_from("<I", data, 14)[0] == 12:  # the header of OS/2
        width, height = struct.unpack_from("<HH", data, 18)
    else:
        width, height = struct.unpack_from("<ii", data, 18)
    return abs(height), abs(width)  # a negative height is that of rows from the top down


def _of_webp(data: bytes) -> _Size:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return height & 0x3FFF, width & 0x3FFF
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8X" and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return height, width
    return None


def _of_tiff(data: bytes, order: str) -> _Size:
    begin = struct.unpack_from(order + "I", data, 4)[0]
    found = {}
    for number in range(struct.unpack_from(order + "H", data, begin)[0]):
        place = begin + 2 + 12 * number
        tag, kind = struct.unpack_from(order + "HH", data, place)
        form = order + ("H" if kind == _TIFF_SHORT else "I")
        found[tag] = struct.unpack_from(form, data, place + 8)[0]
    if _TIFF_WIDTH in found and _TIFF_HEIGHT in found:
        return found[_TIFF_HEIGHT], found[_TIFF_WIDTH]
    return None
