"""Lines of SVMlight files become vectors; a wrong line is named."""

import gzip

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, SVMLightData
from tests.contracts.dataflow import DataFlowContract, assert_same

pytest.importorskip("sklearn")


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def load(path, **options):
    return [
        [features.tolist(), float(label)]
        for features, label in SVMLightData(path, shuffle=False, **options)
    ]


class TestSVMLightData(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = write(tmp_path / "a", "".join(f"{i} {i + 1}:{i}.5\n" for i in range(5)))

    def make_flow(self):
        return SVMLightData(self.path, shuffle=False)


def test_what_a_line_becomes(tmp_path):
    path = write(tmp_path / "a", "-1 2:0.1 4:3\n+2.5 1:-1e-2\r\n0\n")
    flow = SVMLightData(path, shuffle=False)
    assert flow.num_features == 4
    expected = [([0, 0.1, 0, 3], -1), ([-1e-2, 0, 0, 0], 2.5), ([0, 0, 0, 0], 0)]
    assert_same(list(flow), [[np.array(x, np.float32), np.float64(y)] for x, y in expected])


def test_the_length_of_the_vectors_is_found_or_given(tmp_path):
    path = write(tmp_path / "a", "1 1:5\n2 3:6")
    assert load(path, num_features=4) == [[[5, 0, 0, 0], 1], [[0, 0, 6, 0], 2]]
    assert load(path, num_features=3) == load(path)
    with pytest.raises(ValueError, match="a: .*3.* 4 features"):
        load(path, num_features=3, zero_based=True)
    assert load(write(tmp_path / "b", "1\n2")) == [[[0], 1], [[0], 2]]


@pytest.mark.parametrize(
    "line, match",
    [
        ("x 1:2", "could not convert string to float: b'x'"),
        ("nan 1:2", "a number is not finite"),
        ("1 1:1e39", "a number is not finite, or too large for float32"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, match):
    path = write(tmp_path / "a", f"1 1:1\n{line}\n3 1:3\n")
    with pytest.raises(DamagedFile, match=f"a: line 2: .*{match}"):
        load(path)


def test_files_and_arguments_that_are_wrong(tmp_path):
    path = str(tmp_path / "a.gz")
    with gzip.open(path, "wb") as file:
        file.write(b"1 1:2\n")
    assert load(path) == [[[2], 1]]
