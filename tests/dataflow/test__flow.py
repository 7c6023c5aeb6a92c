"""What a flow holds for one process is not used by another one."""

import os

from tensorpack.dataflow._flow import ProcessLocal


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
