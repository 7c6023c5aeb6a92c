"""A team works for whoever gives it orders, and nobody waits for a worker that is gone."""

import errno
import gc
import multiprocessing
import os
import re
import signal
import threading
import time

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._processes import team as team_module
from tensorpack.dataflow._processes.channel import Limits
from tensorpack.dataflow._processes.team import Failure, Team
from tensorpack.utils import logger
from tensorpack.utils.packed import pack
from tensorpack.utils.worker import state_of
from tensorpack.utils.worker_errors import WorkerDied, WorkerFailed
from tests.dataflow import process_functions as functions
from tests.dataflow.helpers import (
    LONG,
    SOON,
    gone,
    in_thread,
    named_memory,
    open_files,
    wait_until,
)

LIMITS = Limits(4, 2, 1 << 24)


@pytest.fixture
def make():
    """Makes teams; closes them at the end."""
    teams = []

    def make(target, *args, count=2, inputs=None, limits=LIMITS):
        team = Team(target, args, ("function", args), count, limits, "fork", "Team", inputs)
        teams.append(team)
        return team

    yield make
    for team in teams:
        team.close()


def answering(make, function, **options):
    return make(functions.answer_with, function, inputs=LIMITS, **options)


def counting(make, numbers=100, **options):
    return make(functions.count_up, numbers, **options)


def order(team, text):
    team.order([{"text": text}] * len(team))


def pids(team):
    return [lane.worker.pid for lane in team._lanes]


class TestOrders:
    def test_each_worker_sends_what_it_makes_in_order(self, make):
        team = counting(make)
        order(team, "a")
        for i in range(100):
            for index in 1, 0:
                assert team.take_from(index) == (i, ["a", index, i])

    def test_whatever_comes_first_is_taken(self, make):
        team = counting(make)
        order(team, "a")
        found = [team.take()[1] for _ in range(200)]
        assert sorted(found) == [["a", index, i] for index in range(2) for i in range(100)]
        assert [i for _, index, i in found if index == 0] == list(range(100))
        assert team.take_if() is None

    @pytest.mark.parametrize("taken", [0, 1, 7, 100])
    def test_what_was_made_for_an_older_order_is_forgotten(self, make, taken):
        team = counting(make)
        for text in "abc":
            order(team, text)
            for i in range(taken):
                assert team.take_from(0) == (i, [text, 0, i])
        order(team, "last")
        assert sorted(team.take()[1] for _ in range(200)) == [
            ["last", index, i] for index in range(2) for i in range(100)
        ]

    def test_orders_may_be_large(self, make):
        team = counting(make, limits=Limits(1, 1, 1 << 24))
        for letter in "ab":
            order(team, letter * 1000000)
            assert team.take_from(1)[1] == [letter * 1000000, 1, 0]

    def test_there_are_as_many_workers_as_asked_for(self, make):
        assert len(counting(make, count=3)) == len(multiprocessing.active_children()) == 3


class TestAnswers:
    def test_each_input_has_an_answer_of_its_tag(self, make):
        team = answering(make, functions.not_of_three)
        tags = {}
        answers = {}
        for number in range(50):
            tag = team.send(pack([number]))
            while tag is None:
                answers.update([team.take()])
                tag = team.send(pack([number]))
            tags[tag] = number
        while len(answers) < 50:
            answers.update([team.take()])
        assert {tags[tag]: answer for tag, answer in answers.items()} == {
            number: None if number % 3 == 0 else [10 * number] for number in range(50)
        }

    def test_work_goes_to_whoever_has_room(self, make):
        team = answering(make, functions.At(0, functions.stop))
        assert team.send(pack([0])) is not None
        assert wait_until_stopped(team, 0)
        sent = 0
        while sent < 100:  # far more than there is room for at the one that is stopped
            if team.send(pack([1])) is None:
                assert team.take_if(or_room=True) in (None, *((tag, [1]) for tag in range(200)))
            else:
                sent += 1
        assert team._on_the_way[0] <= 1 + LIMITS.slots * LIMITS.items

    def test_a_failure_comes_as_an_answer_and_the_worker_goes_on(self, make):
        team = answering(make, functions.At(1, functions.fail), count=1)
        for number in range(3):
            team.send(pack([number]))
        answers = [team.take()[1] for _ in range(3)]
        assert answers[::2] == [[0], [2]]
        assert isinstance(answers[1], Failure)
        assert repr(answers[1].error) == repr(LookupError("no such datapoint"))
        assert "in fail" in str(answers[1].error.__cause__)

    def test_a_worker_that_keeps_its_inputs_gets_more(self, make):
        team = answering(make, functions.Keeps(), count=1)
        sizes = [functions.whole_array([i]) for i in range(40)]
        for number, obj in enumerate(sizes):
            while team.send(pack(obj)) is None:
                assert team.take_if(or_room=True) is None
            assert team.take()[1] == [number + 1]

    def test_so_it_does_when_the_bytes_are_few(self, make):
        team = make(functions.answer_with, functions.Keeps(), count=1, inputs=Limits(4, 1, 30000))
        for number in range(12):
            while team.send(pack(functions.whole_array([number]))) is None:
                assert team.take_if(or_room=True) is None
            assert team.take()[1] == [number + 1]

    def test_room_is_heard_of_without_a_result(self, make):
        """An input's memory comes back a little after its result."""
        team = make(functions.answer_with, functions.nothing, count=1, inputs=Limits(1, 1, 1 << 20))
        for number in range(200):
            while team.send(pack(functions.whole_array([number]))) is None:
                assert team.take_if(or_room=True) is None
            assert team.take() == (number, None)


