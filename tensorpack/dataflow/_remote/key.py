"""The key that both ends of a connection need if it leaves the machine."""

import os
import re
from typing import Any, List

from tensorpack.utils.optional import require

_TITLE = "tensorpack remote key 1"
_KEY = re.compile(rb"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # 32 bytes in Z85
_MAX_FILE_BYTES = 1024


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

    def start_guard(self, context: Any) -> Any:
        """Starts the thread that refuses peers without the clients' key; the caller stops it.

        Sockets of the context must be bound after this.
        """
        guard = require("zmq.auth.thread").ThreadAuthenticator(context)
        try:
            guard.start()
            guard.configure_curve_callback("*", self)
        except BaseException:
            guard.stop()
            raise
        return guard

    def callback(self, domain: str, key: bytes) -> bool:
        """Tells the thread whether a peer with this public key is allowed."""
        return key == self._client_public


def make_remote_key(path: str) -> None:
    """Makes a key for `send_dataflow_zmq` and `RemoteDataZMQ`, in a file that only you can read.

    Copy the file to the other machine in a safe way, such as `scp`, and give its path as `key=` on
    both sides. Anyone who has it can send datapoints to you, and receive yours.

    Args:
      path: of the new file.

    Raises:
      FileExistsError: there is a file of that name; it is not changed.
      RuntimeError: the installed ZeroMQ cannot encrypt.
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
    for public, secret in (keys[:2], keys[2:]):
        if not _is_pair(zmq, public, secret):
            raise ValueError(f"The key {path} is damaged: copy it again.")
    return RemoteKey(keys)


def _is_pair(zmq: Any, public: bytes, secret: bytes) -> bool:
    try:
        return _KEY.fullmatch(secret) is not None and zmq.curve_public(secret) == public
    except zmq.ZMQError:
        return False


def _zmq_with_curve() -> Any:
    zmq = require("zmq")
    if not zmq.has("curve"):
        raise RuntimeError(
            "The installed ZeroMQ was built without CURVE, so it cannot encrypt: pip install a "
            "wheel of pyzmq, or build libzmq with libsodium."
        )
    return zmq
