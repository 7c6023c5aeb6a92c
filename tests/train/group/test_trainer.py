"""What a run does later: it happens in time, or never once the run has ended."""

import threading

from tensorpack.train.group.trainer import Timers


def test_what_is_due_happens_until_the_timers_are_closed():
    timers, happened, said = Timers(), threading.Event(), []
    threads = threading.active_count()
    timers.after(0.01, happened.set)
    assert happened.wait(10)
    timers.after(0.2, said.append, "late")
    timers.close()
    timers.after(0, said.append, "later")
    assert threading.active_count() == threads
    assert said == []
