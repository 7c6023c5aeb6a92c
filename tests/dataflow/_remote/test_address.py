"""Nothing leaves the machine without a key, and a socket file takes the place of nothing else."""

import os
import socket
import stat

import pytest

from tensorpack.dataflow._remote.address import parse_address, prepare_ipc

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
    with pytest.raises(ValueError, match="needs a key, for every machine"):
        parse_address("tcp://*:5555", bind=True, keyed=False)
    assert parse_address("tcp://*:5555", bind=True, keyed=True).text == "tcp://*:5555"
    with pytest.raises(ValueError, match="no host"):
        parse_address("tcp://*:5555", bind=False, keyed=True)


def test_any_free_port_can_only_be_bound():
    assert parse_address("tcp://127.0.0.1:*", True, False).text == "tcp://127.0.0.1:*"
    with pytest.raises(ValueError, match="no port"):
        parse_address("tcp://127.0.0.1:*", bind=False, keyed=False)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_other_addresses_are_refused(number):
    for bind in True, False:
        with pytest.raises(ValueError, match="must be|no port|no socket file"):
            parse_address(WRONG[number], bind, keyed=True)


def test_an_address_is_a_string():
    with pytest.raises(TypeError, match="but got 5555"):
        parse_address(5555, True, False)


def test_a_socket_file():
    address = parse_address("ipc:///tmp/folder/name", bind=True, keyed=False)
    assert address == ("ipc:///tmp/folder/name", False, "/tmp/folder/name")


def test_the_folder_is_made_for_this_user_alone(tmp_path):
    prepare_ipc(str(tmp_path / "new" / "socket"))
    assert stat.S_IMODE(os.stat(str(tmp_path / "new")).st_mode) == 0o700
    prepare_ipc(str(tmp_path / "new" / "socket"))


def test_a_file_stays(tmp_path):
    path = tmp_path / "thesis"
    path.write_text("text")
    with pytest.raises(FileExistsError, match="would delete it"):
        prepare_ipc(str(path))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="would delete it"):
        prepare_ipc(str(link))
    assert path.read_text() == "text" and link.is_symlink()


def test_a_socket_that_somebody_listens_at_stays_and_a_dead_one_does_not(tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        prepare_ipc(path)  # nobody listens yet
        listening.listen(1)
        with pytest.raises(FileExistsError, match="A program listens at"):
            prepare_ipc(path)
    prepare_ipc(path)
