"""What a worker of a group does later: it happens in time, or never once the run has ended."""

import threading

from tensorpack.train.group.trainer import GroupTrainer


def test_what_is_due_happens_until_the_run_has_ended():
    trainer, happened, said = GroupTrainer(), threading.Event(), []
    trainer._form_group(0)
    trainer._leave = lambda: said.append("left")
    threads = threading.active_count()
    trainer._after(0.01, happened.set)
    assert happened.wait(10)
    trainer._after(0.2, said.append, "late")
    trainer._end_group()
    trainer._after(0, said.append, "later")
    for each in trainer._waiting:
        each.join(10)
    assert threading.active_count() == threads
    assert said == ["left"]
