from tensorpack.callbacks import Callback, PeriodicCallback, PeriodicTrigger, ThroughputTracker
from tests.callbacks.driver import MiniTrainer
from tests.clock import FakeClock
from tests.contracts.callback import contract_of

NAME = "Throughput (samples/sec)"


TestThroughputTracker = contract_of(lambda: ThroughputTracker(32))


class Costs(Callback):
    """A step takes a second in the first epoch, two in the next; the end of an epoch a hundred."""

    def __init__(self, clock):
        self._clock = clock

    def _trigger_step(self):
        self._clock.advance(self.epoch_num)

    def _trigger_epoch(self):
        self._clock.advance(100)


def run(make, steps_per_epoch=3, max_epoch=1):
    """Trains with what is made of a clock."""
    clock = FakeClock()
    callbacks = [Costs(clock), make(clock)]
    return MiniTrainer(callbacks, steps_per_epoch=steps_per_epoch, max_epoch=max_epoch).train()


def put(trainer, name=NAME):
    return [(each.global_step, each.value) for each in trainer.monitors.get_history(name)]


def test_steps_are_counted_without_a_number_of_samples():
    trainer = run(lambda clock: ThroughputTracker(clock=clock))
    assert put(trainer, "Throughput (steps/sec)") == [(3, 1.0)]


def test_it_may_be_triggered_in_the_middle_of_an_epoch():
    trainer = run(lambda clock: PeriodicTrigger(ThroughputTracker(10, clock), 2), 4)
    assert put(trainer) == [(2, 10.0), (4, 10.0)]


def test_before_the_first_step_and_outside_of_the_epoch_whose_begin_it_saw_it_puts_nothing():
    tracker = ThroughputTracker(10)
    trainer = MiniTrainer([tracker])
    with trainer.session():
        trainer.callbacks.before_train()
        tracker.trigger()
        trainer.run_epoch(1)
        trainer.epoch_num = 2  # with a proxy that is on at the end of the second only
        tracker.trigger()
    assert [step for step, _ in put(trainer)] == [2]


def test_an_epoch_whose_begin_it_has_not_seen_has_no_number():
    # in the last step of the third epoch, the tracker is on as well
    trainer = run(lambda clock: PeriodicCallback(ThroughputTracker(32, clock), None, 2), 3, 3)
    assert put(trainer) == [(6, 16.0)]
