"""The waits of callbacks for data, which the end of a run ends; test_stopping.py has whole runs."""

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.train.loop import TrainLoop
from tensorpack.train.shutdown import Shutdown
from tensorpack.utils.stopping import Finished, StopRequested, StopToken


def made():
    """A token, and what ends the run when it says so."""
    token = StopToken()
    return token, Shutdown(token, TrainLoop())


def test_only_the_wait_that_is_under_way_is_ended_and_later_ones_do_not_begin():
    token, shutdown = made()
    ended = []
    assert shutdown.interruptible(lambda: 7, lambda: ended.append("first")) == 7

    def wait():
        token.request(Finished())
        shutdown.unblock()
        return list(ended)

    assert shutdown.interruptible(wait, lambda: ended.append("second")) == ["second"]
    with pytest.raises(StopRequested):
        shutdown.interruptible(lambda: ended.append("begun"), lambda: ended.append("third"))
    shutdown.unblock()
    assert ended == ["second"]


@pytest.mark.parametrize("error, is_said", [(DataFlowTerminated(), False), (OSError("!"), True)])
def test_an_error_of_a_wait_counts_unless_the_run_is_to_end(error, is_said, capsys):
    token, shutdown = made()

    def fail():
        raise error

    with pytest.raises(type(error)):
        shutdown.interruptible(fail, lambda: None)
    token.request(Finished())
    with pytest.raises(StopRequested) as caught:
        shutdown.interruptible(fail, lambda: None)
    assert caught.value.__cause__ is error
    said = "While the run was ending, the data failed: OSError('!'"
    assert (said in capsys.readouterr().out) == is_said
