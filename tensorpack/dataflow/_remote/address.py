"""The addresses that a flow may be sent to or received at, and what each of them needs."""

import ipaddress
import os
import re
import shutil
import stat
import tempfile
from socket import AF_UNIX, SOCK_STREAM
from socket import socket as Socket
from typing import Any, NamedTuple

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
_PORT = re.compile(r"[0-9]{1,5}|\*")
_KINDS = "tcp://127.0.0.1:PORT, tcp://HOST:PORT with a key, or ipc://PATH"


class Address(NamedTuple):
    """An address that may be used."""

    text: str  # as ZeroMQ takes it
    ipv6: bool = False
    path: str = ""  # of a socket file


def parse_address(addr: str, bind: bool, keyed: bool) -> Address:
    """Checks an address such as `tcp://127.0.0.1:5555` or `ipc:///tmp/mine/socket`.

    Raises TypeError if it is not a string, ValueError if it is of another kind, or leaves the
    machine without a key.
    """
    if not isinstance(addr, str):
        raise TypeError(f"An address is a string, such as tcp://127.0.0.1:5555, but got {addr!r}.")
    kind, colon, rest = addr.partition("://")
    if kind == "tcp" and colon:
        return _parse_tcp(addr, rest, bind, keyed)
    if kind == "ipc" and colon:
        return _parse_ipc(addr, rest)
    raise ValueError(f"The address {addr!r} is of an unknown kind: it must be {_KINDS}.")


def bind_file(socket: Any, path: str) -> None:
    """Binds a ZeroMQ socket to a socket file that only this user can connect to.

    The file is made in a new folder that other users cannot enter, and moved to its place when its
    mode is set. An OSError says that there is a file of that name, or a program listens at it.
    """
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _check_free(path)
    private = tempfile.mkdtemp(prefix=".", dir=folder)
    made = os.path.join(private, "s")
    try:
        socket.bind(f"ipc://{made}")
        os.chmod(made, 0o600)
        os.rename(made, path)
    finally:
        shutil.rmtree(private)


def _check_free(path: str) -> None:
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise FileExistsError(f"{path} is a file, and binding a socket there would delete it.")
    if _has_listener(path):
        raise FileExistsError(f"A program listens at {path}: end it, or use another path.")


def _parse_tcp(addr: str, rest: str, bind: bool, keyed: bool) -> Address:
    host, _, port = rest.rpartition(":")
    ipv6 = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if ipv6 else host
    if not _is_host(name, ipv6) and not (host == "*" and bind):
        raise ValueError(f"The address {addr!r} has no host: it must be {_KINDS}.")
    if not _PORT.fullmatch(port) or (port == "*" and not bind) or int(port.strip("*") or 0) > 65535:
        raise ValueError(f"The address {addr!r} has no port, a number up to 65535.")
    if host == "localhost":
        host = name = "127.0.0.1"  # without a name service; sockets are bound to numbers
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
    except ValueError:  # a name may lead anywhere
        return False


def _needs_a_key(addr: str, bind: bool) -> str:
    danger = (
        "every machine that reaches it could send datapoints or receive them"
        if bind
        else "every machine on the way could read the datapoints or change them"
    )
    return (
        f"{'Binding' if bind else 'Connecting'} to {addr} needs a key, because {danger}. Make one, "
        "once, with tensorpack.dataflow.make_remote_key('remote.key'), copy the file to the other "
        "machine, and give key='remote.key' on both sides. Or stay on this machine: "
        "tcp://127.0.0.1:PORT or ipc://PATH."
    )


def _parse_ipc(addr: str, path: str) -> Address:
    if not path or path.startswith(("@", "*")) or "\0" in path:
        raise ValueError(
            f"{addr!r} does not name a socket file, and sockets without one are open to every user "
            "of the machine: give a path, best in a folder of your own, such as "
            "ipc:///home/me/run/data."
        )
    return Address(addr, path=path)


def _has_listener(path: str) -> bool:
    with Socket(AF_UNIX, SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True
