"""Workers on two machines, which are Linux network namespaces with a cable between them."""

import contextlib
import dataclasses
import os
import subprocess
import time

import pytest

TIMEOUT = 5  # of the groups
PLAN = {"steps": 100000, "pause": 0.01, "timeout": TIMEOUT}
NETWORK = "10.77.0"  # unknown outside the namespaces


def ip(*args):
    environ = dict(os.environ, PATH=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True, env=environ)


@pytest.fixture
def namespaces():
    """The names of two; they have the addresses 10.77.0.1 and 10.77.0.2."""
    names = [f"tensorpack-{os.getpid()}-{index}" for index in range(2)]
    with contextlib.ExitStack() as stack:
        try:
            for name in names:
                ip("netns", "add", name)
                stack.callback(ip, "netns", "delete", name)
            pair = ["link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", names[1]]
            ip("-n", names[0], *pair)
            for index, name in enumerate(names, 1):
                ip("-n", name, "address", "add", f"{NETWORK}.{index}/24", "dev", "eth0")
                for device in "lo", "eth0":
                    ip("-n", name, "link", "set", device, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespaces here: {getattr(error, 'stderr', error)}")
        yield names


def moved(cluster):
    """A cluster of this machine with process i of each job in namespace i."""

    def move(addresses):
        ports = [address.rpartition(":")[2] for address in addresses]
        return tuple(f"{NETWORK}.{i}:{port}" for i, port in enumerate(ports, 1))

    return dataclasses.replace(cluster, workers=move(cluster.workers), ps=move(cluster.ps))


@pytest.mark.slow
@pytest.mark.fault_row(30)
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(["link", "set", "eth0", "down"], marks=pytest.mark.one_row),
        ["address", "delete", f"{NETWORK}.2/24", "dev", "eth0"],
    ],
    ids=["link", "address"],
)
def test_a_machine_that_is_cut_off(cut, namespaces, start):
    options = {"believe": moved, "namespaces": namespaces}
    groups = [start(PLAN, **options), start({**PLAN, "kind": "servers"}, ps=1, **options)]
    for group in groups:
        group.wait_for("step 3\n")
    begin = time.monotonic()
    ip("-n", namespaces[1], *cut)
    for group in groups:
        left = begin + TIMEOUT + 10 - time.monotonic()
        assert group.end(left) == [1, 1], group.outputs
