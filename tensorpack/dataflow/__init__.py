"""Python iterables of datapoints, and what they are composed with; works without TensorFlow.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "DataFlow DataFlowTerminated ProxyDataFlow RNGDataFlow StateNotKept UnknownLength",
    "batch": "BatchData BatchDataByShape",
    "cache": "CacheData",
    "debug": "PrintData TestDataSpeed",
    "files.caffe": "CaffeLMDB",
    "files.hdf5": "HDF5Data HDF5Serializer",
    "files.images": "ImageFolder ImageFromFile ImageFromList",
    "files.lmdb_file": "LMDBData LMDBDataDecoder LMDBDataPoint LMDBSerializer",
    "files.npz": "NumpySerializer",
    "files.records": "DamagedFile RecordFile RecordsFlow write_records",
    "files.svmlight": "SVMLightData",
    "files.tfrecord": "TFRecordBytes TFRecordData TFRecordSerializer",
    "image": (
        "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates DecodeImageComponent"
    ),
    "join": "ConcatData JoinData RandomChooseData RandomMixData",
    "map": "FilterData MapData MapDataComponent RandomMapData SelectComponent",
    "process_map": (
        "MultiProcessMapAndBatchData MultiProcessMapAndBatchDataZMQ MultiProcessMapData "
        "MultiProcessMapDataZMQ"
    ),
    "processes": (
        "MultiProcessPrefetchData MultiProcessRunner MultiProcessRunnerZMQ PrefetchData "
        "PrefetchDataZMQ PrefetchOnGPUs WorkerDied WorkerFailed"
    ),
    "raw": "DataFromGenerator DataFromIterable DataFromList DataFromQueue FakeData",
    "remote": "RemoteDataZMQ make_remote_key send_dataflow_zmq",
    "repeat": "FixedSizeData RepeatedData RepeatedDataPoint",
    "shared_list": "SharedList",
    "shuffle": "LocallyShuffleData",
    "threads": "MultiThreadMapData MultiThreadPrefetchData MultiThreadRunner ThreadedMapData",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "dataset", "imgaug"])
