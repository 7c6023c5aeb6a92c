import pytest

from tensorpack.callbacks import Callback, Callbacks, PeriodicTrigger, ScalarPrinter
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.stopping import Finished, StopRequested
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.clock import FakeClock
from tests.helpers import HOOKS, CallbackSpy, LargeState


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
    assert tape[::2] == [hook.replace("b.", "a.") for hook in tape[1::2]]
    assert [hook[2:] for hook in tape[::2]] == list(HOOKS)


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


def report(capsys, *seconds):
    clock = FakeClock()
    trainer = MiniTrainer()
    slow = [when(trigger=lambda _, time=time: clock.advance(time)) for time in seconds]
    group = Callbacks(slow, clock=clock)
    group.setup_graph(trainer)
    group.trigger_epoch()
    return log_lines(capsys)


def test_a_slow_epoch_is_reported_and_a_quick_one_is_not(capsys):
    assert report(capsys, 0.5, 1.25, 2.0) == [
        "Callbacks took 3.750 sec in total. Callback: 2.000sec; Callback: 1.250sec"
    ]
    assert report(capsys, 0.9, 2.0) == []


def test_those_that_ask_for_it_are_set_up_last_in_the_order_of_the_list():
    class Last(CallbackSpy):
        sets_up_last = True

    tape = []
    script, registered = Last(tape, "script"), Last(tape, "registered")
    members = [script, CallbackSpy(tape, "a"), registered]
    Callbacks(members, leading=[registered]).setup_graph(MiniTrainer())
    assert tape == ["a.setup_graph", "script.setup_graph", "registered.setup_graph"]


def test_a_round_that_is_finished_elsewhere_still_names_all_that_had_their_turn():
    rounds = []
    noting = when(
        trigger_epoch=lambda cb: rounds.append(cb.trainer.callbacks.unfinished_hook(True))
    )
    trainer = MiniTrainer([CallbackSpy(), noting])
    done = ["MaintainStepCounter", "CallbackSpy"]
    with trainer.session():
        trainer.callbacks.resume_hook("trigger_epoch", done)
    assert rounds == [("trigger_epoch", [*done, "Callback"])]


class Keeping(Callback):
    def __init__(self, value=None):
        self.value = value

    def state_dict(self):
        return {} if self.value is None else {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def test_states_go_by_name_and_those_without_are_left_out():
    group = Callbacks([Keeping(1), Callback(), Keeping(), Keeping(3)])
    states = group.state_dict()
    assert states == {"Keeping": {"value": 1}, "Keeping#3": {"value": 3}}
    other = Callbacks([Keeping(), Callback(), Keeping(), Keeping()])
    other.load_states(states, group.names(), strictly=True)
    assert [cb.value for cb in other.cbs if isinstance(cb, Keeping)] == [1, None, 3]
    other = Callbacks([Callback(), Keeping()])  # those without a state may come and go
    other.load_states({"Keeping": {"value": 4}}, ["Other", "Keeping"], strictly=True)
    assert other.cbs[1].value == 4


def test_the_callbacks_that_lead_have_the_names_and_states_that_they_had():
    tape, script, registered = [], Keeping(1), Keeping(2)
    group = Callbacks([script, registered], leading=[registered])
    group.trainer = MiniTrainer()
    assert group.cbs == [registered, script]
    assert group.state_dict() == {"Keeping": {"value": 1}, "Keeping#2": {"value": 2}}
    group.load_states({"Keeping": {"value": 3}, "Keeping#2": {"value": 4}}, group.names(), True)
    assert (script.value, registered.value) == (3, 4)
    for cb in group.cbs:
        cb._trigger = lambda cb=cb: tape.append(cb.value)
    group.resume_hook("trigger_epoch", ["Keeping"])  # left in the order of the list
    assert tape == [4]


def test_callbacks_that_came_or_went_are_warned_of_or_refused(capsys):
    names, said = ["Keeping", "Gone"], "1 Gone when the state was saved, and 0 now"
    group = Callbacks([Keeping()])
    states = {name: {"value": 1} for name in names}
    with pytest.raises(ValueError, match=said):
        group.load_states(states, names, strictly=True)
    group.load_states(states, names, strictly=False)
    assert group.cbs[0].value == 1
    assert said in log_lines(capsys)[0]


class KeepingOf(Keeping):
    def __init__(self, of, value=None):
        super().__init__(value)
        self.state_of = of

    def state_dict(self):
        return {"of": self.state_of, **super().state_dict()}


def test_a_state_of_something_else_is_refused_strictly_and_else_not_used(capsys):
    group = Callbacks([KeepingOf("a", 1), KeepingOf("b", 2)])
    other = Callbacks([KeepingOf("c"), KeepingOf("b")])
    said = "KeepingOf is of c, but its state of a"
    with pytest.raises(ValueError, match=said):
        other.load_states(group.state_dict(), group.names(), strictly=True)
    assert [cb.value for cb in other.cbs] == [None, None]
    other.load_states(group.state_dict(), group.names(), strictly=False)
    assert [cb.value for cb in other.cbs] == [None, 2]
    assert [line for line in log_lines(capsys) if said in line]
    plain = Callbacks([Keeping()])  # of nothing, so that its state may have any key
    plain.load_states({"Keeping": {"of": "a", "value": 3}}, ["Keeping"], strictly=True)
    assert plain.cbs[0].value == 3


def test_a_state_that_does_not_suit_names_its_callback():
    group = Callbacks([Callback(), Keeping()])
    with pytest.raises(ValueError, match="Keeping cannot use the state that it had: KeyError"):
        group.load_states({"Keeping": {"other": 1}}, group.names(), strictly=False)


def test_if_a_state_cannot_be_had_the_segments_of_the_others_are_let_go():
    class Broken(Callback):
        def state_dict(self):
            raise LookupError("no state")

    large = LargeState()
    with pytest.raises(LookupError, match="no state"):
        Callbacks([large, Broken()]).state_dict()
    assert large.told == ("done", None)


@pytest.mark.parametrize(
    "arrange",
    [
        lambda one: {"callbacks": [one, one]},
        lambda one: {"callbacks": [one, PeriodicTrigger(one, every_k_steps=2)]},
        lambda one: {"callbacks": [PeriodicTrigger(one, every_k_epochs=k) for k in (1, 2)]},
        lambda one: {"callbacks": [one], "monitors": [one]},
    ],
)
def test_one_object_is_in_a_run_once(arrange):
    with pytest.raises(ValueError, match="The callback ScalarPrinter is in this run twice"):
        MiniTrainer(**arrange(ScalarPrinter())).train()


def test_one_object_may_be_in_two_runs_and_two_alike_in_one():
    one = ScalarPrinter()
    for _ in range(2):
        with tf.Graph().as_default():
            MiniTrainer([one, ScalarPrinter()]).train()
