"""Python iterables of datapoints, and what they are composed with; works without TensorFlow."""

from .base import (
    DataFlow,
    DataFlowTerminated,
    ProxyDataFlow,
    RNGDataFlow,
    StateNotKept,
    UnknownLength,
)
from .batch import BatchData
from .debug import PrintData, TestDataSpeed
from .fake import FakeData
from .map import MapData, MapDataComponent, SelectComponent
from .raw import DataFromGenerator, DataFromIterable, DataFromList, DataFromQueue
from .repeat import FixedSizeData, RepeatedData, RepeatedDataPoint

__all__ = [
    "BatchData",
    "DataFlow",
    "DataFlowTerminated",
    "DataFromGenerator",
    "DataFromIterable",
    "DataFromList",
    "DataFromQueue",
    "FakeData",
    "FixedSizeData",
    "MapData",
    "MapDataComponent",
    "PrintData",
    "ProxyDataFlow",
    "RNGDataFlow",
    "RepeatedData",
    "RepeatedDataPoint",
    "SelectComponent",
    "StateNotKept",
    "TestDataSpeed",
    "UnknownLength",
]
