"""Archives of arrays give all their arrays, or one named error."""

import io
import random

import numpy as np
import pytest

from tensorpack.utils.packing.npz import read_npz, write_npz
from tests.tiers import first_fast

ARRAYS = {
    "W": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fc/b": np.asfortranarray(np.arange(6, dtype=">i4").reshape(3, 2)),
    "step": np.int64(7),
    "names": np.array(["a", "bc"]),
    "empty": np.zeros((0, 3), np.uint8),
}


def same(loaded, expected=ARRAYS):
    assert sorted(loaded) == sorted(expected)
    for name, array in expected.items():
        assert loaded[name].dtype == array.dtype and np.array_equal(loaded[name], array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(tmp_path, save):
    path = str(tmp_path / "a.npz")
    save(path, **ARRAYS)
    same(read_npz(path))
    assert all(array.flags.writeable for array in read_npz(path).values())
    save(path)
    assert read_npz(path) == {}


def test_what_is_written_is_read_whatever_the_names(tmp_path):
    path = str(tmp_path / "a.npz")
    arrays = dict(ARRAYS, file=np.ones(2), allow_pickle=np.zeros(1), arr_0=np.int8(1))
    write_npz(path, arrays)
    same(read_npz(path), arrays)
    with np.load(path) as archive:
        same({name: archive[name] for name in archive.files}, arrays)
    with pytest.raises(ValueError, match="[Oo]bject arrays cannot be saved"):
        write_npz(path, {"o": np.array([None])})


@pytest.mark.fault_row(51)
@pytest.mark.parametrize("save", first_fast([np.savez, np.savez_compressed]))
def test_damage_gives_a_value_error_or_all_arrays(tmp_path, save):
    buffer = io.BytesIO()
    save(buffer, **ARRAYS)
    data, path, rng = buffer.getvalue(), tmp_path / "a.npz", random.Random(0)
    cases = [data[:size] for size in range(0, len(data), 19)]
    for place in range(len(data)):
        value = rng.choice([0, 0xFF, data[place] ^ 1 << rng.randrange(8)])
        cases.append(data[:place] + bytes([value]) + data[place + 1 :])
    cases += [data[:place] + data[place + 40 :] for place in range(0, len(data), 11)]
    cases += [b"x" + data, data + b"x", data + data, data.replace(b"(2, 3)", b"(1, 3)")]
    whole = 0
    for case in cases:
        path.write_bytes(case)
        try:
            same(read_npz(str(path)))
            whole += 1
        except ValueError:
            continue
    assert whole < len(cases) / 2  # dates, versions and attributes do not matter


@pytest.mark.fault_row(51)
def test_arrays_of_objects_are_refused(tmp_path):
    np.savez(str(tmp_path / "a.npz"), a=np.array([None]))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        read_npz(str(tmp_path / "a.npz"))
