"""What guards a connection: which addresses may be used, and the key of one between machines."""

import ipaddress
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from socket import AF_UNIX, SOCK_STREAM
from socket import socket as Socket
from typing import Any, List, NamedTuple

from tensorpack.utils.cluster import is_loopback
from tensorpack.utils.optional import require

_HOST = re.compile(r"[A-Za-z0-9_.-]+")
_PORT = re.compile(r"[0-9]{1,5}|\*")
_KINDS = "tcp://127.0.0.1:PORT, tcp://HOST:PORT with a key, or ipc://PATH"
_TITLE = "tensorpack remote key 1"
_KEY = re.compile(rb"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # 32 bytes in Z85
_MAX_FILE_BYTES = 1024


class Address(NamedTuple):
    """An address that may be used, see `parse_address`."""

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
    if kind != "ipc" or not colon:
        raise ValueError(f"The address {addr!r} is of an unknown kind: it must be {_KINDS}.")
    if not rest or rest.startswith(("@", "*")) or "\0" in rest:
        raise ValueError(
            f"{addr!r} does not name a socket file, and sockets without one are open to every user "
            "of the machine: give a path, best in a folder of your own, such as "
            "ipc:///home/me/run/data."
        )
    return Address(addr, path=rest)


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
    refused = suppress(ConnectionRefusedError, FileNotFoundError)
    with Socket(AF_UNIX, SOCK_STREAM) as probe, refused:
        probe.connect(path)
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
    if not keyed and not is_loopback(name):
        deed, danger = "Connecting", "on the way could read the datapoints or change them"
        if bind:
            deed, danger = "Binding", "that reaches it could send datapoints or receive them"
        raise ValueError(
            f"{deed} to {addr} needs a key, because every machine {danger}. Make one, once, with "
            "tensorpack.dataflow.make_remote_key('remote.key'), copy the file to the other "
            "machine, and give key='remote.key' on both sides. Or stay on this machine: "
            "tcp://127.0.0.1:PORT or ipc://PATH."
        )
    return Address(f"tcp://{host}:{port}", ipv6)


def _is_host(name: str, ipv6: bool) -> bool:
    if not ipv6:
        return _HOST.fullmatch(name) is not None
    try:
        ipaddress.IPv6Address(name)
    except ValueError:
        return False
    return "%" not in name


class RemoteKey:
    """Two pairs of CURVE keys, public and secret: of the end that binds and of those that connect.

    Everything is encrypted, and each end proves to the other that it has its pair. The file holds
    both pairs, so its owner can send and receive.
    """

    def __init__(self, keys: List[bytes]) -> None:
        self._server_public, self._server_secret, self._client_public, self._client_secret = keys

    def secure(self, socket: Any, bind: bool) -> None:
        """Sets the keys of a ZeroMQ socket; to be called before it is bound or connected."""
        if bind:
            socket.curve_server = True
            socket.curve_publickey = self._server_public
            socket.curve_secretkey = self._server_secret
        else:
            socket.curve_serverkey = self._server_public
            socket.curve_publickey = self._client_public
            socket.curve_secretkey = self._client_secret

    def callback(self, domain: str, key: bytes) -> bool:
        """Tells the guard of a hub whether a peer with this public key is allowed."""
        return key == self._client_public


def make_remote_key(path: str) -> None:
    """Makes a key for `send_dataflow_zmq` and `RemoteDataZMQ`, in a file that only you can read.

    Copy the file to the other machine in a safe way, such as `scp`, and give its path as `key=` on
    both sides. Anyone who has it can send datapoints to you, and receive yours. FileExistsError if
    there is a file of that name.
    """
    zmq = _zmq_with_curve()
    keys = [*zmq.curve_keypair(), *zmq.curve_keypair()]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise FileExistsError(
            f"{path} exists already. If it is a key, use it on both sides; for a new one, remove "
            "it first, or give another name."
        ) from error
    except FileNotFoundError as error:
        folder = os.path.dirname(os.path.abspath(path))
        raise FileNotFoundError(
            f"Cannot make the key {path}: there is no folder {folder}. Make it first."
        ) from error
    with open(descriptor, "w", encoding="ascii") as file:
        file.write("\n".join([_TITLE, *(key.decode("ascii") for key in keys)]) + "\n")


def load_key(path: str) -> RemoteKey:
    """Reads a file that `make_remote_key` wrote, which only its owner may read."""
    zmq = _zmq_with_curve()
    try:
        opened = open(path, "rb")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"There is no key {path} (seen from {os.getcwd()}). Copy it from the other machine, or "
            "make one by make_remote_key() and copy it there."
        ) from error
    with opened as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise PermissionError(
                f"Other users can read the key {path}, or change it: chmod 600 {path}, and make "
                "another one if they are not to be trusted."
            )
        title, *keys = file.read(_MAX_FILE_BYTES).split(b"\n")
    if title != _TITLE.encode("ascii") or len(keys) != 5 or keys.pop() != b"":
        raise ValueError(f"{path} is not a key that make_remote_key() made.")
    try:
        # What is not a key is not given to ZeroMQ.
        found = [zmq.curve_public(each) if _KEY.fullmatch(each) else None for each in keys[1::2]]
    except zmq.ZMQError:
        found = []
    if found != keys[::2]:
        raise ValueError(f"The key {path} is damaged: copy it again.")
    return RemoteKey(keys)


def _zmq_with_curve() -> Any:
    zmq = require("zmq")
    if not zmq.has("curve"):
        raise RuntimeError(
            "The installed ZeroMQ was built without CURVE, so it cannot encrypt: pip install a "
            "wheel of pyzmq, or build libzmq with libsodium."
        )
    return zmq
