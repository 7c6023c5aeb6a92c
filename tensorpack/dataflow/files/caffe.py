"""Images from the LMDB files that Caffe's tools write, without Caffe or protobuf.

Their records, `Datum`, are protobuf messages of seven fields; the rules of that encoding are here.
"""

import ctypes
from typing import Any, Dict, Iterator, NamedTuple, Tuple

import numpy as np

from tensorpack.utils.packing.old_values import BadRecord

from .images import decode_image
from .lmdb_file import LMDBData, LMDBRecords
from .records import DamagedFile

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # how a field is encoded
_FIELDS = {1: "channels", 2: "height", 3: "width", 4: "data", 5: "label", 7: "encoded"}
_FLOATS = 6  # the number of the field for pixels that are not bytes
_MOST_VARINT_BYTES = 10


class _Images(LMDBRecords):
    def _element(self, key: bytes, value: bytes) -> Any:
        datum = read_datum(value)
        return [datum_image(datum), datum.label]


class CaffeLMDB(LMDBData):
    """Yields `[image, label]`: a new uint8 array `[height, width, channels]`, and an int.

    Channels are in the order they were written with; encoded images are BGR, and need OpenCV.
    A record without a readable image counts as damaged. Caffe writes no list of keys, so
    all are read first, unless you give `keys`.
    """

    _RECORDS = _Images


class Datum(NamedTuple):
    """A record. `data` is the pixels as `[channels, height, width]`, or an encoded image."""

    channels: int = 0
    height: int = 0
    width: int = 0
    data: bytes = b""
    label: int = 0
    encoded: bool = False


def read_datum(buf: bytes) -> Datum:
    """Returns the record that is encoded in some bytes, or raises `BadRecord`."""
    found: Dict[str, Any] = {}
    for number, kind, value in message_fields(buf):
        if number == _FLOATS:
            raise BadRecord("Its pixels are floats. Only those of bytes are read.")
        if number in _FIELDS:
            name = _FIELDS[number]
            if kind != (_BYTES if name == "data" else _VARINT):
                raise BadRecord(f"The field {name!r} of the Datum has the encoding {kind}.")
            found[name] = value if kind == _BYTES else ctypes.c_int32(value).value
    found["encoded"] = bool(found.get("encoded"))
    return Datum(**found)


def datum_image(datum: Datum) -> np.ndarray:
    """Returns the image of a record, a new uint8 array; encoded ones of colour are in BGR."""
    if datum.encoded:
        channel = 1 if datum.channels == 1 else 3
        try:
            image = decode_image(datum.data, "Its image", channel, bgr=True)
        except DamagedFile as error:
            raise BadRecord(str(error)) from error
        return image[:, :, np.newaxis] if channel == 1 else image
    shape = datum.channels, datum.height, datum.width
    if min(shape) < 1 or shape[0] * shape[1] * shape[2] != len(datum.data):
        raise BadRecord(f"An image of {shape} does not have {len(datum.data)} bytes.")
    return np.frombuffer(datum.data, np.uint8).reshape(shape).transpose(1, 2, 0).copy()


def message_fields(buf: bytes) -> Iterator[Tuple[int, int, Any]]:
    """Yields the number, the encoding and the value of each field of a protobuf message."""
    position = 0
    while position < len(buf):
        begin = position
        tag, position = _varint(buf, position)
        number, kind = tag >> 3, tag & 7
        if number and kind == _VARINT:
            value, position = _varint(buf, position)
            yield number, kind, value
            continue
        sizes = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
        if kind == _BYTES:
            sizes[kind], position = _varint(buf, position)
        if kind not in sizes:
            raise _not_caffe(f"a field of encoding {kind} at byte {begin}")
        size = sizes[kind]
        if number == 0 or size > len(buf) - position:
            raise _not_caffe(f"a wrong field at byte {begin} of {len(buf)}")
        yield number, kind, buf[position : position + size]
        position += size


def _varint(buf: bytes, position: int) -> Tuple[int, int]:
    """Returns a number of 7 bits in each byte, and where the next field begins."""
    number = 0
    for index, byte in enumerate(buf[position : position + _MOST_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, position + index + 1
    raise _not_caffe(f"a number without an end at byte {position}")


def _not_caffe(problem: str) -> BadRecord:
    return BadRecord(f"This is not a Caffe message: {problem}.")
