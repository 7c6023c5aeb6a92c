"""Nothing leaves the machine without a key, and a socket file takes the place of nothing else."""

import os
import socket
import stat

import pytest

from tensorpack.dataflow._remote.guard import bind_file, parse_address

LOOPBACK = [
    ("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5555", False),
    ("tcp://127.8.9.1:1", "tcp://127.8.9.1:1", False),
    ("tcp://localhost:65535", "tcp://127.0.0.1:65535", False),
    ("tcp://[::1]:5555", "tcp://[::1]:5555", True),
]
ELSEWHERE = [
    "tcp://0.0.0.0:5555",
    "tcp://10.0.0.1:5555",
    "tcp://[::]:5555",
    "tcp://[fe80::1]:5555",
    "tcp://eth0:5555",
    "tcp://lo:5555",
    "tcp://localhost.example.com:5555",
    "tcp://127.0.0.1.example.com:5555",
    "tcp://example.com:5555",
    "tcp://128.0.0.1:5555",
]
WRONG = [
    "127.0.0.1:5555",
    "tcp:127.0.0.1:5555",
    "udp://127.0.0.1:5555",
    "inproc://x",
    "pgm://127.0.0.1:5555",
    "",
    "tcp://",
    "tcp://127.0.0.1",
    "tcp://127.0.0.1:",
    "tcp://:5555",
    "tcp://127.0.0.1:70000",
    "tcp://127.0.0.1:-1",
    "tcp://127.0.0.1:5x",
    "tcp://127.0.0.1:5555/x",
    "tcp://127.0.0.1:0;example.com:5555",
    "tcp://127.0.0.1 :5555",
    "tcp://[127.0.0.1]:5555",
    "tcp://[fe80::1%eth0]:5555",
    "tcp://::1:5555",
    "ipc://",
    "ipc://@name",
    "ipc://*",
    "ipc:///tmp/a\0b",
]


@pytest.mark.parametrize("bind", [True, False])
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("addr, text, ipv6", LOOPBACK)
def test_loopback_needs_no_key(addr, text, ipv6, bind, keyed):
    assert parse_address(addr, bind, keyed) == (text, ipv6, "")


@pytest.mark.parametrize("addr", ELSEWHERE)
def test_elsewhere_needs_a_key_and_the_error_says_how_to_make_one(addr):
    for bind, doing in [(True, "Binding"), (False, "Connecting")]:
        with pytest.raises(ValueError, match=rf"^{doing} to .*make_remote_key\('remote.key'\)"):
            parse_address(addr, bind, keyed=False)
        assert parse_address(addr, bind, keyed=True).text == addr


def test_all_interfaces_need_a_key_and_can_only_be_bound():
    with pytest.raises(ValueError, match="needs a key, because every machine"):
        parse_address("tcp://*:5555", bind=True, keyed=False)
    assert parse_address("tcp://*:5555", bind=True, keyed=True).text == "tcp://*:5555"
    with pytest.raises(ValueError, match="has no host"):
        parse_address("tcp://*:5555", bind=False, keyed=True)


def test_any_free_port_can_only_be_bound():
    assert parse_address("tcp://127.0.0.1:*", True, False).text == "tcp://127.0.0.1:*"
    with pytest.raises(ValueError, match="has no port"):
        parse_address("tcp://127.0.0.1:*", bind=False, keyed=False)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_other_addresses_are_refused(number):
    for bind in True, False:
        with pytest.raises(ValueError, match="must be|has no port|does not name a socket file"):
            parse_address(WRONG[number], bind, keyed=True)


def test_an_address_is_a_string():
    with pytest.raises(TypeError, match="but got 5555"):
        parse_address(5555, True, False)


def test_a_socket_file():
    address = parse_address("ipc:///tmp/folder/name", bind=True, keyed=False)
    assert address == ("ipc:///tmp/folder/name", False, "/tmp/folder/name")


@pytest.fixture
def bound():
    """A bare ROUTER socket."""
    zmq = pytest.importorskip("zmq")
    with zmq.Context() as context, context.socket(zmq.ROUTER) as made:
        yield made


def test_only_this_user_can_connect_at_any_moment(tmp_path, bound, monkeypatch):
    def watched(source, target):
        assert stat.S_IMODE(os.stat(os.path.dirname(source)).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(source).st_mode) == 0o600
        assert not os.path.lexists(target)
        rename(source, target)

    rename = os.rename
    monkeypatch.setattr(os, "rename", watched)
    before = os.umask(0)
    try:
        bind_file(bound, str(tmp_path / "new" / "socket"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(str(tmp_path / "new")).st_mode) == 0o700
    assert os.listdir(str(tmp_path / "new")) == ["socket"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(str(tmp_path / "new" / "socket"))


def test_a_file_stays(tmp_path, bound):
    path = tmp_path / "thesis"
    path.write_text("text")
    with pytest.raises(FileExistsError, match="would delete it"):
        bind_file(bound, str(path))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="would delete it"):
        bind_file(bound, str(link))
    assert path.read_text() == "text" and link.is_symlink()
    assert sorted(os.listdir(str(tmp_path))) == ["link", "thesis"]


def test_a_socket_with_a_listener_stays_and_a_dead_one_does_not(tmp_path, bound):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(1)
        with pytest.raises(FileExistsError, match="A program listens at"):
            bind_file(bound, path)
    bind_file(bound, path)
