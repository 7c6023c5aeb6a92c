import pytest

from tensorpack.callbacks import Callback, PeriodicCallback, PeriodicTrigger, ThroughputTracker
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer
from tests.callbacks.resuming import Killer, ResumableTrainer
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


def test_before_the_first_step_there_is_nothing_to_tell():
    tracker = ThroughputTracker(10)
    trainer = MiniTrainer([tracker])
    with trainer.session():
        trainer.callbacks.before_train()
        tracker.trigger()
    assert put(trainer) == []


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("save", range(8))
def test_an_epoch_that_is_continued_counts_as_a_whole(save, first):
    """Saved and killed in any turn: after a step (3 an epoch) or at the end of an epoch."""

    def run(killer, snapshot=None):
        clock = FakeClock(1000.0 if snapshot else 0.0)
        tracker = ThroughputTracker(32, clock)
        others = [killer, tracker] if first else [tracker, killer]
        with tf.Graph().as_default():
            trainer = ResumableTrainer([Costs(clock), *others], steps_per_epoch=3, max_epoch=2)
            trainer.go(snapshot)
        return trainer

    killer = Killer(save, save)
    run(killer)
    assert put(run(Killer(), killer.snapshot)) == [(3, 32.0), (6, 16.0)]


def test_an_epoch_whose_begin_it_has_not_seen_has_no_number():
    # in the last step of the third epoch, the tracker is on as well
    trainer = run(lambda clock: PeriodicCallback(ThroughputTracker(32, clock), None, 2), 3, 3)
    assert put(trainer) == [(6, 16.0)]


def test_the_time_between_epochs_does_not_count_where_it_is_rarely_on():
    # on in `before_epoch` of the first, and in `trigger_epoch` of the second
    trainer = run(lambda clock: PeriodicCallback(ThroughputTracker(32, clock), 6), 3, 2)
    assert put(trainer) == []