def wait_until_stopped(team, index):
    return wait_until(lambda: state_of(pids(team)[index]).startswith("stopped"), LONG)


def wait_for_records(team, index, count):
    """Waits until so many are there to be taken."""
    receiver = team._lanes[index].receiver

    def there():
        receiver.receive()
        return len(receiver._pending) >= count

    assert wait_until(there)


class TestEnds:
    @pytest.mark.timed
    @pytest.mark.parametrize("take", ["take", "take_if", "take_from"])
    def test_a_worker_that_is_killed_is_named_at_once(self, make, take):
        team = make(functions.hang_at_order)
        order(team, "a")
        pid = pids(team)[1]
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match=rf"'Team 1' \(pid {pid}\) was killed by SIGKILL"):
            while True:
                team.take_from(1) if take == "take_from" else getattr(team, take)()
        assert time.monotonic() - begin < SOON
        assert team.closed
        assert all(gone(pid) for pid in pids(team))

    def test_what_it_had_sent_comes_first(self, make):
        team = counting(make, 5)
        order(team, "a")
        assert team.take_from(0)[0] == 0
        wait_for_records(team, 0, 4)
        wait_for_records(team, 1, 6)
        for pid in pids(team):
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: all(gone(pid) for pid in pids(team)))
        for i in range(1, 5):
            assert team.take_from(0) == (i, ["a", 0, i])
        for i in range(5):
            assert team.take_from(1) == (i, ["a", 1, i])
        with pytest.raises(WorkerDied, match="SIGKILL"):
            team.take_from(0)

    def test_what_it_had_sent_comes_first_from_any(self, make):
        team = counting(make, 5, count=1)
        order(team, "a")
        assert team.take()[0] == 0
        wait_for_records(team, 0, 4)
        os.kill(pids(team)[0], signal.SIGKILL)
        assert [team.take()[0] for _ in range(4)] == [1, 2, 3, 4]
        with pytest.raises(WorkerDied, match="SIGKILL"):
            team.take()

    def test_an_exception_of_a_worker_is_raised(self, make):
        team = make(functions.fail_at_once)
        with pytest.raises(LookupError, match="no such datapoint") as caught:
            team.take()
        assert "in fail" in str(caught.value.__cause__)

    def test_one_that_dies_is_told_of_while_another_is_waited_for(self, make):
        team = make(functions.hang_at_order)
        order(team, "a")
        os.kill(pids(team)[1], signal.SIGKILL)
        with pytest.raises(WorkerDied, match="'Team 1'.*SIGKILL"):
            team.take_from(0)

    def test_an_exception_waits_for_its_place(self, make):
        team = make(functions.first_late_then_fail)
        order(team, "a")
        for i in range(3):
            assert team.take_from(0) == (i, i)
        with pytest.raises(LookupError, match="no such datapoint"):
            team.take_from(1)

    @pytest.mark.parametrize("large", [False, True])
    def test_an_order_for_a_worker_that_is_gone(self, make, large):
        team = counting(make, 5)
        os.kill(pids(team)[1], signal.SIGKILL)
        assert wait_until(lambda: gone(pids(team)[1]))
        with pytest.raises(WorkerDied, match="'Team 1'.*SIGKILL"):
            order(team, "a" * (1000000 if large else 1))
            team.take_from(1)
        assert team.closed

    def test_an_input_for_a_worker_that_is_gone(self, make):
        team = answering(make, functions.same, count=1)
        os.kill(pids(team)[0], signal.SIGKILL)
        assert wait_until(lambda: gone(pids(team)[0]))
        with pytest.raises(WorkerDied, match="SIGKILL"):
            while True:
                team.send(pack([1]))

    def test_a_function_that_ends_its_process(self, make):
        team = answering(make, functions.At(1, functions.leave), count=1)
        team.send(pack([1]))
        with pytest.raises(WorkerDied, match="exit code 3"):
            team.take()

    def test_an_exception_that_cannot_be_pickled(self, make):
        team = answering(make, functions.At(1, functions.fail_unpicklably), count=1)
        team.send(pack([1]))
        error = team.take()[1].error
        assert isinstance(error, WorkerFailed) and str(error).endswith("it holds a function")

    def test_a_crash(self, make):
        team = answering(make, functions.At(1, functions.crash), count=1)
        team.send(pack([1]))
        with pytest.raises(WorkerDied, match="SIGSEGV(.|\n)*in string_at"):
            team.take()

    def test_ctrl_c_closes_it(self, make):
        team = make(functions.hang_at_order)
        order(team, "a")
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            team.take()
        timer.join()
        assert team.closed


