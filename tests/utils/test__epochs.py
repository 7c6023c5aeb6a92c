"""The epochs of a file that may be damaged, or made by anybody."""

import json
import os

import pytest

from tensorpack.utils import _epochs
from tensorpack.utils._epochs import as_finite, read_epochs


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file."""

    def read(text, **options):
        path = tmp_path / "stats.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return read_epochs(str(path), **options)

    return read


def epochs(*costs):
    return [{"epoch_num": i, "global_step": 10 * i, "cost": each} for i, each in enumerate(costs)]


def test_numbers_that_can_be_computed_with():
    assert [as_finite(each) for each in (3, -2.5, 1e149, 0)] == [3, -2.5, 1e149, 0]
    others = [float("nan"), float("inf"), 1e150, -1e308, 10**400, True, None, "3", [3], {}]
    assert [as_finite(each) for each in others] == [None] * len(others)


def test_what_is_no_finite_number_is_none(read):
    values = '"a": NaN, "b": -Infinity, "c": 1e999, "d": [1], "e": {"f": 1}, "g": 2'
    assert read(f'[{{"global_step": 1, {values}}}]') == (
        [dict(zip("abcde", [None] * 5), global_step=1, g=2)],
        True,
        1,
        11,
    )


@pytest.mark.parametrize("piece", [100, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_file_is_read_in_pieces_and_to_where_it_is_cut(read, monkeypatch, piece, indent):
    wanted = epochs(*range(20))
    text = json.dumps(wanted, indent=indent).replace("cost", "k\u00f6{st}").encode("utf-8")
    wanted = json.loads(text.decode("utf-8"))
    monkeypatch.setattr(_epochs, "_PIECE", piece)
    assert read(text)[:3] == (wanted, True, 20)
    for cut in range(0, len(text), 7):
        found = read(text[:cut])
        assert found.epochs == wanted[: found.count] and found.whole == (cut == 0)
    assert found.count >= 18


@pytest.mark.parametrize("end, whole", [("]", True), ("]rest", True), ("", False), (", 3]", False)])
def test_whether_a_file_has_no_more(read, end, whole):
    assert read('[{"global_step": 1}' + end)[1:3] == (whole, 1)


def test_an_empty_file_has_no_epoch_and_is_whole(read):
    assert read(" \n") == read("[]") == ([], True, 0, 0)


@pytest.mark.parametrize(
    "second",
    ["{}", '{"global_step": null}', '{"global_step": 1e400}', "[" * 100000, '{"global_step": '],
)
def test_what_is_no_epoch_ends_the_file(read, second):
    assert read('[{"global_step": 1}, ' + second)[1:3] == (False, 1)


def test_numbers_of_many_digits_take_no_time(read):
    first, second = "7" * 10**6, "9" * 10**6
    found = read(f'[{{"global_step": 1, "a": {first}}}, {{"global_step": {second}}}]')
    assert (found.count, found.epochs[0]["a"]) == (1, None)


def test_what_is_kept_is_bounded(read, monkeypatch):
    text = json.dumps(epochs(*range(20)))
    found = read(text, most=21)
    assert (len(found.epochs), found.whole, found.values) == (3, False, 21)
    assert read(text, most=0)[:3] == ([], False, 0)
    found = read(text, keep=lambda epoch: epoch["cost"] > 17)
    assert [each["cost"] for each in found.epochs] == [18, 19]
    assert (found.whole, found.count) == (True, 20)
    monkeypatch.setattr(_epochs, "_MOST_NAMES", 5)
    names = json.dumps([{"global_step": i, f"name {i}": i} for i in range(9)])
    assert read(names)[1:3] == (False, 4)
    monkeypatch.setattr(_epochs, "_PIECE", 100)
    assert read(json.dumps([*epochs(1), {"global_step": 1, "a" * 300: 1}]))[1:3] == (False, 1)


def test_links_and_fifos_are_not_read(tmp_path):
    os.mkfifo(str(tmp_path / "fifo"))
    os.symlink("/etc/hostname", str(tmp_path / "link"))
    for name in ("fifo", "link"):
        with pytest.raises(OSError, match="regular file|symbolic link"):
            read_epochs(str(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        read_epochs(str(tmp_path / "none"))
