"""The loop of a run, drawn as a timeline, and the waits of callbacks for data, which its end ends.

test_stopping.py has whole runs.
"""

import pytest

from tensorpack.callbacks import Callback, Callbacks
from tensorpack.dataflow import DataFlowTerminated
from tensorpack.tfutils.callback import StopTraining
from tensorpack.train.resume import Position
from tensorpack.train.run import TrainLoop
from tensorpack.utils.stopping import Finished, StopRequested
from tests.helpers import CallbackSpy


class Run(TrainLoop):
    """A loop whose steps and callbacks write on one tape."""

    def __init__(self, steps_per_epoch, starting_epoch, max_epoch, global_step=0):
        super().__init__()
        self.tape = []
        self.steps_per_epoch, self.max_epoch = steps_per_epoch, max_epoch
        self.starting_epoch = starting_epoch
        self.global_step = self.steps_taken = global_step
        self._callbacks = Callbacks([CallbackSpy(self.tape, "a"), CallbackSpy(self.tape, "b")])
        self._callbacks.trainer = self.hooked_sess = self

    def check_stop(self):
        assert not self.in_step
        super().check_stop()

    def should_stop(self):
        return False

    def run_step(self):
        assert self.in_step
        self.tape.append((self.epoch_num, self.local_step, self.global_step))

    def run(self, position=None):
        self._run_epochs(position)
        return self.tape


def test_the_time_that_is_left_is_that_of_the_whole_epochs_before(capsys):
    Run(1, 1, 2).run()
    Run(2, 4, 6).run(Position(4, 1, None, []))  # the first epoch is only a part of one
    Run(1, 99998, 99999).run()
    said = [line.split(" ", 3)[3] for line in capsys.readouterr().out.splitlines()]
    starts = [line.split("Start ")[1] for line in said if "Start" in line]
    assert starts[0] == "Epoch 1 ..."
    assert starts[1].startswith("Epoch 2 ... Left: 1 of 2 epochs, about 0.0")
    assert starts[2:4] == ["Epoch 4 ...", "Epoch 5 ..."]
    assert starts[4].startswith("Epoch 6 ... Left: 1 of 6 epochs, about 0.0")
    assert starts[5:] == ["Epoch 99998 ...", "Epoch 99999 ..."]


def test_counts():
    #               epoch 3        epoch 4
    # local_step    0  1           0  1
    # global_step   11 12          13 14
    run = Run(2, 3, 4, global_step=10)
    assert (run.local_step, run.begun) == (-1, False)
    steps = [each for each in run.run() if isinstance(each, tuple)]
    assert steps == [(3, 0, 11), (3, 1, 12), (4, 0, 13), (4, 1, 14)]
    assert (run.steps_done, run.steps_taken, run.begun) == (2, 14, True)


@pytest.mark.parametrize("steps_done, ends_at", [(0, []), (1, [(1, 1, 1)])])
def test_what_ends_a_run_ends_it_after_the_epoch_that_is_continued(steps_done, ends_at):
    class Over(Callback):
        def check_over(self):
            raise StopTraining

    run = Run(2, 1, 2)
    run._callbacks.cbs.append(Over())
    with pytest.raises(StopTraining):
        run.run(Position(1, steps_done, None, []))
    assert [each for each in run.tape if isinstance(each, tuple)] == ends_at
    assert run.epoch_num == len(ends_at)
    assert ("b.trigger_epoch" in run.tape) == bool(ends_at)


class Guard:
    """Calls a function; no signal comes."""

    def interruptible(self, function):
        return function()


class Waits(TrainLoop):
    """A run whose callbacks wait for data."""

    def __init__(self):
        super().__init__()
        self._guard = Guard()


def test_only_the_wait_that_is_under_way_is_ended_and_later_ones_do_not_begin():
    run, ended = Waits(), []
    assert run.interruptible(lambda: 7, lambda: ended.append("first")) == 7

    def wait():
        run.stop_token.request(Finished())
        run._unblock()
        return list(ended)

    assert run.interruptible(wait, lambda: ended.append("second")) == ["second"]
    with pytest.raises(StopRequested):
        run.interruptible(lambda: ended.append("begun"), lambda: ended.append("third"))
    run._unblock()
    assert ended == ["second"]


def test_a_wait_that_begins_while_the_run_is_unblocked_is_ended_or_does_not_begin():
    """In each order of what the two threads do."""

    class Pausing(Waits):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_end_wait" and value is not None:
                self._unblock()

    run, ended = Pausing(), []
    with pytest.raises(StopRequested):
        run.interruptible(lambda: ended.append("begun"), lambda: ended.append("ended"))
    assert ended == ["ended"]


@pytest.mark.parametrize("error, is_said", [(DataFlowTerminated(), False), (OSError("!"), True)])
def test_an_error_of_a_wait_counts_unless_the_run_is_to_end(error, is_said, capsys):
    run = Waits()

    def fail():
        raise error

    with pytest.raises(type(error)):
        run.interruptible(fail, lambda: None)
    run.stop_token.request(Finished())
    with pytest.raises(StopRequested) as caught:
        run.interruptible(fail, lambda: None)
    assert caught.value.__cause__ is error
    said = "While the run was ending, the data failed: OSError('!'"
    assert (said in capsys.readouterr().out) == is_said
