"""The addresses of a group, and what is known of the ports."""

import socket

from tensorpack.launch import _hosts
from tensorpack.utils.cluster import Cluster, trouble_at


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
