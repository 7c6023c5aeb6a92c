"""The budget: who waits for whom, and that closing wakes both."""

import threading
import time

import pytest
from budget import TransitionBudget


def start(function):
    """Runs a function in a thread; returns the thread and the list that its result goes to."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    return thread, results


def test_five_grants_may_be_open_and_a_sixth_waits_for_room():
    budget = TransitionBudget(grant=4)
    assert all(budget.grant() for _ in range(5))
    thread, granted = start(budget.grant)
    budget.spend(3)
    time.sleep(0.05)
    assert granted == []
    budget.spend(1)
    thread.join(5)
    assert granted == [True]


def test_playing_waits_for_a_grant():
    budget = TransitionBudget(grant=1)
    thread, waited = start(budget.wait)
    time.sleep(0.05)
    assert waited == []
    budget.grant()
    thread.join(5)
    assert waited == [True]


def test_what_was_played_in_advance_is_paid_for_by_later_grants():
    # 8 environments, 4 transitions a batch: one tick for every two grants
    budget = TransitionBudget(grant=4)
    ticks = 0
    for _ in range(10):
        budget.grant()
        while budget.open > 0:
            assert budget.wait()
            budget.spend(8)
            ticks += 1
    assert ticks == 5


@pytest.mark.timed
@pytest.mark.parametrize("side", ["grant", "wait"])
def test_closing_wakes_who_waits(side):
    budget = TransitionBudget(grant=1, max_grants=1)
    if side == "grant":
        budget.grant()
    thread, results = start(getattr(budget, side))
    time.sleep(0.05)
    begin = time.monotonic()
    budget.close()
    thread.join(5)
    assert results == [False]
    assert time.monotonic() - begin < 0.5
    assert not budget.grant() and not budget.wait()


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="grant=0"):
        TransitionBudget(grant=0)


def test_what_is_open_can_be_read_and_set():
    budget = TransitionBudget(grant=4)
    budget.grant()
    budget.spend(7)
    assert budget.open == -3
    other = TransitionBudget(grant=4)
    thread, waited = start(other.wait)
    other.open = 2
    thread.join(5)
    assert waited == [True]
