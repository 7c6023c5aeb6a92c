"""The epochs of a file that may be damaged."""

import json

import pytest

from tensorpack.runs import read_epochs


@pytest.fixture
def read(tmp_path):
    """Reads a text as a file; returns the epochs, and whether there are no more."""

    def read(text):
        path = tmp_path / "stats.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        found = []
        try:
            found.extend(read_epochs(str(path)))
        except ValueError as error:
            assert f"{path} cannot be read to its end; its first {len(found)} epochs" in str(error)
            return found, False
        return found, True

    return read


def epochs(*costs):
    return [{"epoch_num": i, "global_step": 10 * i, "cost": each} for i, each in enumerate(costs)]


def test_what_is_no_finite_number_is_none(read):
    values = '"a": NaN, "b": -Infinity, "c": 1e150, "d": [1], "e": {"f": 1}, "g": -2.5'
    wanted = dict(zip("abcde", [None] * 5), global_step=1, g=-2.5)
    assert read(f'[{{"global_step": 1, {values}}}]') == ([wanted], True)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_file_is_read_to_where_it_is_cut(read, indent):
    wanted = epochs(*range(20))
    text = json.dumps(wanted, indent=indent).replace("cost", "k\u00f6{st}").encode("utf-8")
    wanted = json.loads(text.decode("utf-8"))
    assert read(text) == (wanted, True)
    for cut in range(0, len(text), 7):
        found, whole = read(text[:cut])
        assert found == wanted[: len(found)] and not whole
    assert len(found) >= 18


def test_a_log_directory_has_its_epochs_in_stats_json(tmp_path):
    (tmp_path / "stats.json").write_text('[{"epoch_num": 1, "global_step": 5, "cost": null}]')
    expected = [{"epoch_num": 1, "global_step": 5, "cost": None}]
    assert list(read_epochs(str(tmp_path))) == expected
    assert list(read_epochs(str(tmp_path / "stats.json"))) == expected
