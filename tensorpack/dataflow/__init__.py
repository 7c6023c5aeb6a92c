"""Python iterables of datapoints, and what they are composed with; works without TensorFlow.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
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
    "image": (
        "AugmentImageComponent AugmentImageComponents AugmentImageCoordinates "
        "DecodeImageComponent EncodeImageComponent"
    ),
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
    "torch_dataset": "to_torch_dataset",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "dataset", "imgaug"])
