"""Images from the LMDB files that Caffe's tools write, without Caffe or protobuf."""

from typing import Any

from ._files import PathLike
from ._lmdb.datum import datum_image, read_datum
from ._lmdb.keys import WantedKeys
from ._lmdb.records import LMDBFlow, Records

__all__ = ["CaffeLMDB"]


class CaffeLMDB(LMDBFlow):
    """Yields `[image, label]` for the records of a Caffe LMDB file.

    An image is a new uint8 array `[height, width, channels]`, in the order of channels that it was
    written with; encoded ones (which need OpenCV) are BGR. A label is an int. Caffe writes no list
    of keys, so all keys are read first, which is said in a warning; give `keys` to avoid it.
    """

    def __init__(
        self,
        lmdb_path: PathLike,
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 100,
        probe: bool = True,
    ) -> None:
        """
        Args:
          lmdb_path: the file, or the directory with `data.mdb`.
          shuffle: whether each pass has an order of its own.
          keys: which records, as in `LMDBData`.
          max_errors: how many records without a readable image a pass skips, each with a line in
            the log; one more is an error. `len` counts them.
          probe: whether the file is checked first, as in `LMDBData`.

        Raises:
          ImportError: lmdb is not installed.
          FileNotFoundError: there is no such file.
          ValueError: it is damaged; a `DamagedLMDB` that says where.
        """
        records = _Images(lmdb_path, keys, readahead=not shuffle, probed=probe)
        super().__init__(records, shuffle, max_errors)


class _Images(Records):
    def _element(self, key: bytes, value: bytes) -> Any:
        datum = read_datum(value)
        return [datum_image(datum), datum.label]