class TestClose:
    @pytest.mark.parametrize("name", ["take", "take_from"])
    def test_another_thread_ends_whoever_waits(self, make, name):
        team = make(functions.hang_at_order)
        order(team, "a")
        args = (0,) if name == "take_from" else ()
        thread, errors = in_thread(getattr(team, name), *args)
        assert wait_until(lambda: multiprocessing.active_children())
        team.close()
        thread.join(LONG)
        assert [type(error) for error in errors] == [DataFlowTerminated]
        assert all(gone(pid) for pid in pids(team))

    def test_so_it_does_if_a_worker_is_stopped(self, make):
        team = counting(make)
        for pid in pids(team):
            os.kill(pid, signal.SIGSTOP)
        order(team, "a")
        thread, errors = in_thread(team.take)
        begin = time.monotonic()
        team.close()
        thread.join(LONG)
        assert time.monotonic() - begin < 5
        assert [type(error) for error in errors] == [DataFlowTerminated]
        assert all(gone(pid) for pid in pids(team))

    def test_so_it_does_while_an_order_is_given_to_one_that_does_not_listen(self, make):
        team = counting(make)
        os.kill(pids(team)[0], signal.SIGSTOP)
        thread, errors = in_thread(order, team, "a" * 1000000)
        assert wait_until(lambda: team._number == 1)
        team.close()
        thread.join(LONG)
        assert [type(error) for error in errors] == [DataFlowTerminated]

    def test_the_pipes_and_memory_are_released(self, make):
        gc.collect()
        before = open_files(), named_memory()
        team = Team(functions.count_up, (9,), ("ds", None), 2, LIMITS, "fork", "Team", LIMITS)
        order(team, "a")
        kept = team.take()
        team.close()
        assert kept[1][0] == "a"
        del kept, team  # without any garbage
        assert (open_files(), named_memory()) == before

    def test_only_the_first_call_closes(self, make):
        team = counting(make)
        assert not team.closed
        assert team.close() is True
        assert team.close() is False
        for call in (
            lambda: order(team, "a"),
            lambda: team.send(pack(1)),
            team.take,
            team.take_if,
            lambda: team.take_from(0),
        ):
            with pytest.raises((DataFlowTerminated, AttributeError)):
                call()

    def test_two_threads_close_it(self, make):
        team = make(functions.hang_at_order)
        threads = [in_thread(team.close) for _ in range(4)]
        for thread, errors in threads:
            thread.join(LONG)
            assert errors == []
        assert all(gone(pid) for pid in pids(team))

    def test_a_forked_copy_leaves_the_workers_alone(self, make):
        team = counting(make)
        order(team, "a")
        pid = os.fork()
        if not pid:
            try:
                for take in team.take, lambda: team.take_from(0), lambda: order(team, "b"):
                    try:
                        take()
                        os._exit(2)
                    except DataFlowTerminated as error:
                        if "belongs to the process that began it" not in str(error):
                            os._exit(3)
                team.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        assert sorted(team.take()[1] for _ in range(200))[-1] == ["a", 1, 99]

    def test_one_that_cannot_be_started_closes_the_others(self, make, monkeypatch):
        started = []

        def start(*args):
            started.append(args)
            if len(started) == 3:
                raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
            return original(*args)

        original = team_module.start_lane
        monkeypatch.setattr(team_module, "start_lane", start)
        with pytest.raises(OSError, match="temporarily"):
            counting(make, count=4)
        assert len(started) == 3
        assert multiprocessing.active_children() == []


def test_workers_do_not_hold_what_leads_to_others(make):
    """Or the memory and the pipes of one would stay as long as all others."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    teams = [counting(make, count=count) for count in (1, 3)]
    order(teams[1], "a")
    assert [teams[1].take_from(index)[0] for index in range(3)] == [0] * 3  # they have begun
    opened = [len(os.listdir(f"/proc/{pid}/fd")) - before for pid in pids(teams[1])]
    # a worker has: memory for each slot, mapped or not, three ends of pipes, three of its worker
    # class, and a sentinel or two of each that was started before
    own = 2 * LIMITS.slots + 3 + 3
    assert opened[-1] <= own + 2 * 4


def test_a_team_that_gives_nothing_is_told_of_with_stacks(make, monkeypatch):
    monkeypatch.setattr(team_module, "_WARN_SECONDS", 0.1)
    said = []
    monkeypatch.setattr(logger, "warning", lambda text: said.append(text))
    team = make(functions.hang_at_order)
    order(team, "a")
    for index in range(2):
        wait_for_records(team, index, 1)  # it has begun
    os.kill(pids(team)[0], signal.SIGSTOP)
    assert wait_until_stopped(team, 0)
    thread, _ = in_thread(team.take)
    assert wait_until(lambda: said)
    team.close()
    thread.join(LONG)
    assert re.search(r"Team has given no data for \d+ seconds", said[0])
    assert "Team 0: no stack: it is stopped by a signal" in said[0]
    assert re.search(r"Team 1: (.|\n)*in sleep", said[0])
