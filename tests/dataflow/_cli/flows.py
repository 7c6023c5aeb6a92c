"""What the tests name on the command line as tests.dataflow._cli.flows:name."""

import numpy as np

from tensorpack.dataflow import BatchData, DataFromGenerator, DataFromList, MapData, ProxyDataFlow
from tests.dataflow._cli.files import flow_of, numbers

HERE = "tests.dataflow._cli.flows"

twenty = DataFromList(numbers(20), shuffle=False)


def make_twenty():
    return flow_of(numbers(20))


def make_endless():
    return DataFromGenerator(endless)


def endless():
    while True:
        yield [np.zeros(1000, np.uint8)]


def doubled(datapoint):
    return [datapoint[0] * 2, datapoint[1]]


def make_batches():
    return BatchData(MapData(flow_of(numbers(20)), doubled), 4)


def make_empty():
    return flow_of([])


def make_broken():
    return MapData(flow_of(numbers(20)), break_at_three)


def break_at_three(datapoint):
    if datapoint[0] == 3:
        raise ZeroDivisionError("by the user")
    return datapoint


def make_list():
    return [[1]]


def needs_an_argument(path):
    return flow_of([[path]])


class Closed(ProxyDataFlow):
    """Counts how often it was closed."""

    closed = 0

    def __init__(self):
        super().__init__(flow_of(numbers(20)))

    def close(self):
        Closed.closed += 1


class ClosedAndEmpty(Closed):
    def __iter__(self):
        return iter(())


class Namespace:
    flow = twenty
