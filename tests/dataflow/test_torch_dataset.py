"""The workers of a DataLoader share each pass, and agree on its random order."""

import gc
import importlib.util
import pickle

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    DataFromGenerator,
    DataFromList,
    LocallyShuffleData,
    MapData,
    MultiProcessRunnerZMQ,
    MultiThreadMapData,
    UnknownLength,
    to_torch_dataset,
)
from tensorpack.utils.rng import streams_state
from tests.dataflow.process_functions import late

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
KINDS = ["<f4", ">f4", "<i8", ">i8"]


def loader(flow, **options):
    data = pytest.importorskip("torch.utils.data")
    return data.DataLoader(to_torch_dataset(flow), **{"batch_size": None, **options})


def numbers(count=100, shuffle=True):
    return DataFromList([[number] for number in range(count)], shuffle)


def odd_or_none(datapoint):
    return datapoint if datapoint[0] % 2 else None


def one_pass(batches):
    return [int(each) for (batch,) in batches for each in np.ravel(batch)]


@pytest.mark.skipif(HAS_TORCH, reason="PyTorch is here")
def test_without_pytorch_the_error_says_what_to_install():
    with pytest.raises(ImportError, match="pip install torch"):
        to_torch_dataset(numbers())


def test_what_is_not_a_flow_is_refused():
    with pytest.raises(TypeError, match=r"to_torch_dataset takes a DataFlow, but got .*list"):
        to_torch_dataset([[1]])


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 0},
        {"num_workers": 1},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "batch_size": 8},
        pytest.param(
            {"num_workers": 2, "multiprocessing_context": "spawn"}, marks=pytest.mark.nightly
        ),
    ],
    ids=str,
)
def test_a_pass_has_each_datapoint_once_and_its_own_order(options):
    batches = loader(MapData(numbers(), list), **options)
    first, second = one_pass(batches), one_pass(batches)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second


@needs_torch
@pytest.mark.slow
def test_batches_of_the_flow_are_whole_and_the_order_depends_on_the_seed_of_the_loader():
    torch = pytest.importorskip("torch")
    batches = loader(BatchData(numbers(10), 4, remainder=True), num_workers=2)
    assert len(batches) == 3
    passes = []
    for _ in range(2):
        torch.manual_seed(3)
        passes.append([len(batch) for (batch,) in batches] + one_pass(batches))
    assert passes[0] == passes[1] and passes[0][:3] == [4, 4, 2]
    assert one_pass(loader(numbers(10, shuffle=False), num_workers=2)) == list(range(10))


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: MapData(numbers(20), odd_or_none), range(1, 20, 2)),
        (lambda: LocallyShuffleData(numbers(20), 5), range(20)),
        (lambda: MultiThreadMapData(numbers(20), 3, late), [n for n in range(20) if n % 5]),
        (lambda: MultiProcessRunnerZMQ(numbers(20), 2, strict=True), range(20)),
        (lambda: DataFromGenerator(lambda: iter([[i] for i in range(20)])), range(20)),
    ],
    ids=["drops", "whole in each worker", "threads", "processes inside", "no length"],
)
def test_flows_of_other_kinds(make, expected):
    assert sorted(one_pass(loader(make(), num_workers=2))) == list(expected)


@needs_torch
@pytest.mark.slow
def test_a_drop_inside_of_a_batch_is_an_error():
    flow = BatchData(MapData(numbers(20, shuffle=False), odd_or_none), 4)
    with pytest.raises(RuntimeError, match="was dropped.*Give the loader a batch_size") as caught:
        list(loader(flow, num_workers=2))
    del caught
    gc.collect()  # the frames of the error hold the loader, which ends its workers


@needs_torch
def test_arrays_are_what_a_tensor_can_share():
    torch = pytest.importorskip("torch")
    fixed, plain = np.arange(3), np.arange(3)
    fixed.setflags(write=False)
    flow = DataFromList([{"fixed": fixed, "pair": (plain[::-1], plain)}])
    (datapoint,) = to_torch_dataset(flow)
    assert torch.from_numpy(datapoint["fixed"]).tolist() == [0, 1, 2]
    assert datapoint["fixed"].flags.writeable and not fixed.flags.writeable
    assert torch.from_numpy(datapoint["pair"][0]).tolist() == [2, 1, 0]
    assert datapoint["pair"][1] is plain


