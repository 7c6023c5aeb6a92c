"""Both ends of a channel in one process, and arrays whose content tells their number."""

import os

import numpy as np

from tensorpack.dataflow._processes.channel import Limits, make_channels
from tensorpack.dataflow._processes.pickled import pack

SIZE = 10000
MIB = 1 << 20
PLENTY = 1 << 30


class Channel:
    """Both ends in one process."""

    def __init__(self, slots=4, items=None, nbytes=PLENTY, interrupt=None):
        self.sender, self.receiver = make_channels(Limits(slots, items or slots, nbytes))[0]
        self.sender.attach(interrupt=interrupt)
        self.receiver.attach()

    def send(self, number, size=SIZE):
        """Sends an array filled with a number if there is room; returns whether there was."""
        self.receiver.return_slots()
        return self.sender.offer(pack([full(number, size)]), number)

    def put(self, obj, tag=0):
        """Sends an object; waits for room."""
        self.receiver.return_slots()
        self.sender.send(obj, tag)

    def take(self):
        """Returns what is there next; None if nothing is."""
        item = self.receiver.take()
        while item is None and self.receiver.receive():
            item = self.receiver.take()
        return item

    def array(self):
        """Returns the array that is there next."""
        _, (found,) = self.take()
        return found

    def exchange(self, number, size=SIZE):
        """Sends and returns an array; there must be room after the receiver has waited."""
        if not self.send(number, size):
            assert self.take() is None
            self.receiver.return_slots()
            assert self.send(number, size), "the channel is stuck"
        return self.array()

    def room(self):
        """How many arrays can be sent before one is taken; takes them all."""
        sent = 0
        while self.send(sent):
            sent += 1
        for number in range(sent):
            check(self.array(), number)
        return sent

    def allocated(self):
        """How many bytes of memory it takes."""
        fds = [file.fd for file in self.sender._files]
        return sum(os.fstat(fd).st_blocks for fd in fds) * 512

    def close(self):
        self.sender.close()
        self.receiver.close()


def full(number, size=SIZE):
    return np.full(size, number % 251, np.uint8)


def check(array, number):
    assert array.min() == array.max() == number % 251
