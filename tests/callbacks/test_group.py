import pytest

from tensorpack.callbacks import Callback, Callbacks
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.stopping import Finished, StopRequested
from tests.callbacks.driver import MiniTrainer, log_lines
from tests.helpers import CallbackSpy, FakeClock


class Failing(CallbackSpy):
    def __init__(self, tape, label, hook):
        super().__init__(tape, label)
        self._hook = hook

    def _note(self, hook):
        super()._note(hook)
        if hook == self._hook:
            raise ValueError(f"{self._prefix}{hook}")


def test_each_hook_is_called_in_the_order_of_the_list():
    tape = []
    spies = [CallbackSpy(tape, "a"), CallbackSpy(tape, "b")]
    MiniTrainer(spies, steps_per_epoch=1).train()
    assert tape[::2] == [each.replace("b.", "a.") for each in tape[1::2]]
    assert [each[2:] for each in tape[::2]] == [
        "setup_graph",
        "before_train",
        "before_epoch",
        "before_run",
        "after_run",
        "trigger_step",
        "after_epoch",
        "trigger_epoch",
        "after_train",
    ]


@pytest.mark.parametrize(
    "hook",
    [
        "before_epoch",
        "before_run",
        "after_run",
        "trigger_step",
        "after_epoch",
        "trigger_epoch",
    ],
)
def test_an_error_in_any_hook_ends_the_run_and_all_after_train_run(hook):
    tape = []
    callbacks = [CallbackSpy(tape, "a"), Failing(tape, "b", hook), CallbackSpy(tape, "c")]
    with pytest.raises(ValueError, match=f"^b.{hook}$"):
        MiniTrainer(callbacks).train()
    assert tape[tape.index(f"b.{hook}") + 1 :] == [
        "a.after_train",
        "b.after_train",
        "c.after_train",
    ]


def test_after_train_runs_only_where_before_train_was_entered():
    tape = []
    callbacks = [CallbackSpy(tape, "a"), Failing(tape, "b", "before_train"), CallbackSpy(tape, "c")]
    with pytest.raises(ValueError, match="^b.before_train$"):
        MiniTrainer(callbacks).train()
    assert tape[-4:] == ["a.before_train", "b.before_train", "a.after_train", "b.after_train"]


def test_the_first_error_of_after_train_is_raised_when_all_have_run(capsys):
    tape = []
    callbacks = [Failing(tape, label, "after_train") for label in "ab"] + [CallbackSpy(tape, "c")]
    with pytest.raises(ValueError, match="^a.after_train$"):
        MiniTrainer(callbacks).train()
    assert tape[-3:] == ["a.after_train", "b.after_train", "c.after_train"]
    assert log_lines(capsys) == [
        "Failing failed at the end of the run: ValueError('a.after_train')",
        "Failing failed at the end of the run: ValueError('b.after_train')",
    ]


@pytest.mark.parametrize("hook", ["setup_graph", "before_train", "trigger_epoch"])
def test_a_requested_stop_ends_the_round_between_two_callbacks(hook):
    tape = []
    trainer = None

    class Stopping(CallbackSpy):
        def _note(self, name):
            super()._note(name)
            if name == hook:
                trainer.stop_token.request(Finished())

    trainer = MiniTrainer([Stopping(tape, "a"), CallbackSpy(tape, "b")])
    with pytest.raises(StopRequested):
        trainer.train()
    assert f"a.{hook}" in tape and f"b.{hook}" not in tape


def slow(clock, seconds):
    class Slow(Callback):
        def _trigger(self):
            clock.advance(seconds)

    return Slow()


def report(capsys, *seconds):
    clock = FakeClock()
    trainer = MiniTrainer()
    group = Callbacks([slow(clock, each) for each in seconds], clock=clock)
    group.setup_graph(trainer)
    group.trigger_epoch()
    return log_lines(capsys)


def test_a_slow_epoch_is_reported(capsys):
    assert report(capsys, 0.5, 1.25, 2.0) == [
        "Callbacks took 3.750 sec in total. Slow: 2.000sec; Slow: 1.250sec"
    ]


def test_a_quick_epoch_is_not_reported(capsys):
    assert report(capsys, 0.9, 2.0) == []


def test_only_callbacks_that_see_runs_get_hooks():
    group = Callbacks([Callback(), CallbackSpy(), Callback()])
    assert len(group.get_hooks()) == 1


def test_those_that_ask_for_it_are_set_up_last():
    tape = []

    class Last(CallbackSpy):
        sets_up_last = True

    MiniTrainer([Last(tape, "last"), CallbackSpy(tape, "a"), CallbackSpy(tape, "b")]).train()
    assert tape[:3] == ["a.setup_graph", "b.setup_graph", "last.setup_graph"]
    assert tape[3] == "last.before_train"


def test_the_group_adds_no_name_scope():
    class Adding(Callback):
        def _setup_graph(self):
            self.name = tf.no_op("nothing").name

    adding = Adding()
    Callbacks([adding]).setup_graph(MiniTrainer())
    assert adding.name == "Adding/nothing"


def test_a_list_with_something_else_in_it_is_refused():
    with pytest.raises(TypeError, match="has a str in it"):
        Callbacks(["ModelSaver"])
