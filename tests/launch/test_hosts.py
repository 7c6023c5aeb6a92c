"""What the processes of a machine get: addresses, cores and GPUs."""

import os
import socket

import pytest

from tensorpack.launch import _hosts
from tensorpack.utils.cluster import Cluster, trouble_at

NAMES = ["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "CUDA_VISIBLE_DEVICES"]


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Eight cores and four GPUs, whatever this machine has."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_hosts, "usable_cores", lambda: 8)
    monkeypatch.setattr(_hosts, "get_num_gpu", lambda: 4)


def test_addresses_and_who_accepts_there():
    port = 20000 + os.getpid() % 10000  # one that no other run of the tests has
    first, second, server = _hosts.on_this_machine(2, 1, port)
    assert (server.name, second.address) == ("ps 0", f"127.0.0.1:{port + 1}")
    ports = {int(host.address.partition(":")[2]) for host in _hosts.on_this_machine(3, 2)}
    assert len(ports) == 5 and max(ports) < 32768  # connections of others do not get them
    with socket.socket() as listening, pytest.raises(OSError, match="in use"):
        listening.bind(("127.0.0.1", port))
        listening.listen(1)
        assert trouble_at(first.address, 1.0) is None
        _hosts.on_this_machine(2, 1, port)
    assert isinstance(trouble_at(first.address, 1.0), ConnectionRefusedError)


@pytest.mark.parametrize(
    "visible, threads, gpus",
    [
        (None, "4", ["0,1", "2,3"]),
        (None, "1", ["0", "1", "2", "3", "0", "1"]),
        ("5,GPU-ab", "4", ["5", "GPU-ab"]),
        (None, None, ["0,1,2,3"]),
        ("", "4", ["", ""]),
    ],
)
def test_cores_and_gpus_are_divided(visible, threads, gpus, monkeypatch):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    clusters = _hosts.on_this_machine(len(gpus), 1)
    found = _hosts.environments(clusters)
    *workers, server = ([env.get(name) for name in NAMES] for env in found)
    assert workers == [[threads, threads, gpu] for gpu in gpus] and server[2] == ""
    assert [Cluster.from_environment(env) for env in found] == clusters
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert _hosts.environments(clusters)[0]["OMP_NUM_THREADS"] == "7"
