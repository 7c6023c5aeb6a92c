"""Python iterables of datapoints, and what they are composed with; works without TensorFlow.

A module is loaded when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._files import DamagedFile
    from .base import (
        DataFlow,
        DataFlowTerminated,
        ProxyDataFlow,
        RNGDataFlow,
        StateNotKept,
        UnknownLength,
    )
    from .batch import BatchData, BatchDataByShape
    from .cache import CacheData
    from .caffe import CaffeLMDB
    from .choose import RandomChooseData, RandomMixData
    from .csv import CSVData
    from .debug import PrintData, TestDataSpeed
    from .fake import FakeData
    from .hdf5 import HDF5Data, HDF5Serializer
    from .image import AugmentImageComponent, AugmentImageComponents, AugmentImageCoordinates
    from .image_codec import DecodeImageComponent, EncodeImageComponent
    from .image_files import ImageFolder, ImageFromFile, ImageFromList
    from .join import ConcatData, JoinData
    from .lmdb import LMDBData, LMDBDataDecoder, LMDBDataPoint, LMDBSerializer, convert_old_lmdb
    from .map import FilterData, MapData, MapDataComponent, SelectComponent
    from .npz import NumpySerializer
    from .process_map import (
        MultiProcessMapAndBatchData,
        MultiProcessMapAndBatchDataZMQ,
        MultiProcessMapData,
        MultiProcessMapDataZMQ,
    )
    from .processes import (
        MultiProcessPrefetchData,
        MultiProcessRunner,
        MultiProcessRunnerZMQ,
        PrefetchData,
        PrefetchDataZMQ,
        PrefetchOnGPUs,
        WorkerDied,
        WorkerFailed,
    )
    from .random_map import RandomMapData
    from .raw import DataFromGenerator, DataFromIterable, DataFromList, DataFromQueue
    from .remote import RemoteDataZMQ, RemoteSender, make_remote_key, send_dataflow_zmq
    from .repeat import FixedSizeData, RepeatedData, RepeatedDataPoint
    from .shared_list import SharedList
    from .shuffle import LocallyShuffleData
    from .svmlight import SVMLightData
    from .tfrecord import TFRecordBytes, TFRecordData, TFRecordSerializer
    from .threads import (
        MultiThreadMapData,
        MultiThreadPrefetchData,
        MultiThreadRunner,
        ThreadedMapData,
    )

__all__ = [
    "AugmentImageComponent",
    "AugmentImageComponents",
    "AugmentImageCoordinates",
    "BatchData",
    "BatchDataByShape",
    "CSVData",
    "CacheData",
    "CaffeLMDB",
    "ConcatData",
    "DamagedFile",
    "DataFlow",
    "DataFlowTerminated",
    "DataFromGenerator",
    "DataFromIterable",
    "DataFromList",
    "DataFromQueue",
    "DecodeImageComponent",
    "EncodeImageComponent",
    "FakeData",
    "FilterData",
    "FixedSizeData",
    "HDF5Data",
    "HDF5Serializer",
    "ImageFolder",
    "ImageFromFile",
    "ImageFromList",
    "JoinData",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "LMDBSerializer",
    "LocallyShuffleData",
    "MapData",
    "MapDataComponent",
    "MultiProcessMapAndBatchData",
    "MultiProcessMapAndBatchDataZMQ",
    "MultiProcessMapData",
    "MultiProcessMapDataZMQ",
    "MultiProcessPrefetchData",
    "MultiProcessRunner",
    "MultiProcessRunnerZMQ",
    "MultiThreadMapData",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "NumpySerializer",
    "PrefetchData",
    "PrefetchDataZMQ",
    "PrefetchOnGPUs",
    "PrintData",
    "ProxyDataFlow",
    "RNGDataFlow",
    "RandomChooseData",
    "RandomMapData",
    "RandomMixData",
    "RemoteDataZMQ",
    "RemoteSender",
    "RepeatedData",
    "RepeatedDataPoint",
    "SVMLightData",
    "SelectComponent",
    "SharedList",
    "StateNotKept",
    "TFRecordBytes",
    "TFRecordData",
    "TFRecordSerializer",
    "TestDataSpeed",
    "ThreadedMapData",
    "UnknownLength",
    "WorkerDied",
    "WorkerFailed",
    "convert_old_lmdb",
    "make_remote_key",
    "send_dataflow_zmq",
]

_NAMES = {  # module -> its public names
    "_files": "DamagedFile",
    "base": "DataFlow DataFlowTerminated ProxyDataFlow RNGDataFlow StateNotKept UnknownLength",
    "batch": "BatchData BatchDataByShape",
    "cache": "CacheData",
    "caffe": "CaffeLMDB",
    "choose": "RandomChooseData RandomMixData",
    "csv": "CSVData",
    "debug": "PrintData TestDataSpeed",
    "fake": "FakeData",
    "hdf5": "HDF5Data HDF5Serializer",
    "image": "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates",
    "image_codec": "DecodeImageComponent EncodeImageComponent",
    "image_files": "ImageFolder ImageFromFile ImageFromList",
    "join": "ConcatData JoinData",
    "lmdb": "LMDBData LMDBDataDecoder LMDBDataPoint LMDBSerializer convert_old_lmdb",
    "map": "FilterData MapData MapDataComponent SelectComponent",
    "npz": "NumpySerializer",
    "process_map": (
        "MultiProcessMapAndBatchData MultiProcessMapAndBatchDataZMQ MultiProcessMapData "
        "MultiProcessMapDataZMQ"
    ),
    "processes": (
        "MultiProcessPrefetchData MultiProcessRunner MultiProcessRunnerZMQ PrefetchData "
        "PrefetchDataZMQ PrefetchOnGPUs WorkerDied WorkerFailed"
    ),
    "random_map": "RandomMapData",
    "raw": "DataFromGenerator DataFromIterable DataFromList DataFromQueue",
    "remote": "RemoteDataZMQ RemoteSender make_remote_key send_dataflow_zmq",
    "repeat": "FixedSizeData RepeatedData RepeatedDataPoint",
    "shared_list": "SharedList",
    "shuffle": "LocallyShuffleData",
    "svmlight": "SVMLightData",
    "tfrecord": "TFRecordBytes TFRecordData TFRecordSerializer",
    "threads": "MultiThreadMapData MultiThreadPrefetchData MultiThreadRunner ThreadedMapData",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Loads the module of a public name, or a module of this package, on first use (PEP 562)."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    path = f"{__name__}.{name}"
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
    raise AttributeError(f"{__name__} has no public name {name!r}")


def __dir__() -> List[str]:
    return list(__all__)


__path__.append(f"{__path__[0]}/../_addresses/dataflow")  # modules under their old names
