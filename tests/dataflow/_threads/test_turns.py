"""One thread at a time has its turn, until there are no more."""

from tensorpack.dataflow._threads.turns import Turns
from tests.dataflow._threads.waiting import SHORT, call_in_thread
from tests.dataflow.helpers import LONG


def test_turns_go_round_until_the_end():
    turns = Turns()
    assert turns.wait()
    waiting = [call_in_thread(turns.wait) for _ in range(3)]
    assert not any(done.wait(SHORT) for done, _ in waiting)
    turns.pass_on()
    while not any(done.wait(0.01) for done, _ in waiting):
        pass
    assert sum(done.is_set() for done, _ in waiting) == 1
    turns.end()
    turns.pass_on()
    assert all(done.wait(LONG) for done, _ in waiting)
    assert sorted(result for _, result in waiting) == [[False], [False], [True]]
    assert not turns.wait()
