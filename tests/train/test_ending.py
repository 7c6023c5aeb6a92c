"""What is said when a run is over."""

import html
import os
import signal
import sys
import time
import types

import pytest

from tensorpack.callbacks import Callback, MaxSaver, MinSaver, ModelSaver, PeriodicTrigger
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import FeedInput
from tensorpack.report import write_report
from tensorpack.runs import read_record
from tensorpack.train import SimpleTrainer
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils._words import command_text
from tests import helpers
from tests.callbacks.driver import log_lines
from tests.helpers import TinyModel, config
from tests.tiers import first_fast
from tests.train.test_stopping import flow


class Ends(Callback):
    """Ends the run in its second epoch."""

    def __init__(self, how):
        self._how = how

    def _trigger_step(self):
        if self.epoch_num == 2:
            self._how()
            self.trainer.stop_token.wait(5)


def fail():
    raise ZeroDivisionError("on purpose")


def said_at_the_end(capsys, directory, how=lambda: None, saver=True, **options):
    callbacks = [ModelSaver(checkpoint_dir=str(directory))] if saver else []
    options = {"model": TinyModel(), "dataflow": flow(), "max_epoch": 1, **options}
    trainer = SimpleTrainer(config([*callbacks, Ends(how)], **options))
    try:
        trainer.train()
    except (KeyboardInterrupt, ZeroDivisionError):
        pass
    lines = log_lines(capsys)
    last = [
        i for i, line in enumerate(lines) if line.startswith(("Training ", "Detected", "Model"))
    ]
    return lines[last[-1] + 1 :]


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_best_model_is_named_with_its_value(tmp_path, capsys):
    class Putting(Callback):
        def _trigger_epoch(self):
            self.trainer.monitors.put_scalar("error", 1 / 3 + self.epoch_num)

    logger.set_logger_dir(str(tmp_path / "log"))
    best = PeriodicTrigger(MinSaver("error"), every_k_epochs=1)
    callbacks = [ModelSaver(), Putting(), best, MaxSaver("other"), Putting()]
    callbacks[3] = PeriodicTrigger(callbacks[3], every_k_epochs=9)  # has kept nothing
    options = {"model": TinyModel(), "dataflow": flow(), "max_epoch": 2}
    SimpleTrainer(config(callbacks, **options)).train()
    path = f"{tmp_path}/log/min-error"
    assert log_lines(capsys)[-1] == f"The best is {path} (error 1.3333 at step 2)."
    (attempt,) = read_record(str(tmp_path / "log"))["attempts"]
    assert attempt["best"] == ["min-error (error 1.3333 at step 2)"]
    with open(write_report(str(tmp_path / "log")), encoding="utf-8") as page:
        assert "checkpoint model-4, best min-error (error 1.3333 at step 2)" in page.read()
    logger.close_logger_dir()


def test_commands_name_the_model(tmp_path, capsys):
    directory = tmp_path / "a b"
    directory.mkdir()
    commands = {"watch it": "play {model}", "resume": "again --resume"}
    assert said_at_the_end(capsys, directory, commands=commands) == [
        f"The model is {directory}/model-2.",
        "To train longer, with more epochs: again --resume",
        f"To watch it: play '{directory}/model-2'",
    ]


def test_a_run_that_was_interrupted_says_how_to_resume_it(tmp_path, capsys):
    path = f"{tmp_path}/model-3"
    options = {"how": interrupt, "max_epoch": 2}
    says = f"The run is saved in {path}."
    assert said_at_the_end(capsys, tmp_path, **options) == [
        says,
        'To resume: start the program with TrainConfig(resume="auto") and this log directory.',
    ]


def test_a_second_signal_leaves_the_save_out_and_the_log_says_so(tmp_path, capsys):
    def interrupt_twice():
        interrupt()
        interrupt()
        time.sleep(0.3)  # until both are heard

    said = said_at_the_end(capsys, tmp_path, interrupt_twice, max_epoch=2)
    assert said[0] == f"The last save before that is {tmp_path}/model-2."


