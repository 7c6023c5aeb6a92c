"""R8: datapoints from two worker processes, through shared memory, against torch and tensorpack.

    python benchmarks/r8_parallel_prototype.py [--pairs 5]

A prototype: the library has no parallel dataflow yet. A worker writes as many datapoints as fit
into a slot of shared memory and tells the slot's number; the consumer gets arrays that view the
slot, which goes back to the worker when the last of them is gone. Needs `make bench-peers` and
Python 3.8.
"""

import argparse
import itertools
import multiprocessing
import os
import re
import statistics
import struct
import sys
import weakref
from multiprocessing import shared_memory
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from _environments import output_of, peer_python
from _report import Measured, report
from _stream import PROCESSES, count_per_second, make_array

from tensorpack.utils.worker import make_worker

HERE = Path(__file__).resolve().parent
RATE = re.compile(r"datapoints/s: ([0-9.]+)")
SLOTS = 4  # of a worker
LEAST_SLOT = 2**20  # bytes
ALIGNED = 64  # bytes; TensorFlow copies what is not
NUMBER = struct.Struct("<I")
HEADER = struct.Struct("<II8I")  # bytes of the array, dimensions, shape
BIG_MB = 64 * 224 * 224 * 3 / 1e6


def fill(view, source, array):
    """Writes datapoints into a slot until none fits; returns how many, and the next one."""
    position, count = 0, 0
    while position + ALIGNED + array.nbytes <= len(view):
        shape = array.shape + (0,) * (8 - array.ndim)
        HEADER.pack_into(view, position, array.nbytes, array.ndim, *shape)
        start = position + ALIGNED
        np.copyto(np.frombuffer(view, np.uint8, array.nbytes, start).reshape(array.shape), array)
        position = -(-(start + array.nbytes) // ALIGNED) * ALIGNED
        count += 1
        array = next(source)
    return count, array


def produce(size, name, slot_bytes, free, full):
    """What a worker does: fills a slot, tells its number and how many datapoints are in it."""
    memory = shared_memory.SharedMemory(name)
    try:
        array = make_array(size)
        source = itertools.repeat(array)
        while True:
            slot = NUMBER.unpack(free.recv_bytes())[0]
            begin = slot * slot_bytes
            count, array = fill(memory.buf[begin : begin + slot_bytes], source, array)
            full.send_bytes(NUMBER.pack(slot) + NUMBER.pack(count))
    except (EOFError, BrokenPipeError):
        pass  # the consumer has enough
    finally:
        memory.close()


class Lane:
    """A worker and its slots, as the consumer sees them."""

    def __init__(self, size, number):
        context = multiprocessing.get_context("spawn")
        self._slot_bytes = max(LEAST_SLOT, make_array(size).nbytes + ALIGNED)
        self._memory = shared_memory.SharedMemory(create=True, size=SLOTS * self._slot_bytes)
        free, self._free = context.Pipe(duplex=False)
        self.full, full = context.Pipe(duplex=False)
        args = (size, self._memory.name, self._slot_bytes, free, full)
        self._worker = make_worker(produce, args, name=f"producer {number}", method="spawn")
        self._worker.start()
        free.close()
        full.close()
        for slot in range(SLOTS):
            self._give_back(slot)

    def arrays(self):
        """The datapoints of a slot that is full, as views of it."""
        try:
            message = self.full.recv_bytes()
        except EOFError:
            self._worker.join()
            raise self._worker.error() or RuntimeError("The producer ended.") from None
        slot, count = NUMBER.unpack(message[:4])[0], NUMBER.unpack(message[4:])[0]
        whole = np.frombuffer(self._memory.buf, np.uint8, self._slot_bytes, slot * self._slot_bytes)
        # views of views hold `whole` itself, so it lives as long as the last of them
        weakref.finalize(whole, self._give_back, slot).atexit = False
        position = 0
        for _ in range(count):
            nbytes, dimensions, *shape = HEADER.unpack_from(whole, position)
            start = position + ALIGNED
            yield whole[start : start + nbytes].reshape(shape[:dimensions])
            position = -(-(start + nbytes) // ALIGNED) * ALIGNED

    def close(self):
        """Ends the worker and frees the memory; no array may be left."""
        self._free.close()
        self.full.close()
        self._worker.terminate()
        self._worker.join()
        self._memory.close()
        self._memory.unlink()

    def _give_back(self, slot):
        if not self._free.closed:
            self._free.send_bytes(NUMBER.pack(slot))


def datapoints(lanes):
    """All datapoints of all lanes, as they come."""
    while True:
        ready = wait([lane.full for lane in lanes])
        for lane in lanes:
            if lane.full in ready:
                yield from lane.arrays()


def prototype(size, seconds):
    """Datapoints per second of the prototype."""
    lanes = [Lane(size, number) for number in range(PROCESSES)]
    try:
        return count_per_second(datapoints(lanes), seconds)
    finally:
        for lane in lanes:
            lane.close()


def peer(environment, script, size, seconds):
    """Datapoints per second of another library."""
    arguments = ["--size", size, "--seconds", seconds]
    text = output_of(HERE / "peers" / script, *arguments, python=peer_python(environment))
    return float(RATE.search(text).group(1))


def measure(size, rounds, seconds):
    """Prints a row a round; returns the rates of each and the ratios to the better peer."""
    rates = {"prototype": [], "torch": [], "tensorpack 0.11": []}
    for number in range(rounds):
        rates["prototype"].append(prototype(size, seconds))
        rates["torch"].append(peer("torch", "torch_loader.py", size, seconds))
        rates["tensorpack 0.11"].append(
            peer("tensorpack-0.11", "tensorpack_runner.py", size, seconds)
        )
        row = ", ".join(f"{name} {column[-1]:.0f}/s" for name, column in rates.items())
        sys.stdout.write(f"{size} {number}: {row} (load {os.getloadavg()[0]:.1f})\n")
        sys.stdout.flush()
    ours, *others = rates.values()
    ratios = [mine / max(theirs) for mine, *theirs in zip(ours, *others)]
    return {name: statistics.median(column) for name, column in rates.items()}, ratios


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    large, ratios = measure("large", args.pairs, args.seconds)
    small, _ = measure("small", args.pairs, args.seconds)
    megabytes = ", ".join(f"{name} {rate * BIG_MB:.0f} MB/s" for name, rate in large.items())
    others = [f"{name} {rate:.0f}/s" for name, rate in small.items() if name != "prototype"]
    note = "prototype; its arrays view shared memory"
    ratio, rate = statistics.median(ratios), small["prototype"]
    what = "9.6 MB datapoints, 2 processes / the better peer"
    report(
        Measured("R8", what, ratio, "", ">= 2", megabytes, note),
        Measured(
            "R8", "28 kB datapoints, 2 processes", rate, "dp/s", ">= 50000", ", ".join(others), note
        ),
    )


if __name__ == "__main__":
    main()
