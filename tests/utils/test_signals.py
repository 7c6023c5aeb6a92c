"""Signals are heard while the main thread is busy in C, and everything is put back afterwards."""

import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from tensorpack.utils.signals import SignalListener, reraise_interrupt


def test_an_interrupt_that_a_block_swallows_is_raised_at_its_end():
    after = []
    with pytest.raises(KeyboardInterrupt):
        with reraise_interrupt():
            with suppress(BaseException):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)  # it ends here
            after.append(1)
    assert after == [1] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with reraise_interrupt():
        after.append(2)
    assert after == [1, 2] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_of_a_program_with_a_handler_of_its_own_is_left_to_it():
    heard = []
    before = signal.signal(signal.SIGINT, lambda signum, _: heard.append(signum))
    try:
        with reraise_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


@pytest.mark.timed
def test_hears_a_signal_while_the_main_thread_blocks_in_c():
    heard = queue.Queue()
    code = (
        "import os, sys, time, signal, zlib\n"
        "from tensorpack.utils.signals import SignalListener\n"
        "with SignalListener(lambda n: os.write(1, b'heard %d' % n)):\n"
        "    data = os.urandom(1 << 20) * 64\n"
        "    os.write(1, b'go\\n')\n"
        "    end = time.monotonic() + 30\n"
        "    zlib.compress(data, 9)\n"  # seconds in C code, without a bytecode in between
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"go\n"
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    threading.Thread(target=lambda: heard.put(child.stdout.read(7))).start()
    assert heard.get(timeout=10) == b"heard 2"
    assert time.monotonic() - start < 1
    child.kill()
    child.wait()
    child.stdout.close()


def test_hears_a_signal_in_a_process_with_more_than_1024_open_files():
    code = (
        "import os, resource, signal, threading\n"
        "from tensorpack.utils.signals import SignalListener\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]\n"
        "heard = threading.Event()\n"
        "with SignalListener(lambda n: heard.set()):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert heard.wait(10)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_restores_handlers_and_passes_bytes_on_to_the_descriptor_that_was_there():
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    try:
        heard = threading.Event()
        with SignalListener(lambda n: heard.set()):
            assert signal.getsignal(signal.SIGINT) is not before[signal.SIGINT]
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard.wait(5)
        assert {n: signal.getsignal(n) for n in before} == before
        reader.settimeout(5)
        assert reader.recv(10) == bytes([signal.SIGTERM])
        assert signal.set_wakeup_fd(-1) == writer.fileno()
    finally:
        signal.set_wakeup_fd(-1)
        reader.close()
        writer.close()


def test_outside_the_main_thread_only_the_timer_works():
    before, ticked, handlers = signal.getsignal(signal.SIGINT), threading.Event(), []

    def run():
        with SignalListener(lambda n: None, ticked.set) as listener:
            handlers.append(signal.getsignal(signal.SIGINT))
            listener.poke()
            ticked.wait(5)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert ticked.is_set()
    assert handlers == [before]


def test_ticks_again_after_the_time_that_the_tick_asked_for():
    times = [0.02, 0.02, None]
    ticked = threading.Event()

    def tick():
        wait = times.pop(0)
        if not times:
            ticked.set()
        return wait

    with SignalListener(lambda n: None, tick) as listener:
        listener.poke()
        assert ticked.wait(5)
    assert times == []


def test_what_is_given_for_the_main_thread_may_raise_there():
    class Interrupted(BaseException):
        pass

    def interrupt(signum, frame):
        raise Interrupted(signum)

    heard = []
    with SignalListener(heard.append, on_main_thread=interrupt):
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
    assert heard == [signal.SIGINT]


def _end_by_sigterm(pipe):
    pipe.send("ready")
    time.sleep(30)


def test_a_forked_process_hears_its_own_signals_and_the_parent_does_not():
    heard = []
    with SignalListener(heard.append):
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_end_by_sigterm, args=[writer])
        process.start()
        assert reader.recv() == "ready"
        os.kill(process.pid, signal.SIGTERM)
        process.join(10)
        assert process.exitcode == -signal.SIGTERM
        time.sleep(0.1)
    assert heard == []
