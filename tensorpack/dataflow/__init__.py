"""Python iterables of datapoints, and what they are composed with; works without TensorFlow."""

from ._files import DamagedFile
from .base import (
    DataFlow,
    DataFlowTerminated,
    ProxyDataFlow,
    RNGDataFlow,
    StateNotKept,
    UnknownLength,
)
from .batch import BatchData
from .batch_by_shape import BatchDataByShape
from .cache import CacheData
from .caffe import CaffeLMDB
from .choose import RandomChooseData, RandomMixData
from .csv import CSVData
from .debug import PrintData, TestDataSpeed
from .fake import FakeData
from .hdf5 import HDF5Data, HDF5Serializer
from .image_files import ImageFolder, ImageFromFile, ImageFromList
from .join import ConcatData, JoinData
from .lmdb import LMDBData, LMDBDataDecoder, LMDBDataPoint, LMDBSerializer, convert_old_lmdb
from .map import MapData, MapDataComponent, SelectComponent
from .npz import NumpySerializer
from .process_batch import MultiProcessMapAndBatchData, MultiProcessMapAndBatchDataZMQ
from .process_map import MultiProcessMapData, MultiProcessMapDataZMQ
from .processes import (
    MultiProcessPrefetchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    PrefetchData,
    PrefetchDataZMQ,
    PrefetchOnGPUs,
)
from .raw import DataFromGenerator, DataFromIterable, DataFromList, DataFromQueue
from .remote import RemoteDataZMQ, make_remote_key, send_dataflow_zmq
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
    "FakeData",
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
    "RandomMixData",
    "RemoteDataZMQ",
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
    "convert_old_lmdb",
    "make_remote_key",
    "send_dataflow_zmq",
]