@needs_torch
def test_arrays_of_another_byte_order_become_tensors():
    torch = pytest.importorskip("torch")
    flow = DataFromList([[np.arange(3, dtype=kind) for kind in KINDS]])
    (found,) = to_torch_dataset(flow)
    assert [torch.from_numpy(each).tolist() for each in found] == [[0, 1, 2]] * len(KINDS)


@needs_torch
def test_without_workers_the_order_depends_on_the_seed_too_and_other_streams_are_left_alone():
    torch = pytest.importorskip("torch")
    batches, before = loader(numbers(20)), streams_state()
    passes = []
    for seed in 3, 3, 4:
        torch.manual_seed(seed)
        passes.append([one_pass(batches), one_pass(batches)])
    assert passes[0] == passes[1] and passes[0][0] != passes[0][1]
    assert passes[0][0] != passes[2][0]
    assert streams_state() == before


@needs_torch
@pytest.mark.slow
def test_a_single_worker_fills_up_batches_as_none_does():
    flow = BatchData(MapData(numbers(20, shuffle=False), odd_or_none), 4)
    for workers in 0, 1:
        found = [batch.tolist() for (batch,) in loader(flow, num_workers=workers)]
        assert found == [[1, 3, 5, 7], [9, 11, 13, 15]]


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize(
    "make",
    [
        numbers,
        lambda: BatchData(MapData(numbers(50), list), 4, remainder=True),
        lambda: LocallyShuffleData(numbers(20), 5),
    ],
    ids=["list", "batches", "whole in each rank"],
)
def test_ranks_share_each_pass(make, workers):
    torch = pytest.importorskip("torch")
    data, whole = pytest.importorskip("torch.utils.data"), []
    for epoch in range(2):
        shares = []
        for rank in range(3):
            torch.manual_seed(rank)  # programs seed the ranks differently
            dataset = to_torch_dataset(make(), num_replicas=3, rank=rank, seed=7)
            dataset.set_epoch(epoch)
            batches = data.DataLoader(dataset, batch_size=None, num_workers=workers)
            shares.append([np.ravel(batch).tolist() for (batch,) in batches])
            assert len(shares[-1]) == len(batches)
        alone = to_torch_dataset(make(), seed=7)
        alone.set_epoch(epoch)
        whole.append([np.ravel(batch).tolist() for (batch,) in alone])
        assert shares == [whole[-1][rank::3] for rank in range(3)]
        flat = sum(whole[-1], [])
        assert sorted(flat) == list(range(len(flat)))
    assert whole[0] != whole[1]


@needs_torch
@pytest.mark.slow
def test_workers_that_are_kept_count_their_passes():
    data = pytest.importorskip("torch.utils.data")
    dataset = to_torch_dataset(numbers(20), num_replicas=2, rank=1)
    kept = data.DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    assert [one_pass(kept) for _ in range(3)] == [one_pass(dataset) for _ in range(3)]


@needs_torch
def test_a_copy_has_the_same_share():
    dataset = to_torch_dataset(numbers(7), num_replicas=4, rank=2)
    dataset.set_epoch(5)
    twin = pickle.loads(pickle.dumps(dataset))
    assert one_pass(twin) == one_pass(dataset) and len(twin) == 2


@needs_torch
def test_ranks_cannot_share_an_order_that_depends_on_threads():
    flow = MultiThreadMapData(numbers(10), 2, list)
    with pytest.raises(RuntimeError, match="The order of MultiThreadMapData is .*strict=True"):
        list(to_torch_dataset(flow, num_replicas=2))
    assert len(list(to_torch_dataset(flow))) == 10


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"num_replicas": 0}, ValueError, r"to_torch_dataset: rank=0 is not in range\(0\)"),
        ({"rank": -1}, ValueError, r"rank=-1 is not in range\(1\)"),
        ({"num_replicas": 2, "rank": 2}, ValueError, r"rank=2 is not in range\(2\)"),
        ({"num_replicas": 2, "rank": "0"}, TypeError, "rank must be an integer, but got '0'"),
        ({"seed": -1}, ValueError, "seed is a non-negative integer"),
    ],
)
def test_wrong_shares(options, error, match):
    with pytest.raises(error, match=match):
        to_torch_dataset(numbers(), **options)


@needs_torch
def test_a_flow_without_a_length_has_none():
    with pytest.raises(UnknownLength):
        len(loader(DataFromGenerator(lambda: iter([]))))
