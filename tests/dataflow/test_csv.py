"""Rows of tables become datapoints of the dtypes asked for; a wrong row is said with its line."""

import csv

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.files.csv_file import CSVData
from tests.contracts.dataflow import DataFlowContract, assert_same

TABLE = 'id,name,score\n1,"a, b",0.5\n2,"say ""x""",1e3\n-3,,nan\n'


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return str(path)


def load(path, *args, **options):
    return list(CSVData(path, *args, shuffle=False, **options))


class TestCSVData(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = write(tmp_path / "a", "i,text\n" + "".join(f"{i},t{i}\n" for i in range(5)))

    def make_flow(self):
        return CSVData(self.path, dtypes={"i": "int32"}, shuffle=False)


def test_everything_is_text_unless_told_otherwise(tmp_path):
    flow = CSVData(write(tmp_path / "a", TABLE), shuffle=False)
    assert flow.names == ["id", "name", "score"]
    assert list(flow) == [["1", "a, b", "0.5"], ["2", 'say "x"', "1e3"], ["-3", "", "nan"]]


def test_columns_and_dtypes(tmp_path):
    path = write(tmp_path / "a", TABLE)
    expected = [[np.float32(0.5), np.int16(1)], [np.float32(1e3), np.int16(2)]]
    expected.append([np.float32("nan"), np.int16(-3)])
    for columns in ["score", "id"], [2, 0], ["score", 0]:
        assert_same(load(path, columns, ["f4", np.int16]), expected)
    assert_same(load(path, ["id"], int), [[np.int64(i)] for i in (1, 2, -3)])
    found = load(path, dtypes={"id": np.int64})
    assert_same(found[0], [np.int64(1), "a, b", "0.5"])
    assert_same(load(path, dtypes=["int64", "str", "str"]), found)
    assert_same(load(path, dtypes={"id": np.int64, "name": "str"}), found)
    assert_same(load(path, [1], "str"), load(path, [1]))
    assert_same(load(path, [0, 1], {0: "u1"}, max_errors=1)[1], [np.uint8(2), 'say "x"'])
    found = load(write(tmp_path / "b", "0\n1\nTrue\nfalse\n"), dtypes=bool, header=False)
    assert_same(found, [[np.bool_(value)] for value in (False, True, True, False)])


@pytest.mark.parametrize("first", ["0,1", "0,1,2,3", "a,1,2", '"a" b,1,2'])
def test_a_wrong_first_row_of_a_table_without_header_is_skipped(tmp_path, first, capsys):
    path = write(tmp_path / "a", first + "\n" + "1,2,3\n" * 5)
    assert load(path, dtypes=int, header=False, max_errors=1) == [[1, 2, 3]] * 5
    assert "a: line 1" in capsys.readouterr().out
    with pytest.raises(DamagedFile, match="a: line [12]"):
        CSVData(path, dtypes=int, header=False)
    with pytest.raises(DamagedFile, match="b: line 1: "):  # a wrong header is one all the same
        CSVData(write(tmp_path / "b", '"a" b\n1\n'), dtypes=int, max_errors=1)


def test_a_table_without_header_and_with_another_delimiter(tmp_path):
    path = write(tmp_path / "a", "1;2,5\n\n3;4\n")
    flow = CSVData(path, header=False, delimiter=";", shuffle=False)
    assert flow.names is None
    assert list(flow) == [["1", "2,5"], ["3", "4"]]
    assert load(path, [1], header=False, delimiter=";") == [["2,5"], ["4"]]


def test_encodings(tmp_path):
    text = "\u00e9\n\u00fc\n"
    for encoding in "utf-8", "utf-8-sig":
        flow = CSVData(write(tmp_path / "a", text, encoding))
        assert flow.names == ["\u00e9"] and list(flow) == [["\u00fc"]]
    path = write(tmp_path / "a", text, "latin-1")
    assert load(path, encoding="latin-1") == [["\u00fc"]]
    with pytest.raises(ValueError, match="a: not text of the given encoding, .* after line 0"):
        load(path, max_errors=9)


def test_lines_end_in_many_ways_and_continue_in_quotes(tmp_path):
    path = write(tmp_path / "a", 'a,b\r\n1,"x\ny"\r\n2,z\n3,w')
    assert load(path) == [["1", "x\ny"], ["2", "z"], ["3", "w"]]
    path = write(tmp_path / "a", 'a,b\r\n1,"x\ny"\r\nw,z\n')
    with pytest.raises(ValueError, match="line 4, column 'a'"):
        load(path, dtypes={"a": int})
    path = write(tmp_path / "a", 'a\n\n\n"x\n\ny"\n')  # blank lines are not a part of a row
    with pytest.raises(ValueError, match="lines 4 to 6, column"):
        load(path, dtypes=int)


@pytest.mark.parametrize(
    "row, dtype, match",
    [
        ("1", int, "line 3: 1 columns instead of 2"),
        ("1,2,3", int, "line 3: 3 columns instead of 2"),
        ("1,x", int, "line 3, column 'b': 'x' is not an integer"),
        ("1,2.0", int, "'2.0' is not an integer"),
        ("1,", int, "'' is not an integer"),
        ("1,1_0", int, "'1_0' is not an integer"),
        ("1,128", "int8", "128 does not fit into int8"),
        ("1,-1", "uint8", "-1 does not fit into uint8"),
        ("1," + "9" * 30, int, "does not fit into int64"),
        ("1,x", float, "'x' is not a number"),
        ("1,1_0", float, "'1_0' is not a number"),
        ("1,1e39", "float32", "1e39 does not fit into float32"),
        ("1,-1e400", float, "-1e400 does not fit into float64"),
        ("1,65520", "float16", "65520 does not fit into float16"),
        ("1,yes", bool, "'yes' is none of"),
        ('1,"2"3', int, "line 3: "),
    ],
)
def test_a_wrong_row_is_named(tmp_path, row, dtype, match):
    path = write(tmp_path / "a", f"a,b\n1,1\n{row}\n1,0\n")
    with pytest.raises(ValueError, match=f"a: .*{match}"):
        load(path, dtypes={"b": dtype})
    found = load(path, dtypes={"b": dtype}, max_errors=1)
    assert [int(b) for _, b in found] == [1, 0]


def test_the_largest_numbers_as_they_are_printed(tmp_path):
    for dtype in np.float16, np.float32, np.float64:
        most = np.finfo(dtype).max
        path = write(tmp_path / "a", f"a\n{most!s}\n-{most!s}\n")
        assert_same(load(path, dtypes=dtype), [[most], [-most]])


def test_a_field_may_have_any_length(tmp_path):
    before = csv.field_size_limit()
    path = write(tmp_path / "a", "a,b\n" + "x" * 200000 + ",1\n")
    assert load(path) == [["x" * 200000, "1"]]
    assert csv.field_size_limit() == before


def test_one_wrong_row_more_than_allowed(tmp_path, capsys):
    path = write(tmp_path / "a", "a\nx\n1\nx\n2\nx\n")
    assert_same(load(path, dtypes=int, max_errors=3), [[np.int64(1)], [np.int64(2)]])
    assert capsys.readouterr().out.count("Skipped") == 3
    with pytest.raises(ValueError, match="line 6.* has skipped 2 already"):
        load(path, dtypes=int, max_errors=2)


def test_quotes_and_fields_without_an_end(tmp_path):
    path = write(tmp_path / "a", 'a\n1\n"2\n3\n')
    with pytest.raises(ValueError, match="a: lines 3 to 4: unexpected end of data"):
        load(path)
    assert load(path, max_errors=2) == [["1"]]


def test_the_lines_that_a_stray_quote_takes_count_each(tmp_path, capsys):
    lines = ["a,b", *(f"{i},{i}" for i in range(2000))]
    lines[6] = '5,"5'
    path = write(tmp_path / "a", "\n".join(lines) + "\n")
    match = "lines 7 to 2001: .* skipped 0 already, and these are 1995 more"
    with pytest.raises(ValueError, match=match):
        load(path, max_errors=1994)
    assert len(load(path, max_errors=1995)) == 5
    assert "Skipped 1995 of at most 1995: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "end, match",
    [
        ('9",9', ": 3 columns instead of 2"),
        ('9,9"', ", column 'b': .* is not a number"),
        ('9,"9', ": ',' expected after '\"'"),
    ],
)
def test_the_lines_between_two_stray_quotes_count_each(tmp_path, end, match):
    lines = ["a,b", *(f"{i},{i}" for i in range(20))]
    lines[6], lines[10] = '5,"5', end
    path = write(tmp_path / "a", "\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"(?s)lines 7 to 11{match}.* and these are 5 more"):
        load(path, dtypes=float, max_errors=4)
    assert len(load(path, dtypes=float, max_errors=5)) == 15


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        CSVData(tmp_path / "missing")
    for text, match in ("", "empty has no rows"), ("a,b\n", "no rows below its header"):
        with pytest.raises(ValueError, match=match):
            load(write(tmp_path / "empty", text))


def test_wrong_arguments(tmp_path):
    path = write(tmp_path / "a", "a,b,b\n1,2,3\n")
    for columns, match in [
        (["c"], "not one column 'c'"),
        (["b"], "not one column 'b'"),
        ([3], "has columns 0 to 2, but no 3"),
        ([-1], "but no -1"),
    ]:
        with pytest.raises(KeyError, match=match):
            CSVData(path, columns)
    with pytest.raises(KeyError, match="not one column 'a'"):
        CSVData(path, ["a"], header=False)
    with pytest.raises(KeyError, match=r"dtypes has \['c'\]"):
        CSVData(path, dtypes={"c": int})
    with pytest.raises(ValueError, match="There are 1 dtypes for 3 columns"):
        CSVData(path, dtypes=[int])
    with pytest.raises(ValueError, match="but got complex128"):
        CSVData(path, dtypes=complex)
    with pytest.raises(ValueError, match="max_errors .* got -1"):
        CSVData(path, max_errors=-1)
