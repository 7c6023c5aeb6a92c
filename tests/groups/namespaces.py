"""Two machines with a cable between them, as Linux network namespaces; and how to run in one."""

import contextlib
import ctypes
import dataclasses
import importlib
import os
import subprocess

from tensorpack.utils.cluster import Cluster

_CLONE_NEWNET = 0x40000000  # in <sched.h>
_NETWORK = "10.77.0"  # unknown outside the namespaces


class NotPossible(Exception):
    """This machine does not let us make namespaces."""


class Namespaces:
    """A context that makes two network namespaces, joined by a pair of virtual devices.

    Process i of each job of a `Group` runs in namespace i, with the address 10.77.0.(i + 1).

    Raises:
      NotPossible: on entry.
    """

    def __init__(self):
        self._name = f"tensorpack-{os.getpid()}"
        self._made = contextlib.ExitStack()

    def __enter__(self):
        try:
            self._make()
        except (OSError, subprocess.CalledProcessError) as error:
            self._made.close()
            said = getattr(error, "stderr", None) or error
            raise NotPossible(f"no network namespaces can be made here: {said}") from None
        return self

    def __exit__(self, *exc_info):
        self._made.close()

    def _make(self):
        for index in range(2):
            _ip("netns", "add", self.name(index))
            self._made.callback(_ip, "netns", "delete", self.name(index))
        peer = ["peer", "name", "eth0", "netns", self.name(1)]
        self.ip(0, "link", "add", "eth0", "type", "veth", *peer)
        for index in range(2):
            self.ip(index, "address", "add", f"{_NETWORK}.{index + 1}/24", "dev", "eth0")
            for device in "lo", "eth0":
                self.ip(index, "link", "set", device, "up")

    def name(self, index):
        """The name of a namespace."""
        return f"{self._name}-{index}"

    def ip(self, index, *args):
        """Runs the command `ip` in a namespace."""
        _ip("-n", self.name(index), *args)

    def take_link_down(self, index):
        """Takes the device of a namespace down, so that nothing passes."""
        self.ip(index, "link", "set", "eth0", "down")

    def take_address(self, index):
        """Takes the address of a namespace away; the device stays up."""
        self.ip(index, "address", "delete", f"{_NETWORK}.{index + 1}/24", "dev", "eth0")

    def inside(self, module, args):
        """The module, and its arguments, that runs a module in the namespace of a process."""
        return __name__, (self._name, module, *args)

    @staticmethod
    def cluster(cluster):
        """A cluster of this machine with the addresses of the namespaces."""

        def move(addresses):
            ports = [address.rpartition(":")[2] for address in addresses]
            return tuple(f"{_NETWORK}.{i + 1}:{port}" for i, port in enumerate(ports))

        return dataclasses.replace(cluster, workers=move(cluster.workers), ps=move(cluster.ps))


def main(name, module, *args):
    """Enters the namespace of this process, then runs a module. No thread must have started."""
    with open(f"/run/netns/{name}-{Cluster.from_environment().index}") as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns({namespace.name!r}) failed")
    importlib.import_module(module).main(*args)


def _ip(*args):
    environ = dict(os.environ, PATH=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True, env=environ)
