import pytest

from tensorpack.callbacks import (
    Callback,
    CallbackFactory,
    EnableCallbackIf,
    EstimatedTimeLeft,
    GraphProfiler,
    PeriodicCallback,
    PeriodicRunHooks,
    PeriodicTrigger,
    ProcessTensors,
    ProxyCallback,
)
from tests.callbacks.driver import MiniTrainer, log_lines
from tests.contracts.callback import contract_of
from tests.helpers import CallbackSpy

TestEnableCallbackIf = contract_of(lambda: EnableCallbackIf(CallbackSpy(), lambda callback: True))
TestPeriodicCallback = contract_of(lambda: PeriodicCallback(CallbackSpy(), every_k_steps=2))
TestPeriodicCallbackWithARunOfItsOwn = contract_of(
    lambda: PeriodicCallback(GraphProfiler(dump_metadata=True), every_k_steps=2)
)
TestPeriodicRunHooks = contract_of(lambda: PeriodicRunHooks(CallbackSpy(), 2))
TestPeriodicTrigger = contract_of(lambda: PeriodicTrigger(CallbackSpy(), every_k_epochs=1))


class When(Callback):
    """Notes the step at which it is called."""

    def __init__(self):
        self.triggers, self.steps, self.runs, self.after_runs, self.epochs = [], [], [], [], []

    def _trigger(self):
        self.triggers.append(self.global_step)

    def _trigger_step(self):
        self.steps.append(self.global_step)

    def _before_run(self, ctx):
        self.runs.append(self.global_step)

    def _after_run(self, ctx, run_values):
        self.after_runs.append(self.global_step)

    def _before_epoch(self):
        self.epochs.append(self.epoch_num)


def run(make, **options):
    when = When()
    settings = {"steps_per_epoch": 3, "max_epoch": 4, **options}
    MiniTrainer([make(when)], **settings).train()
    return when


# step   1  2  3 | 4  5  6 | 7  8  9 | 10 11 12 |
@pytest.mark.parametrize(
    "when, triggers",
    [
        ({"every_k_steps": 2}, [2, 4, 6, 8, 10, 12]),
        ({"every_k_steps": 5}, [5, 10]),
        ({"every_k_epochs": 1}, [3, 6, 9, 12]),
        ({"every_k_epochs": 2}, [6, 12]),
        ({"every_k_steps": 4, "every_k_epochs": 3}, [4, 8, 9, 12]),
        ({"every_k_epochs": 3, "before_train": True}, [0, 9]),
        ({"before_train": True}, [0]),
    ],
)
def test_it_triggers_periodically(when, triggers):
    assert run(lambda callback: PeriodicTrigger(callback, **when)).triggers == triggers


def test_periods_continue_in_a_resumed_run():
    when = run(
        lambda callback: PeriodicTrigger(callback, every_k_steps=5),
        starting_epoch=3,
        init_step=6,
    )
    assert when.triggers == [10]


def test_it_forwards_all_else():
    when = run(lambda callback: PeriodicTrigger(callback, every_k_epochs=9))
    assert when.steps == when.runs == when.after_runs == list(range(1, 13))
    assert when.epochs == [1, 2, 3, 4]


def test_its_name_says_what_is_inside():
    assert str(PeriodicTrigger(CallbackSpy(), every_k_steps=1)) == "PeriodicTrigger-CallbackSpy"


@pytest.mark.parametrize("inside", [lambda: ProcessTensors("x", print), EstimatedTimeLeft])
def test_a_callback_without_a_trigger_is_a_warning(inside, capsys):
    PeriodicTrigger(ProxyCallback(inside()), every_k_epochs=2)
    assert "what is inside has no _trigger, and what it does in runs" in log_lines(capsys)[0]
    PeriodicTrigger(CallbackFactory(trigger=print), every_k_epochs=2)
    assert log_lines(capsys) == []


@pytest.mark.parametrize("kind", [PeriodicTrigger, PeriodicCallback])
def test_some_period_is_needed(kind):
    with pytest.raises(ValueError, match="needs every_k_steps or every_k_epochs"):
        kind(CallbackSpy())


def test_run_hooks_are_called_periodically_and_all_else_always():
    when = run(lambda callback: PeriodicRunHooks(callback, 4))
    assert when.runs == when.after_runs == [4, 8, 12]
    assert when.steps == list(range(1, 13))
    assert when.triggers == [3, 6, 9, 12]


def test_a_periodic_callback_is_off_in_between():
    when = run(lambda callback: PeriodicCallback(callback, every_k_epochs=2), max_epoch=3)
    assert when.steps == when.runs == when.after_runs == [4, 5, 6, 9]  # 9: the very last step
    assert when.epochs == [2]
    assert when.triggers == [6, 9]


def test_a_condition_is_asked_before_a_run_and_holds_until_after_it():
    answers = {"on": True}

    class Switching(When):
        def _before_run(self, ctx):
            super()._before_run(ctx)
            answers["on"] = False

    switching = Switching()
    MiniTrainer([EnableCallbackIf(switching, lambda callback: answers["on"])]).train()
    assert switching.runs == switching.after_runs == [1]
    assert switching.steps == switching.triggers == []


def test_the_condition_gets_the_callback():
    when = run(lambda inside: EnableCallbackIf(inside, lambda callback: callback.local_step == 1))
    assert when.steps == [2, 5, 8, 11]


@pytest.mark.parametrize("on, triggers", [(True, [1, 2]), (False, [])])
def test_a_trigger_that_comes_from_outside_asks_the_condition(on, triggers):
    def make(inside):
        return PeriodicTrigger(EnableCallbackIf(inside, lambda callback: on), every_k_steps=1)

    assert run(make, steps_per_epoch=2, max_epoch=1).triggers == triggers
