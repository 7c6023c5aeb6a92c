import json
import os
import re

import pytest

from tensorpack.callbacks import Callback, JSONWriter
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, resume_writer
from tests.contracts.callback import contract_of

TestJSONWriter = contract_of(JSONWriter)


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


def aside(directory):
    """The path and the epochs of the one other file, which has the name of an old one."""
    (path,) = [path for path in directory.iterdir() if path.name != "stats.json"]
    assert re.match(r"stats\.json\.\d{4}-\d{6}$", path.name)
    return path, json.loads(path.read_text())


def stats(directory):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = (directory / "stats.json").read_text(encoding="utf-8")
    return json.loads(text, parse_constant=refuse)


TWO_EPOCHS = [
    {"epoch_num": 1, "global_step": 2, "cost": 1.0, "score": 1.0},
    {"epoch_num": 2, "global_step": 4, "cost": 2.0, "score": None},
]
THIRD = {"epoch_num": 3, "global_step": 6, "cost": 3.0, "score": 1.0}


def test_there_is_one_object_for_each_epoch_and_the_file_is_whole_after_each(tmp_path):
    seen = []

    class Reading(Putting):
        def _before_epoch(self):
            seen.append((tmp_path / "stats.json").exists() and stats(tmp_path))

    run(tmp_path, Reading(), max_epoch=3)
    assert seen == [False, TWO_EPOCHS[:1], TWO_EPOCHS]
    assert stats(tmp_path) == [*TWO_EPOCHS, THIRD]
    assert os.listdir(str(tmp_path)) == ["stats.json"]


def test_a_run_that_continues_appends(tmp_path, capsys):
    run(tmp_path, max_epoch=2)
    run(tmp_path, starting_epoch=3, init_step=4, max_epoch=3)
    assert stats(tmp_path) == [*TWO_EPOCHS, THIRD]
    assert log_lines(capsys)[-1] == (
        f"This run appends to {tmp_path / 'stats.json'}, which ends with epoch 2."
    )


@pytest.mark.parametrize("first, step, epochs", [(1, 0, [1]), (2, 0, [2]), (2, 4, [1, 2])])
def test_any_other_run_puts_the_old_file_aside(tmp_path, capsys, first, step, epochs):
    run(tmp_path, max_epoch=2)
    run(tmp_path, starting_epoch=first, init_step=step, max_epoch=first)
    assert [each["epoch_num"] for each in stats(tmp_path)] == epochs
    assert aside(tmp_path)[1] == TWO_EPOCHS
    assert f"{tmp_path / 'stats.json'} has later epochs, so it is kept as " in log_lines(capsys)[-1]


def test_a_truncated_file_is_put_aside_and_continued(tmp_path, capsys):
    run(tmp_path, max_epoch=2)
    path = tmp_path / "stats.json"
    half = path.read_bytes()[:-3]
    path.write_bytes(half)
    run(tmp_path, starting_epoch=2, init_step=2, max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS
    assert (tmp_path / "stats.json.corrupt").read_bytes() == half
    assert log_lines(capsys)[-1] == (
        f"{path} cannot be read, so it is kept as {path}.corrupt; this run continues its first 1 "
        "epochs."
    )


@pytest.mark.parametrize("garbage", [b"", b"\x00\xff", b'[{"a": 1}]'])
def test_garbage_is_put_aside(tmp_path, garbage):
    (tmp_path / "stats.json").write_bytes(garbage)
    run(tmp_path, max_epoch=2)
    assert stats(tmp_path) == TWO_EPOCHS
    assert (tmp_path / "stats.json.corrupt").read_bytes() == garbage


def test_what_json_lacks_becomes_null(tmp_path):
    """Files of earlier releases have it."""
    text = json.dumps(TWO_EPOCHS).replace("null", "NaN").replace('"cost": 1.0', '"cost": 1e999')
    (tmp_path / "stats.json").write_text(text)
    run(tmp_path, starting_epoch=3, init_step=4, max_epoch=3)
    assert stats(tmp_path) == [{**TWO_EPOCHS[0], "cost": None}, TWO_EPOCHS[1], THIRD]


def test_a_scalar_does_not_overwrite_the_number_of_the_epoch(tmp_path):
    class Reserved(Putting):
        def _trigger_epoch(self):
            super()._trigger_epoch()
            self.trainer.monitors.put_scalar("epoch_num", 0.5)
            self.trainer.monitors.put_scalar("global_step", 0.25)

    run(tmp_path, Reserved(), max_epoch=2)
    more = {"scalar/epoch_num": 0.5, "scalar/global_step": 0.25}
    assert stats(tmp_path) == [{**each, **more} for each in TWO_EPOCHS]


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
    class Late(Putting):
        def _before_epoch(self):
            if self.epoch_num > 1:
                self.trainer.monitors.put_scalar("late", self.epoch_num)

        def _after_train(self):
            self.trainer.monitors.put_scalar("end", 5)

    run(tmp_path, Late(), max_epoch=2)
    assert [each.get("late") for each in stats(tmp_path)] == [2.0, None]
    assert [each.get("end") for each in stats(tmp_path)] == [None, 5.0]


def test_a_failing_disk_costs_one_warning_and_no_epoch(tmp_path, capsys):
    path = tmp_path / "stats.json"

    class Blocking(Putting):
        def _before_train(self):
            path.mkdir()  # in the way of every write

        def _trigger_epoch(self):
            super()._trigger_epoch()
            if self.epoch_num == 3:
                path.rmdir()

    run(tmp_path, Blocking(), max_epoch=3)
    (line,) = log_lines(capsys)
    assert line.startswith(f"Cannot write {path}, the training continues: ")
    assert stats(tmp_path) == [*TWO_EPOCHS, THIRD]


def test_without_a_log_directory_it_does_nothing(capsys):
    MiniTrainer([Putting()], [JSONWriter()], max_epoch=2).train()
    assert log_lines(capsys) == [
        "No stats.json is written: there is no log directory to put it in."
    ]


def resume(directory, values, callback=None, **options):
    resume_writer(JSONWriter(str(directory)), {"values": values}, callback or Putting(), **options)


def test_a_resumed_run_drops_what_came_after_its_state(tmp_path, capsys):
    run(tmp_path, max_epoch=5)
    longer = stats(tmp_path)
    resume(tmp_path, {}, Callback())
    assert stats(tmp_path) == TWO_EPOCHS  # written at once, not at the end of the next epoch
    path, epochs = aside(tmp_path)
    assert epochs == longer
    assert log_lines(capsys)[-1] == (
        f"{tmp_path / 'stats.json'} has later epochs, so it is kept as {path}; "
        "this run continues its first 2 epochs."
    )
    resume(tmp_path, {})
    assert stats(tmp_path) == [*TWO_EPOCHS, THIRD]
    assert aside(tmp_path)[0] == path


def test_what_the_state_holds_of_the_last_epoch_amends_it(tmp_path):
    run(tmp_path, max_epoch=2)
    resume(tmp_path, {"late": 5.0})
    assert stats(tmp_path) == [TWO_EPOCHS[0], {**TWO_EPOCHS[1], "late": 5.0}, THIRD]
