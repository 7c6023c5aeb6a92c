"""The counters of a run, drawn as a timeline."""

import pytest

from tensorpack.train.loop import TrainLoop


def test_counts():
    #               epoch 3        epoch 4
    # local_step    0  1           0  1
    # global_step   11 12          13 14
    loop, seen = TrainLoop(), []
    loop.config(steps_per_epoch=2, starting_epoch=3, max_epoch=4)
    loop.global_step = 10
    assert (loop.epoch_num, loop.local_step) == (2, -1)
    for epoch in loop.epochs():
        loop.begin_epoch(epoch)
        assert loop.local_step == -1
        for _ in range(loop.steps_per_epoch):
            loop.begin_step()
            seen.append((loop.epoch_num, loop.local_step, loop.global_step))
    assert seen == [(3, 0, 11), (3, 1, 12), (4, 0, 13), (4, 1, 14)]


def test_an_epoch_that_is_continued():
    loop = TrainLoop()
    loop.config(steps_per_epoch=3, starting_epoch=2, max_epoch=2)
    loop.go_on_from(4)
    loop.begin_epoch(2, steps_done=1)
    assert (loop.local_step, loop.steps_done, loop.steps_taken) == (0, 1, 4)
    loop.begin_step()
    assert (loop.local_step, loop.steps_done, loop.global_step, loop.steps_taken) == (1, 1, 5, 4)
    loop.end_step()
    assert (loop.local_step, loop.steps_done, loop.steps_taken) == (1, 2, 5)


def test_nothing_to_do_if_all_epochs_are_done():
    loop = TrainLoop()
    loop.config(steps_per_epoch=2, starting_epoch=5, max_epoch=4)
    assert list(loop.epochs()) == []


@pytest.mark.parametrize("plan", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_bad_plans(plan):
    with pytest.raises(ValueError, match="at least 1|counted from 1"):
        TrainLoop().config(*plan)
