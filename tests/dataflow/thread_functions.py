"""What threads of the tests do, and the names of those that are there."""

import threading

import pytest

from tensorpack.dataflow import ProxyDataFlow, UnknownLength

both_orders = pytest.mark.parametrize("strict", [False, True], ids=["completion", "strict"])


def tenfold(datapoint):
    return [10 * datapoint[0]]


def odd(datapoint):
    return datapoint if datapoint[0] % 2 else None


def same(datapoint):
    return datapoint


class Unsized(ProxyDataFlow):
    def __len__(self):
        raise UnknownLength("The length is not known.")


def threads_of(name):
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]
