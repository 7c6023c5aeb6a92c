"""Who runs where, and what is known of the ports."""

import socket

import pytest

from tensorpack.launch import _hosts
from tensorpack.utils.cluster import Cluster, trouble_at

FILE = """
# two machines for the workers
a:4000  workers=2
b       workers=1 ps=1   # and one server
a       ps=1
10.0.0.1
[fe80::1]:70
"""


def test_each_machine_has_its_processes_of_one_cluster():
    hosts = _hosts.read_hosts(FILE)
    workers = ("a:4000", "a:4001", "b:2222", "10.0.0.1:2222", "[fe80::1]:70")
    ps = ("b:2223", "a:4002")
    assert _hosts.on_host(hosts, ["a.example", "a"], 2222) == [
        Cluster(workers, ps, "worker", 0),
        Cluster(workers, ps, "worker", 1),
        Cluster(workers, ps, "ps", 1),
    ]
    assert [each.name for each in _hosts.on_host(hosts, ["b"], 2222)] == ["worker 2", "ps 0"]
    with pytest.raises(ValueError, match="this machine is c, which .* --host NAME"):
        _hosts.on_host(hosts, ["c"], 2222)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a ps=1", "no host with a worker"),
        ("a\nb worker=1", "line 2 is 'b worker=1', not 'host"),
        ("a workers=1 workers=2", "line 1 is"),
        ("a:b", "line 1 is"),
    ],
)
def test_what_is_not_a_host_file(text, message):
    with pytest.raises(ValueError, match=message):
        _hosts.read_hosts(text)


def test_port_zero_is_refused_and_not_taken_for_none():
    with pytest.raises(ValueError, match="worker 0 is 'a:0'"):
        _hosts.on_host(_hosts.read_hosts("a:0"), ["a"], 1)


def test_a_group_on_this_machine():
    first, second, server = _hosts.on_this_machine(2, 1, port=3000)
    assert (second.name, second.address, server.address) == (
        "worker 1",
        "127.0.0.1:3001",
        "127.0.0.1:3002",
    )
    assert first.as_dict() == server.as_dict()
    free = _hosts.on_this_machine(3, 2)
    assert len({each.address for each in free}) == 5 and _hosts.busy_ports(free) == []


def test_busy_ports_and_who_accepts():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert trouble_at(address, 1.0) is None
        (text,) = _hosts.busy_ports([Cluster([address])])
        assert text.startswith(f"port {address[10:]} of worker 0 cannot be used (")
    assert isinstance(trouble_at(address, 1.0), ConnectionRefusedError)
