"""Which addresses a flow may be sent to or come from, and under which conditions."""

import ipaddress
import os
import re
import socket
import stat
from typing import NamedTuple

__all__ = ["Address", "parse_address", "prepare_ipc"]

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
_PORT = re.compile(r"[0-9]{1,5}|\*")
_KINDS = "tcp://127.0.0.1:PORT, tcp://HOST:PORT with a key, or ipc://PATH"


class Address(NamedTuple):
    """An address that may be used.

    Attributes:
      text: as ZeroMQ takes it.
      ipv6: whether it needs IPv6.
      path: of the socket file, or empty.
    """

    text: str
    ipv6: bool = False
    path: str = ""


def parse_address(addr: str, bind: bool, keyed: bool) -> Address:
    """Checks an address.

    Args:
      addr: such as `tcp://127.0.0.1:5555`, `tcp://localhost:*` or `ipc:///tmp/mine/socket`.
      bind: whether a socket will be bound to it; else it is connected.
      keyed: whether the connection has a key.

    Raises:
      TypeError: it is no string.
      ValueError: it is of another kind, or leaves the machine without a key.
    """
    if not isinstance(addr, str):
        raise TypeError(f"An address is a string, such as tcp://127.0.0.1:5555, but got {addr!r}.")
    kind, colon, rest = addr.partition("://")
    if kind == "tcp" and colon:
        return _parse_tcp(addr, rest, bind, keyed)
    if kind == "ipc" and colon:
        return _parse_ipc(addr, rest)
    raise ValueError(f"The address {addr!r} is of no kind that is used here: it must be {_KINDS}.")


def prepare_ipc(path: str) -> None:
    """Makes the folder of a socket file, for this user alone, and sees that the name is free.

    Raises:
      OSError: there is something else of that name, or a socket that somebody listens at.
    """
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise FileExistsError(f"{path} is a file, and binding a socket there would delete it.")
    if _somebody_listens(path):
        raise FileExistsError(f"A program listens at {path}: end it, or use another path.")


def _parse_tcp(addr: str, rest: str, bind: bool, keyed: bool) -> Address:
    host, _, port = rest.rpartition(":")
    ipv6 = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if ipv6 else host
    if not _is_host(name, ipv6) and not (host == "*" and bind):
        raise ValueError(f"There is no host in {addr!r}: it must be {_KINDS}.")
    if not _PORT.fullmatch(port) or (port == "*" and not bind) or int(port.strip("*") or 0) > 65535:
        raise ValueError(f"There is no port in {addr!r}, which is a number up to 65535.")
    if host == "localhost":
        host = name = "127.0.0.1"  # no name service is asked, and sockets are bound to numbers
    if not keyed and not _is_loopback(name):
        raise ValueError(_needs_a_key(addr, bind))
    return Address(f"tcp://{host}:{port}", ipv6)


def _is_host(name: str, ipv6: bool) -> bool:
    if not ipv6:
        return _HOST.fullmatch(name) is not None
    try:
        ipaddress.IPv6Address(name)
    except ValueError:
        return False
    return "%" not in name


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:  # a name, of which one cannot know where it leads
        return False


def _needs_a_key(addr: str, bind: bool) -> str:
    danger = (
        "every machine that reaches it could send datapoints or receive them"
        if bind
        else "everybody on the way could read the datapoints or change them"
    )
    return (
        f"{'Binding' if bind else 'Connecting'} to {addr} needs a key, for {danger}. Make one, "
        "once, with tensorpack.dataflow.make_remote_key('remote.key'), copy the file to the other "
        "machine, and give key='remote.key' on both sides. Or stay on this machine: "
        "tcp://127.0.0.1:PORT or ipc://PATH."
    )


def _parse_ipc(addr: str, path: str) -> Address:
    if not path or path.startswith(("@", "*")) or "\0" in path:
        raise ValueError(
            f"{addr!r} is no socket file, and sockets without one are open to every user of the "
            "machine: give a path, best in a folder of your own, such as ipc:///home/me/run/data."
        )
    return Address(addr, path=path)


def _somebody_listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True
