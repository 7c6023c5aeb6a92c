"""States as runs of dd9d8767 saved them are resumed with the data that such a run had left."""

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchDataByShape,
    CacheData,
    ConcatData,
    DataFromList,
    FakeData,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    RandomChooseData,
    RandomMapData,
    RandomMixData,
    RepeatedData,
    RepeatedDataPoint,
)
from tensorpack.utils.rng import rng_state
from tests.dataflow.flows import shuffled


def stream(seed):
    return rng_state(np.random.RandomState(seed))


def in_list(length, count):
    return {"length": length, "rng": stream(0), "count": count}


def arrays():
    return DataFromList([[i, np.zeros(i % 2)] for i in range(5)])


def with_number(datapoint, rng):
    return [datapoint[0] + rng.randint(7)]


TWO = [in_list(4, 2), in_list(3, 1)]
FOUR_OF_EACH = [shuffled(4), shuffled(3)]
DRAWN = {"draws": stream(3), "flows": TWO, "rng": stream(4)}
ROUND = {
    "rng": stream(1),
    "first": 3,
    "read": 7,
    "numbers": np.array([3, 5, 6]),
    "uses": np.array([1, 2, 2]),
}
CACHE = {"ds": in_list(4, 0), "rng": stream(5), "cached": False, "filled": False}
PASSES = {  # a flow, a state, and the next passes of dd9d8767
    "join": (JoinData(FOUR_OF_EACH), {"ended": False, "flows": TWO}, "10 021 302"),
    "join ended": (JoinData(FOUR_OF_EACH), {"ended": True, "flows": TWO}, " 021 302"),
    "concat": (
        ConcatData([*FOUR_OF_EACH, shuffled(2)]),
        {
            "index": 1,
            "begun": [True, True, False],
            "flows": [in_list(4, 4), in_list(3, 1), in_list(2, 0)],
        },
        "1010 021320101 302102101",
    ),
    "choose": (RandomChooseData(FOUR_OF_EACH), {**DRAWN, "ended": False}, "101 20021 3002121"),
    "choose ended": (RandomChooseData(FOUR_OF_EACH), {**DRAWN, "ended": True}, " 20021 3002121"),
    "mix": (RandomMixData(FOUR_OF_EACH), {**DRAWN, "left": [2, 2]}, "1100 0202131 0302121"),
    "shuffle": (
        LocallyShuffleData(shuffled(9), 3, 2),
        {"ds": in_list(9, 3), "rng": stream(2), "round": ROUND, "taken": 1},
        "36605503 313188770460652542 323254548807170661",
    ),
    "shuffle before": (
        LocallyShuffleData(shuffled(9), 3, 2),
        {"ds": in_list(9, 0), "rng": stream(2), "round": None, "taken": 0},
        "727288116346450530 717136364402820558 353422145817806706",
    ),
    "cache": (CacheData(shuffled(4), True), {**CACHE, "count": 3}, "0 2310 0213"),
    "cache filled": (
        CacheData(shuffled(4), True),
        {**CACHE, "cached": True, "filled": True, "count": 1},
        "310 0213 1032",
    ),
    "by shape": (
        BatchDataByShape(arrays(), 2, 1),
        {"ds": in_list(5, 2), "waiting": [[[1, np.zeros(1)]]], "yielded": True, "over": False},
        "11 403124 3140",
    ),
    "repeated": (
        RepeatedData(shuffled(3), 2),
        {"ds": in_list(3, 2), "finished": 1, "begun": True},
        "0 201021 201210",
    ),
    "points": (
        RepeatedDataPoint(shuffled(3), 2),
        {"ds": in_list(3, 1), "datapoint": [2], "done": 1},
        "21100 220011 002211",
    ),
    "size": (
        FixedSizeData(shuffled(3), 4),
        {"taken": 3, "repeated": {"ds": in_list(3, 2), "finished": 5, "begun": True}},
        "0 2010 2120",
    ),
    "fake": (
        FakeData([[]], 4, dtype="uint8", domain=(0, 10)),
        {"rng": stream(6), "count": 2},
        "70 1316 0546",
    ),
    "random map": (
        RandomMapData(shuffled(3), with_number),
        {"ds": in_list(3, 1), "rng": stream(7), "count": 1},
        "12 416 276",
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_it_is_resumed(name):
    flow, state, expected = PASSES[name]
    flow.reset_state()
    flow.load_state_dict(state)
    passes = ["".join(map(str, np.ravel([dp[0] for dp in flow]))) for _ in range(3)]
    assert " ".join(passes) == expected
