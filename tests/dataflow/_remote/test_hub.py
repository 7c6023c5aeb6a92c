"""The sockets of one end of a remote flow, where something fails on the way."""

import gc
import threading

import pytest

from tensorpack.dataflow._remote.guard import load_key, make_remote_key
from tensorpack.dataflow._remote.hub import Hub

zmq = pytest.importorskip("zmq")
pytest.importorskip("zmq.auth.thread")


@pytest.mark.skipif(not zmq.has("curve"), reason="this ZeroMQ cannot encrypt")
def test_an_end_whose_guard_cannot_start_leaves_nothing_open(tmp_path, monkeypatch):
    contexts, errors = [], []

    class Noted(zmq.Context):
        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            contexts.append(self)

    def no_more_threads(self):
        raise RuntimeError("can't start new thread")

    def make_hub():
        monkeypatch.setattr(threading.Thread, "start", no_more_threads)
        try:
            Hub(load_key(path), bind=True)
        except RuntimeError as error:
            errors.append(str(error))

    path = str(tmp_path / "key")
    make_remote_key(path)
    monkeypatch.setattr(zmq, "Context", Noted)
    thread = threading.Thread(target=make_hub, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    gc.collect()  # what is left of the guard must have nothing to say
    assert errors == ["can't start new thread"]
    assert [each.closed for each in contexts] == [True]
