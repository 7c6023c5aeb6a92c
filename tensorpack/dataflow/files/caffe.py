"""Images from the LMDB files that Caffe's tools write, without Caffe or protobuf.

Their records, `Datum`, are protobuf messages of seven fields; the rules of that encoding are here.
"""

import ctypes
import io
from typing import Any, BinaryIO, Dict, Iterator, List, Tuple

import numpy as np

from tensorpack.utils.packing.old_values import BadRecord

from .images import decode_image
from .lmdb_file import LMDBData, LMDBRecords
from .records import DamagedFile

_CHANNELS, _HEIGHT, _WIDTH, _DATA, _LABEL, _, _ENCODED = range(1, 8)  # the fields of a Datum
_VARINT, _BYTES = 0, 2  # how a field is encoded
_SIZES = {1: 8, 5: 4}  # of the encodings of a fixed number of bytes


class _Images(LMDBRecords):
    def _element(self, key: bytes, value: bytes) -> Any:
        return read_datum(value)


class CaffeLMDB(LMDBData):
    """Yields `[image, label]`: a new uint8 array `[height, width, channels]`, and an int.

    Channels are in the order they were written with; encoded images are BGR, and need OpenCV.
    A record without a readable image counts as damaged. Caffe writes no list of keys, so
    all are read first, unless you give `keys`.
    """

    _RECORDS = _Images


def read_datum(buf: bytes) -> List[Any]:
    """Returns the image and the label of a record, or raises `BadRecord`."""
    fields: Dict[int, Any] = dict(message_fields(buf))
    data = fields.get(_DATA, b"")
    try:
        *shape, label = (
            ctypes.c_int32(fields.get(number, 0)).value
            for number in (_CHANNELS, _HEIGHT, _WIDTH, _LABEL)
        )
        if fields.get(_ENCODED):
            return [decode_image(data, "Its image", 1 if shape[0] == 1 else 3, bgr=True), label]
        if min(shape) < 1:
            raise ValueError(f"an image of {shape}")
        return [np.frombuffer(data, np.uint8).reshape(shape).transpose(1, 2, 0).copy(), label]
    except DamagedFile as error:
        raise BadRecord(str(error)) from error
    except (TypeError, ValueError) as error:
        raise BadRecord(f"It is not a Datum with an image: {error}.") from error


def message_fields(buf: bytes) -> Iterator[Tuple[int, Any]]:
    """Yields the number and the value, an int or bytes, of each field of a protobuf message."""
    stream = io.BytesIO(buf)
    try:
        while stream.tell() < len(buf):
            number, kind = divmod(_varint(stream), 8)
            if kind == _VARINT:
                yield number, _varint(stream)
                continue
            size = _varint(stream) if kind == _BYTES else _SIZES[kind]
            value = stream.read(size)
            if len(value) < size:
                raise ValueError("a field is cut off")
            yield number, value
    except (KeyError, ValueError, OverflowError) as error:
        place = f"at byte {stream.tell()} of {len(buf)}"
        raise BadRecord(f"This is not a Caffe message: {error!r} {place}.") from error


def _varint(stream: BinaryIO) -> int:
    """Returns a number of which each byte has 7 bits, the lowest first."""
    number = shift = 0
    byte = 0x80
    while byte & 0x80:
        (byte,) = stream.read(1)
        number |= (byte & 0x7F) << shift
        shift += 7
    return number
