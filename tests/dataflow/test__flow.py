"""What a flow holds for one process is not used by another one."""

import os
import pickle
from collections import deque

from tensorpack.dataflow._flow import ProcessLocal


def test_the_value_is_made_once():
    held = ProcessLocal(deque)
    assert held.current() is None and held.take() is None
    value = held.get([1])
    assert value == deque([1])
    assert held.get() is value and held.current() is value
    assert held.take() is value and held.current() is None
    assert held.get([2]) == deque([2])


def test_an_unpickled_copy_makes_its_own():
    held = ProcessLocal(deque)
    held.get([1])
    copy = pickle.loads(pickle.dumps(held))
    assert copy.current() is None and copy.get() == deque() and held.current() == deque([1])


def test_a_forked_copy_makes_its_own_and_keeps_that_of_the_parent_alive(monkeypatch):
    class Value:
        def __del__(self):
            deleted.append(self)

    deleted = []
    held = ProcessLocal(Value)
    value = id(held.get())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert held.current() is None and held.take() is None
    assert id(held.get()) != value and deleted == []
