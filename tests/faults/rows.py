"""What the rows of the fault matrix are: what happens, and what follows from it.

The numbers are fixed: tests are marked with them. `scripts/reliability` puts the results beside.
"""

from typing import NamedTuple

__all__ = ["ROWS", "Row"]

ONE_MACHINE = "a training runs on one machine"


class Row(NamedTuple):
    """One row.

    Attributes:
      fault: what happens.
      outcome: what follows.
      open: why there is no test; empty where there is one, or should be.
    """

    fault: str
    outcome: str
    open: str = ""


ROWS = {
    1: Row(
        "a signal while the graph is built",
        "130 or 143 within 2 s; no callback is called",
    ),
    2: Row(
        "a signal during `session_init`, in Python or in an op",
        "the same; an op is waited for",
    ),
    3: Row(
        "a signal in a long `before_train` that looks at `check_stop()`",
        "within 3 s; `after_train` of those that were entered",
    ),
    4: Row(
        "a signal while the step waits for data and the dataflow hangs",
        "within 5 s: 0.5 s until the queue is closed, 1 s for the dataflow to give in",
    ),
    5: Row(
        "a signal during a step, also one that computes for 3 s",
        "at the end of that step, with a line that says so",
    ),
    6: Row(
        "a signal during a save",
        "the save is finished, then 130 or 143; a third signal cuts it off, and the model "
        "before is loaded",
    ),
    7: Row(
        "a signal during an evaluation that looks at `check_stop()`",
        "within 5 s",
    ),
    8: Row(
        "two or three signals; a dataflow or a callback that ignores everything",
        "the third ends the process within 1.5 s, or the grace time does; the worker dies with it",
    ),
    9: Row(
        "SIGTERM in all of these; a signal in the teardown of a finished run",
        "143; 0 for the finished run",
    ),
    10: Row(
        "the reader of standard output goes away; SIGHUP",
        "the run goes on, `log.log` has all of it; 129 in order, unless SIGHUP is ignored",
    ),
    11: Row(
        "kill -9 during a run that is started again",
        "the run goes on from the newest state that is whole; a deterministic one ends with the "
        "same variables, bit by bit, as one that was not killed",
    ),
    12: Row(
        "the dataflow raises: at a datapoint, in `reset_state`, in a thread of its own, in an"
        " evaluation",
        "that error, 1",
    ),
    13: Row(
        "no datapoint in a pass; a finite source ends early",
        "`DataFlowEmpty`; `DataEnded` with step and epoch",
    ),
    14: Row(
        "a worker is killed, or crashes",
        "an error within 1 s that names the worker and the signal; nothing of it is left",
    ),
    15: Row(
        "a worker hangs",
        "its stack is reported, or that it is stopped; Ctrl-C still works, and the dataflow can "
        "be closed",
    ),
    16: Row(
        "a process is forked while threads hold locks",
        "workers are started in a way that no lock is copied",
    ),
    17: Row(
        "a full disk under the models, or files that may not grow",
        "the saves that it hits are errors in the log, older models stay; 1 if the last save "
        "failed, 0 if a later one worked",
    ),
    18: Row(
        "a full disk under the log, the events and the statistics",
        "one warning for each of the three; models are saved, 0",
    ),
    19: Row(
        "kill -9, or an error, at the n-th `rename`, `unlink`, `link`, `openat` or `fsync` of"
        " a save, for every n",
        "promises 1 and 2; the next run cleans up and saves",
    ),
    20: Row(
        "the power fails",
        "every file that is renamed was fsynced before, and the directory before `checkpoint`"
        " and before a deletion: checked in a trace of the system calls, not by cutting the "
        "power",
    ),
    21: Row(
        "index, data or manifest truncated, a bit flipped at 64 places, deleted, exchanged "
        "between two",
        "`CheckpointCorrupt`; passed over with a warning, `NoValidCheckpoint` if none is left",
    ),
    22: Row(
        "`checkpoint` empty, garbage, or naming something elsewhere or missing",
        "ignored with a warning; the newest whole one is found",
    ),
    23: Row(
        "a checkpoint of another model",
        "an error that lists what is missing, unexpected or of another shape",
    ),
    24: Row(
        "NaN or infinity from the data, in the cost, or in the weights alone",
        "`NonFiniteError` with the name and the step, 1; it is never saved",
    ),
    25: Row(
        "a queue is closed by a callback or by another thread",
        "`QueueClosed`",
    ),
    26: Row(
        "a callback closes the session, or fetches from another graph",
        "TensorFlow's error or `QueueClosed`; the others' `after_train` still runs",
    ),
    27: Row(
        "a callback raises, in each of the nine hooks",
        "that error, 1; the others' `after_train` still runs",
    ),
    28: Row(
        "a parameter server dies",
        "",
        ONE_MACHINE,
    ),
    29: Row(
        "a worker of a synchronous training dies",
        "",
        ONE_MACHINE,
    ),
    30: Row(
        "the network stalls",
        "",
        ONE_MACHINE,
    ),
    31: Row(
        "malformed messages over a socket",
        "dropped, counted and logged, and too many are an error; nothing is run, and memory "
        "stays bounded",
    ),
    32: Row(
        "a corrupted LMDB",
        "right data, or an error that names the file and the key; never a crash",
    ),
    33: Row(
        "a corrupted TFRecord file",
        "right data, or an error that names the file, the record and the byte; a length that is "
        "made up takes no memory",
    ),
    34: Row(
        "`None`, object, text, a wrong rank, complex numbers, ragged lists, too few fields; "
        "at once or later",
        "`TypeError` or `ValueError`",
    ),
    35: Row(
        "a dataflow yields the same memory again and again, aligned as TensorFlow likes it",
        "what is trained on is what was yielded",
    ),
    36: Row(
        "the ROM is missing, empty, random, damaged, or cannot be read",
        "2 with the path and what to do, before TensorFlow is loaded",
    ),
    37: Row(
        "the game raises an error, or never comes back from a step",
        "that error, 1; Ctrl-C ends the run, at the start the third one",
    ),
    38: Row(
        "a file is at the path of the log directory, or a read-only file system; it exists "
        "and nobody can be asked; it is deleted during the run",
        "an error that names the path, before anything is built; a new numbered one; the run "
        "goes on",
    ),
    39: Row(
        "the clock on the wall jumps by days",
        "times left, the order of the events and what is kept for ever stay right",
    ),
    40: Row(
        "`stats.json` is empty or cut off when a run continues",
        "it is put aside as `.corrupt`, what is whole is kept",
    ),
    41: Row(
        "two runs in one log directory",
        "the second is refused, and told the process id of the first",
    ),
    42: Row(
        "no file, no thread, no shared memory left",
        "an error that says so, 1",
    ),
    43: Row(
        "`train()` twice, in a new trainer, in a thread",
        "a trainer refuses a second run; the others work",
    ),
    44: Row(
        "daemon threads run when the interpreter ends, 20 times",
        "0, nothing is printed",
    ),
    45: Row(
        "85 000 steps",
        "less than 1 MB of memory more in the last 10 000; no op is added",
    ),
}
