import csv

import pytest

from tensorpack.callbacks import CSVMonitor
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines, resume_writer, when
from tests.contracts.callback import contract_of

TWO_EPOCHS = [
    {"epoch_num": "1", "global_step": "2", "cost": "0.5", "late, name": ""},
    {"epoch_num": "2", "global_step": "4", "cost": "", "late, name": "2.0"},
]
THIRD = {"epoch_num": "3", "global_step": "6", "cost": "1.5", "late, name": "3.0"}


TestCSVMonitor = contract_of(CSVMonitor)


def put(callback):
    epoch, monitors = callback.epoch_num, callback.trainer.monitors
    monitors.put_scalar("cost", float("nan") if epoch == 2 else epoch / 2)
    if epoch > 1:
        monitors.put_scalar("late, name", epoch)


def putting():
    return when(trigger_epoch=put)


def run(directory, **options):
    with tf.Graph().as_default():
        MiniTrainer([putting()], [CSVMonitor(str(directory))], **options).train()


def table(directory):
    with open(str(directory / "stats.csv"), newline="") as file:
        return [dict(each) for each in csv.DictReader(file)]


def test_there_is_a_line_for_each_epoch_and_a_column_for_each_name(tmp_path):
    run(tmp_path, max_epoch=2)
    assert table(tmp_path) == TWO_EPOCHS
    assert (
        (tmp_path / "stats.csv")
        .read_text()
        .startswith('epoch_num,global_step,cost,"late, name"\n1,2,0.5,\n')
    )


def test_a_resumed_run_drops_what_came_after_its_state(tmp_path):
    run(tmp_path, max_epoch=2)
    saved = CSVMonitor.load(str(tmp_path)).epochs
    run(tmp_path, starting_epoch=3, init_step=4, max_epoch=5)
    state = {"values": {}, "given": len(saved), "tail": saved}
    resume_writer(CSVMonitor(str(tmp_path)), state, putting())
    assert table(tmp_path) == [*TWO_EPOCHS, THIRD]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("stats.csv.")]


def test_a_file_truncated_anywhere_gives_its_whole_lines(tmp_path):
    run(tmp_path, max_epoch=2)
    path = tmp_path / "stats.csv"
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")][1:]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        loaded = CSVMonitor.load(str(tmp_path))
        assert [each["epoch_num"] for each in loaded.epochs] == [1, 2][
            : sum(length >= end for end in ends)
        ]
        assert loaded.complete == (length in ends or length == whole.index(b"\n") + 1)


@pytest.mark.parametrize(
    "garbage", [b"", b"a,b\n1,2\n", b"epoch_num,global_step\n1\n", b"\xff\0\n"]
)
def test_garbage_is_put_aside(tmp_path, garbage, capsys):
    (tmp_path / "stats.csv").write_bytes(garbage)
    run(tmp_path, max_epoch=2)
    assert table(tmp_path) == TWO_EPOCHS
    assert (tmp_path / "stats.csv.corrupt").read_bytes() == garbage
    assert any("cannot be read to its end" in line for line in log_lines(capsys))
