"""A format of a user is opened once a process, sent by its path, and names what is damaged."""

import os

import pytest

from tensorpack.dataflow import DamagedFile, MultiProcessRunner, RecordFile, RecordsFlow
from tests.contracts.dataflow import DataFlowContract

WIDTH = 4


class Lines(RecordFile):
    """Numbers, on lines of four characters."""

    def open(self):
        return Descriptor(self.path)

    def __len__(self):
        return os.path.getsize(self.path) // WIDTH

    def read(self, index):
        text = os.pread(self.handle.number, WIDTH, index * WIDTH)
        if not text.strip().isdigit():
            raise self.damaged(index, f"{text!r} is not a number")
        return [int(text), os.getpid()]

    def where(self, index):
        return f"line {index + 1}"


class Descriptor:
    opened = 0

    def __init__(self, path):
        type(self).opened += 1
        self.number = os.open(path, os.O_RDONLY)

    def close(self):
        os.close(self.number)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "lines").write_text("".join(f"{number:3}\n" for number in range(6)))
    return str(tmp_path / "lines")


class TestOwnFormat(DataFlowContract):
    length = 6

    @pytest.fixture(autouse=True)
    def file(self, path):
        self.path = path

    def make_flow(self):
        return RecordsFlow(Lines(self.path), shuffle=False)


def test_the_file_is_opened_when_it_is_needed_and_again_after_close(path):
    before = Descriptor.opened
    flow = RecordsFlow(Lines(path), shuffle=True)
    assert Descriptor.opened == before
    for count in 1, 2:
        assert len(list(flow)) == len(list(flow)) == 6
        assert Descriptor.opened == before + count
        flow.close()
        flow.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_open_it_for_themselves(path, method):
    flow = RecordsFlow(Lines(path), shuffle=False)
    assert next(iter(flow)) == [0, os.getpid()]
    runner = MultiProcessRunner(flow, 3, 1, start_method=method)
    runner.reset_state()
    found = list(runner)
    runner.close()
    flow.close()
    assert [number for number, _ in found] == list(range(6))
    assert os.getpid() not in {process for _, process in found}


def test_what_is_damaged_is_named_and_skipped(path):
    with open(path, "r+b") as file:
        file.seek(2 * WIDTH)
        file.write(b"what")
    with pytest.raises(DamagedFile, match="lines, line 3: b'what' is not a number"):
        list(RecordsFlow(Lines(path), shuffle=False))
    flow = RecordsFlow(Lines(path), shuffle=False, max_errors=1)
    for _ in range(2):  # each pass has a limit of its own
        assert [number for number, _ in flow] == [0, 1, 3, 4, 5]
    flow.close()
