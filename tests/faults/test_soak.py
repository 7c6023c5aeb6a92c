"""The soak: a DQN is killed again and again at random moments, and ends as if nothing had been.

`make soak` kills 200 times. A failure tells the seed of the moments: TENSORPACK_SOAK_SEED repeats
them, as far as the speed of the machine does.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tests.harness import NEVER, Child

from .run_case import Surroundings
from .soak_checks import check_directory, check_resumption, newest_step

KILLS = int(os.environ.get("TENSORPACK_SOAK_KILLS", 12))
SEED = os.environ.get("TENSORPACK_SOAK_SEED")
EPOCHS, STEPS = 12, 40
LIMIT = 10.0  # seconds that the end may take after the first signal
KILL, INT, TERM = signal.SIGKILL, signal.SIGINT, signal.SIGTERM
READY = "Graph Finalized"
BEGUN = "Start Epoch"
SCORES = ("epoch_num", "global_step", "expreplay/mean_score", "expreplay/max_score")
SCORES += ("mean_score", "max_score", "learning_rate")


class Plan(NamedTuple):
    """One kill.

    Attributes:
      mark: what the run has to print first.
      wait: seconds from then on, or epochs behind `BEGUN`.
      signals: what is sent, 0.1 s apart.
      group: whether to the whole process group, as from a terminal.
    """

    mark: str
    wait: float
    signals: tuple
    group: bool

    def __str__(self):
        names = "-".join(signal.Signals(each).name for each in self.signals)
        return f"{names}{' to the group' if self.group else ''}, {self.wait:.3f} behind {self.mark}"


def draw_plan(chance):
    """Most moments are in the training, the others in a save or before the training begins."""
    mark, longest = chance.choices(
        [
            (BEGUN, 3.5),
            ("PHASE save 1.", 0.12),
            ("PHASE save 2.", 0.12),
            (READY, 1),
            ("PHASE setup", 1),
        ],
        [9, 3, 3, 2, 3],
    )[0]
    signals = chance.choices([(KILL,), (INT,), (TERM,), (INT, INT)], [11, 4, 3, 2])[0]
    return Plan(mark, chance.uniform(0, longest), signals, chance.random() < 0.4)


class Soak:
    """One run of the training, in as many pieces as it is killed.

    Args:
      zygote: copies of that run the training.
      directory: a path for it alone, which does not exist.
      epoch_seconds: how long an epoch takes.
    """

    def __init__(self, zygote, directory, epoch_seconds):
        self._zygote = zygote
        self.log = directory / "log"
        self._directory = directory
        self._epoch_seconds = epoch_seconds
        self._starts = 0
        self.over = False
        directory.mkdir()

    def kill(self, plan):
        """Starts the run, ends it as planned, and checks all invariants.

        Returns:
          What happened, a sentence; None if the training was over before.
        """
        before, child, around = self._start()
        took = self._provoke(child, plan)
        left = around.leftovers()
        if left:  # they may hold what the output is read from
            os.killpg(child.process.pid, KILL)
        code = child.end(timeout=0)
        output = child.output
        self.over = is_over(output)
        try:
            assert not left, left
            check_code(plan, code, output)
            check_resumption(output, before)
            after = check_directory(self.log, output, before)
        except BaseException:
            sys.stdout.write(output)
            raise
        happened = f"{plan}: code {code} after {took:.2f} s, step {before} -> {after}"
        return None if self.over and code == 0 else happened

    def finish(self):
        """Runs what is left; returns how many seconds the training took."""
        before, child, around = self._start()
        child.wait_for(READY)
        start = time.monotonic()
        assert child.end(timeout=120) == 0, child.output
        took = time.monotonic() - start
        assert is_over(child.output), child.output
        assert not around.leftovers(), around.leftovers()
        check_resumption(child.output, before)
        assert check_directory(self.log, child.output, before) == EPOCHS * STEPS
        return took

    def results(self):
        """All variables at the end, and what the statistics say of the games."""
        epochs = json.loads((self.log / "stats.json").read_text())
        epochs = [{key: each.get(key) for key in SCORES} for each in epochs]
        return load_checkpoint_vars(str(self.log / f"model-{EPOCHS * STEPS}")), epochs

    def _start(self):
        before = newest_step(self.log)
        self._starts += 1
        around_at = self._directory / f"start{self._starts}"
        around_at.mkdir()
        around = Surroundings(around_at)
        child = Child(
            *(self.log, EPOCHS, STEPS),
            env=around.env,
            zygote=self._zygote,
            module="tests.faults.soak_dqn",
        )
        around.session = child.process.pid
        return before, child, around

    def _provoke(self, child, plan):
        """Sends the signals; returns the seconds from the first one to the end."""
        self._wait(child, plan)
        start = time.monotonic()
        for number, signum in enumerate(plan.signals):
            if number:
                time.sleep(0.1)
            if child.process.poll() is None:
                child.send(signum, group=plan.group)
        try:
            child.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            child.end(timeout=0)  # kills it, and says what it printed
        return time.monotonic() - start

    def _wait(self, child, plan):
        try:
            child.wait_for(plan.mark)
        except AssertionError:
            if not is_over(child.output):
                child.end(timeout=LIMIT)
                raise
        else:
            time.sleep(plan.wait * (self._epoch_seconds if plan.mark == BEGUN else 1.0))


def is_over(output):
    """Whether a run has come to its end."""
    return "Training has finished!" in output


def check_code(plan, code, output):
    """Checks the exit code, and that nothing was printed that no run prints when it is stopped."""
    first = plan.signals[0]
    expected = {-first if first == KILL else 128 + first}
    # When the training is over, a signal finds Python's own handlers, or nobody.
    late = is_over(output) or len(plan.signals) > 1
    if late:
        expected.add(-first)
    if is_over(output):
        expected.add(0)
    if late and "KeyboardInterrupt" in output:
        expected.add(1)
    assert code in expected, f"exit code {code}"
    said = [each for each in NEVER if each in output]
    assert late or not said, said


def check_equal(got, expected):
    """Checks that two runs had the same results, bit by bit."""
    (variables, epochs), (expected_variables, expected_epochs) = got, expected
    assert sorted(variables) == sorted(expected_variables)
    different = [
        name
        for name, value in variables.items()
        if value.dtype != expected_variables[name].dtype
        or value.tobytes() != expected_variables[name].tobytes()
    ]
    assert not different, different
    assert epochs == expected_epochs


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.fault_row(11)
def test_a_dqn_that_is_killed_at_random_ends_with_the_same_results(zygote, tmp_path):
    seed = int(SEED) if SEED else random.SystemRandom().randrange(10**6)
    say(f"{KILLS} kills, TENSORPACK_SOAK_SEED={seed}")
    chance = random.Random(seed)
    plans = [draw_plan(chance) for _ in range(KILLS)]
    whole = Soak(zygote, tmp_path / "whole", 0)
    took = whole.finish()
    expected = whole.results()
    rounds, done = 0, 0
    while done < KILLS:
        rounds += 1
        soak = Soak(zygote, tmp_path / f"round{rounds}", took / EPOCHS)
        while done < KILLS and not soak.over:
            say(f"kill {done + 1}, round {rounds}: {plans[done]}")
            happened = soak.kill(plans[done])
            done += happened is not None
            say(happened or "was over before")
        soak.finish()
        check_equal(soak.results(), expected)
        shutil.rmtree(str(tmp_path / f"round{rounds}"))
        say(f"round {rounds} ends with the same results")


def say(what):
    """Tells how far it is, now: it takes minutes."""
    sys.stdout.write(f"soak: {what}\n")
    sys.stdout.flush()