@pytest.mark.parametrize("is_notebook", [False, True])
def test_a_script_that_resumes_by_itself_is_only_started_again(
    log_dir, capsys, monkeypatch, is_notebook
):
    words = ["python", "-m", "tensorpack.tf1", "a b.py", "--token", "abc"]
    monkeypatch.setattr(sys, "orig_argv", words, raising=False)
    main = types.ModuleType("__main__")
    if not is_notebook:
        main.__file__ = __file__
    monkeypatch.setitem(sys.modules, "__main__", main)
    options = {"how": interrupt, "max_epoch": 2, "resume": "auto"}
    said = said_at_the_end(capsys, log_dir, **options)[-1]
    command = "python -m tensorpack.tf1 'a b.py' --token '***'"
    again = "run the program again." if is_notebook else command
    assert said == f"To resume: {again}"
    assert command_text(read_record(log_dir)["attempts"][0]["command"]) == command
    with open(write_report(log_dir), encoding="utf-8") as page:
        assert command in html.unescape(page.read())


@pytest.mark.parametrize(
    "code, result, exit_code, said, where",
    [
        (0, "finished", 0, "was ended at", "The model is"),
        (None, "finished", 0, "was ended at", "The model is"),
        (3, "failed", 3, "failed at", "The last save before that is"),
        ("no room", "failed", 1, "failed at", "The last save before that is"),
    ],
)
def test_record_log_and_exit_code_agree(code, result, exit_code, said, where, log_dir, capsys):
    with pytest.raises(SystemExit) as caught:
        said_at_the_end(capsys, log_dir, lambda: sys.exit(code), max_epoch=2)
    assert caught.value.code == code
    lines = log_lines(capsys)
    assert [each for each in lines if each.startswith(f"Training {said} global_step=3 ")]
    assert f"{where} {log_dir}/model-2." in lines
    (run,) = read_record(log_dir)["attempts"]
    assert (run["result"], run["exit_code"]) == (result, exit_code)


def test_without_a_saver_nothing_is_said(tmp_path, capsys):
    assert said_at_the_end(capsys, tmp_path, saver=False) == []


def test_the_log_file_has_the_message_and_the_traceback_and_the_terminal_none(tmp_path, capsys):
    logger.set_logger_dir(str(tmp_path))
    try:
        said = said_at_the_end(capsys, tmp_path, fail, max_epoch=2)
    finally:
        logger.close_logger_dir()
    text = (tmp_path / "log.log").read_text()
    assert "ZeroDivisionError: on purpose" in text and "in fail" in text and "train/run.py" in text
    assert "raised by the callback Ends in its trigger_step." in text
    assert not any("Traceback" in line for line in said)


class Hooks(Callback):
    """Fails in one of its hooks."""

    _source = "games"  # its own; it is no input of the library

    def __init__(self, hook):
        setattr(self, "_" + hook, lambda *args: fail())


HOOKS = [each for each in helpers.HOOKS if each != "after_train"]


@pytest.mark.parametrize("hook", first_fast(HOOKS, 3))
def test_the_callback_that_failed_is_named_with_its_hook(hook):
    trainer = SimpleTrainer(config([Callback(), Hooks(hook)], model=TinyModel(), dataflow=flow()))
    with pytest.raises(ZeroDivisionError, match="on purpose") as info:
        trainer.train()
    assert notes_of(info.value) == [f"It was raised by the callback Hooks in its {hook}."]


def test_a_variable_that_was_made_before_the_trainer_is_named():
    with helpers.eagerly():
        rate = tf.get_variable("rate", initializer=0.1, trainable=False)
    trainer = SimpleTrainer(config(model=TinyModel(learning_rate=rate), dataflow=flow()))
    with pytest.raises(RuntimeError, match="EagerTensor") as info:
        trainer.train()
    (note,) = notes_of(info.value)
    assert note.startswith("Variable 'rate:0' was made before the trainer, while TensorFlow exec")


def test_an_op_that_fails_is_named_with_its_line():
    class Model(TinyModel):
        def build_graph(self, x, y):
            return super().build_graph(x, tf.gather(y, [99]))

    line = Model.build_graph.__code__.co_firstlineno + 1
    trainer = SimpleTrainer(config(model=Model(), dataflow=flow()))
    with pytest.raises(tf.errors.InvalidArgumentError) as info:
        trainer.train()
    made = f"The op 'GatherV2' (GatherV2) was made at {__file__}:{line}, in build_graph."
    assert notes_of(info.value) == [made]


def test_an_error_of_the_data_names_the_input():
    class Broken(DataFlow):
        def __iter__(self):
            yield from flow()
            raise ZeroDivisionError

    data = FeedInput(Broken(), infinite=False)
    trainer = SimpleTrainer(config([], model=TinyModel(), data=data, max_epoch=99))
    with pytest.raises(ZeroDivisionError) as info:
        trainer.train()
    assert notes_of(info.value) == ["It was raised by the input FeedInput in its before_run."]
