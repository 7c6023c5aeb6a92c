"""Sizes and datapoints as they are printed."""

import numpy as np
import pytest

from tensorpack.dataflow._cli.output import number_text, size_text, structure


@pytest.mark.parametrize(
    "nbytes, text",
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123456789, "123.5 MB"), (5e12, "5.0 TB")],
)
def test_sizes(nbytes, text):
    assert size_text(nbytes) == text


@pytest.mark.parametrize(
    "value, what, values",
    [
        (np.arange(6, dtype=np.uint8).reshape(2, 3), "array uint8 [2, 3]", "0 to 5"),
        (np.array([[-1.5, np.nan, 2, np.inf]]), "array float64 [1, 4]", "-1.5 to 2, 2 not finite"),
        (np.full(3, np.nan), "array float64 [3]", "3 not finite"),
        (np.zeros((0, 4), np.int16), "array int16 [0, 4]", "nothing"),
        (np.array(["a", "bc"]), "array <U2 [2]", ""),
        (np.array([True, False]), "array bool [2]", "False to True"),
        (np.array([1j]), "array complex128 [1]", ""),
        (np.float32(0.5), "numpy float32", "0.5"),
        (7, "int", "7"),
        (None, "NoneType", "None"),
        ("text", "str of 4", "'text'"),
        (b"x" * 200, "bytes of 200", "b'" + "x" * 45 + "..."),
    ],
)
def test_the_values_of_a_component(value, what, values):
    assert list(structure([value], "0"))[1] == ["0[0]", what, values]


def test_the_structure_of_a_datapoint():
    datapoint = {"a": [1, ("b", {})], "c": list(range(30))}
    rows = list(structure(datapoint, "5"))
    assert rows[:6] == [
        ["5", "dict of 2", ""],
        ["5['a']", "list of 2", ""],
        ["5['a'][0]", "int", "1"],
        ["5['a'][1]", "tuple of 2", ""],
        ["5['a'][1][0]", "str of 1", "'b'"],
        ["5['a'][1][1]", "dict of 0", ""],
    ]
    assert rows[-2:] == [["5['c'][19]", "int", "19"], ["5['c']", "... and 10 more", ""]]
    deep = [[[[[[1]]]]]]
    assert [path for path, _, _ in structure(deep, "0")][-1] == "0[0][0][0][0]"


@pytest.mark.parametrize(
    "number, text",
    [
        (14492.8, "14500"),
        (0.61234, "0.612"),
        (20.0, "20"),
        (0, "0"),
        (999.9, "1000"),
        (12e6, "12000000"),
    ],
)
def test_numbers_have_three_digits(number, text):
    assert number_text(number) == text
