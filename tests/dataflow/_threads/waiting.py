"""Calls in other threads, to see that they wait and that they go on."""

import threading

from tensorpack.dataflow import DataFlowTerminated

SHORT = 0.15  # for seeing that something does not happen


def call_in_thread(call):
    """Calls in another thread; returns an event that it is done, and the list of its result."""
    done, result = threading.Event(), []

    def run():
        try:
            result.append(call())
        except DataFlowTerminated as error:
            result.append(error)
        done.set()

    threading.Thread(target=run).start()
    return done, result
