"""Archives of WebDataset are read by name; what is cut off or has a wrong structure is an error."""

import contextlib
import io
import os
import pickle
import tarfile

import pytest

from tensorpack.dataflow import DamagedFile, DataFromList, MapDataComponent, TarData, TarSerializer
from tests.contracts.dataflow import DataFlowContract
from tests.processes import open_paths

DATAPOINTS = [{"__key__": f"a/{i}", "jpg": bytes([i]) * 700, "cls": b"%d" % i} for i in range(5)]


def save(datapoints, path):
    TarSerializer.save(DataFromList(datapoints, shuffle=False), path)
    return str(path)


def load(path, **options):
    with contextlib.closing(TarData(path, shuffle=False, **options)) as flow:
        return list(flow)


def write(path, *files):
    with tarfile.open(str(path), "w") as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return str(path)


class TestTarData(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = save(DATAPOINTS, tmp_path / "five.tar")

    def make_flow(self):
        return TarData(self.path, shuffle=False)


def test_files_of_one_name_are_a_datapoint(tmp_path):
    path = write(
        tmp_path / "a",
        ("./x.y/1.seg.PNG", b"s"),
        ("./x.y/1.cls", b"7"),
        ("./x.y/2.cls", b"8"),
        ("x/1", b""),
    )
    assert load(path) == [
        {"__key__": "./x.y/1", "seg.png": b"s", "cls": b"7"},
        {"__key__": "./x.y/2", "cls": b"8"},
        {"__key__": "x/1", "": b""},
    ]
    flow = MapDataComponent(TarData(save(DATAPOINTS, tmp_path / "b")), int, "cls")
    with contextlib.closing(flow):
        assert sorted(datapoint["cls"] for datapoint in flow) == list(range(5))


def test_what_is_written(tmp_path):
    datapoints = [{"txt": "\u00e9"}, {"txt": b"b" * 200, "__key__": "k" * 150}]
    path = save(datapoints, tmp_path / "a")
    with tarfile.open(path) as archive:
        assert archive.getnames() == ["00000000.txt", "k" * 150 + ".txt"]
    assert [datapoint["txt"] for datapoint in load(path)] == ["\u00e9".encode(), b"b" * 200]
    save(datapoints, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_file_is_open_while_it_is_used_and_a_pickle_is_its_path(tmp_path):
    path = save(DATAPOINTS, tmp_path / "a")
    flow = TarData(path)
    assert path not in open_paths()
    next(iter(flow))
    assert path in open_paths()
    twin = pickle.loads(pickle.dumps(flow))
    flow.close()
    assert path not in open_paths()
    assert len(list(flow)) == len(list(twin)) == 5
    flow.close()
    twin.close()


def test_an_archive_cut_off_anywhere_is_an_error(tmp_path):
    path = save(DATAPOINTS, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    end = len(data.rstrip(b"\0"))
    for kept in [*range(0, end, 111), end - 1]:
        (tmp_path / "a").write_bytes(data[:kept])
        with pytest.raises(DamagedFile, match="a is not a whole tar archive"):
            load(path)


def test_what_is_behind_a_block_of_zeros_is_not_lost(tmp_path):
    path = save(DATAPOINTS, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    with tarfile.open(path) as archive:
        third = archive.getmembers()[4].offset
    (tmp_path / "a").write_bytes(data[:third] + bytes(512) + data[third + 512 :])
    with pytest.raises(DamagedFile, match=f"more behind its end, at byte {third}. Is a header"):
        load(path)
    (tmp_path / "a").write_bytes(data + bytes(2**20) + data)
    with pytest.raises(DamagedFile, match="archives joined without tar --concatenate"):
        load(path)
    (tmp_path / "a").write_bytes(data + bytes(2**20))
    assert load(path) == DATAPOINTS


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.GNUTYPE_SPARSE])
def test_files_whose_bytes_are_elsewhere_are_an_error_and_folders_are_left_out(tmp_path, kind):
    def save_as(*kinds):
        with tarfile.open(str(tmp_path / "a"), "w", format=tarfile.GNU_FORMAT) as archive:
            for number, each in enumerate(kinds):
                member = tarfile.TarInfo(f"x/{number}")
                member.type, member.linkname = each, "x/1"
                archive.addfile(member)

    save_as(tarfile.DIRTYPE, tarfile.REGTYPE)
    assert load(tmp_path / "a") == [{"__key__": "x/1", "": b""}]
    save_as(tarfile.DIRTYPE, tarfile.REGTYPE, kind)
    with pytest.raises(DamagedFile, match="a: 'x/2' is a link or a sparse file"):
        load(tmp_path / "a")


def test_a_damaged_header_is_an_error(tmp_path):
    path = save(DATAPOINTS, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    for place in 10, data.index(b"a/3.jpg") + 2:
        (tmp_path / "a").write_bytes(data[:place] + b"?" + data[place + 1 :])
        with pytest.raises(DamagedFile, match="a is not a whole tar archive"):
            load(path)


def test_datapoints_that_are_wrong_are_skipped_up_to_a_limit(tmp_path, capsys):
    path = write(tmp_path / "a", ("1.x", b"1"), ("1.X", b"2"), ("2.x", b"3"))
    with pytest.raises(DamagedFile, match="a, datapoint '1': it has two files 'x'"):
        load(path)
    with contextlib.closing(TarData(path, shuffle=False, max_errors=2)) as flow:
        assert list(flow) == [{"__key__": "2", "x": b"3"}]
        os.truncate(path, 600)
        assert list(flow) == []
    assert "datapoint '2': the file became shorter" in capsys.readouterr().out


@pytest.mark.parametrize(
    "datapoints, error, match",
    [
        ([], ValueError, "no datapoints"),
        ([{"x": b""}, {"x": 5}], TypeError, "Datapoint 1: 'x' is neither text nor bytes"),
        ([{"X": b""}], ValueError, "Datapoint 0 would not be read as '00000000' and 'X'"),
        ([{"__key__": "a.b", "x": b""}], ValueError, "Datapoint 0 would not be read as 'a.b'"),
        ([{"__key__": "a", "x": b""}] * 2, ValueError, "Datapoint 1 would not"),
        ([[b""]], TypeError, "Datapoint 0 is a list, not a dict"),
        ([{"x": b""}, {"__key__": "a"}], ValueError, "Datapoint 1 has no files"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, datapoints, error, match):
    with pytest.raises(error, match=match):
        save(datapoints, tmp_path / "a")
    assert os.listdir(str(tmp_path)) == []


def test_a_compressed_archive_is_not_read(tmp_path):
    with tarfile.open(str(tmp_path / "a"), "w:gz"):
        pass
    with pytest.raises(DamagedFile, match="a is not a whole tar archive"):
        load(tmp_path / "a")
