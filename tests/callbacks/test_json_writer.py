import json
import os
import re

import pytest

from tensorpack.callbacks import Callback, JSONWriter
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines
from tests.contracts.callback import CallbackContract


class TestJSONWriter(CallbackContract):
    def make_callback(self):
        return JSONWriter()


class Putting(Callback):
    """Puts `cost` in each step and `score` in each epoch."""

    def _trigger_step(self):
        self.trainer.monitors.put_scalar("cost", self.global_step / 2)

    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("score", float("nan") if self.epoch_num == 2 else 1)


def run(directory, callback=None, **options):
    monitors = [JSONWriter(str(directory))]
    with tf.Graph().as_default():
        return MiniTrainer([callback or Putting()], monitors, **options).train()


def stats(directory):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = (directory / "stats.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=refuse)


TWO_EPOCHS = [
    {"epoch_num": 1, "global_step": 2, "cost": 1.0, "score": 1.0},
    {"epoch_num": 2, "global_step": 4, "cost": 2.0, "score": None},
]


def test_there_is_one_object_for_each_epoch(tmp_path):
    run(tmp_path, max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS
    assert os.listdir(str(tmp_path)) == ["stats.json"]


def test_the_file_is_whole_after_each_epoch(tmp_path):
    seen = []

    class Reading(Putting):
        def _before_epoch(self):
            seen.append((tmp_path / "stats.json").exists() and len(stats(tmp_path)))

    run(tmp_path, Reading(), max_epoch=3)
    assert seen == [False, 1, 2]


def test_a_run_that_goes_on_appends(tmp_path, capsys):
    run(tmp_path, max_epoch=2)
    run(tmp_path, starting_epoch=3, init_step=4, max_epoch=3)
    added = {"epoch_num": 3, "global_step": 6, "cost": 3.0, "score": 1.0}
    assert stats(tmp_path) == [*TWO_EPOCHS, added]
    assert log_lines(capsys)[-1] == (
        f"Found existing JSON at {tmp_path / 'stats.json'}, will append to it."
    )


@pytest.mark.parametrize("starting_epoch", [1, 2, 4])
def test_any_other_run_puts_the_old_file_aside(tmp_path, capsys, starting_epoch):
    run(tmp_path, max_epoch=2)
    run(tmp_path, starting_epoch=starting_epoch, max_epoch=starting_epoch)
    assert [each["epoch_num"] for each in stats(tmp_path)] == [starting_epoch]
    old = [name for name in os.listdir(str(tmp_path)) if name != "stats.json"]
    assert len(old) == 1 and re.match(r"stats\.json\.\d{4}-\d{6}$", old[0])
    assert json.loads((tmp_path / old[0]).read_text()) == TWO_EPOCHS
    assert re.search("ends with epoch 2, but this run begins with", log_lines(capsys)[-1])


def test_a_file_truncated_anywhere_gives_its_whole_epochs(tmp_path):
    run(tmp_path, max_epoch=2)
    path = tmp_path / "stats.json"
    whole = path.read_bytes()
    ends = [whole.index(b"}") + 1, whole.rindex(b"}") + 1]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        expected = TWO_EPOCHS[: sum(length >= end for end in ends)]
        assert JSONWriter.load_existing_json(str(tmp_path)) == expected


def test_a_truncated_file_is_put_aside_and_continued(tmp_path, capsys):
    run(tmp_path, max_epoch=2)
    path = tmp_path / "stats.json"
    half = path.read_bytes()[:-3]
    path.write_bytes(half)
    run(tmp_path, starting_epoch=2, init_step=2, max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS
    assert (tmp_path / "stats.json.corrupt").read_bytes() == half
    lines = log_lines(capsys)
    assert any("was renamed to" in line and "first 1 epochs are whole" in line for line in lines)


@pytest.mark.parametrize("garbage", [b"", b"\x00\xff", b"{}", b"[1, 2]", b'[{"a": 1}]', b"null"])
def test_garbage_is_put_aside(tmp_path, garbage):
    (tmp_path / "stats.json").write_bytes(garbage)
    run(tmp_path, max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS
    assert (tmp_path / "stats.json.corrupt").read_bytes() == garbage


def test_the_last_epoch_can_be_asked_for(tmp_path):
    assert JSONWriter.load_existing_json(str(tmp_path)) is None
    assert JSONWriter.load_existing_epoch_number(str(tmp_path)) is None
    run(tmp_path, max_epoch=2)
    assert JSONWriter.load_existing_epoch_number(str(tmp_path)) == 2
    with log_directory(tmp_path):
        assert JSONWriter.load_existing_epoch_number() == 2


def test_an_epoch_without_scalars_has_no_object(tmp_path):
    run(tmp_path, Callback(), max_epoch=2)
    assert os.listdir(str(tmp_path)) == []


def test_what_comes_late_belongs_to_the_epoch_that_ended(tmp_path):
    class Late(Callback):
        def _before_epoch(self):
            if self.epoch_num > 1:
                self.trainer.monitors.put_scalar("late", self.epoch_num)

        def _after_train(self):
            self.trainer.monitors.put_scalar("end", 5)

    class Both(Putting, Late):
        pass

    run(tmp_path, Both(), max_epoch=2)
    assert [each.get("late") for each in stats(tmp_path)] == [2.0, None]
    assert [each.get("end") for each in stats(tmp_path)] == [None, 5.0]


class Blocking(Putting):
    """Puts a directory in the way of every write, until the end of an epoch if that is given."""

    def __init__(self, path, until=None):
        super().__init__()
        self._path, self._until = path, until

    def _before_train(self):
        super()._before_train()
        self._path.mkdir()

    def _trigger_epoch(self):
        super()._trigger_epoch()
        if self.epoch_num == self._until:
            self._path.rmdir()


def test_a_failing_disk_costs_one_warning(tmp_path, capsys):
    run(tmp_path, Blocking(tmp_path / "stats.json"), max_epoch=3)
    lines = log_lines(capsys)
    assert len(lines) == 1
    assert lines[0].startswith(f"Cannot write {tmp_path / 'stats.json'}, the training goes on: ")


def test_a_disk_that_recovers_gets_all_epochs(tmp_path):
    run(tmp_path, Blocking(tmp_path / "stats.json", until=2), max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS


def test_without_a_log_directory_it_does_nothing(capsys):
    MiniTrainer([Putting()], [JSONWriter()], max_epoch=2).train()
    assert log_lines(capsys) == ["logger directory was not set. Ignore JSONWriter."]
