"""What only a machine with a GPU can show, as one table: `make gpu-check`, about 20 minutes.

    python benchmarks/gpu_check.py [--only rates,memory] [--steps 1000] [--anywhere]

Each step is a process of its own, or several, and the next one runs whatever became of it; what a
failed one printed is kept in build/gpu-check. Where there is no GPU, nothing is run and nothing is
claimed: `--anywhere` runs the steps nevertheless, to try this script. The exit code is 1 if a step
failed, or if there is no GPU.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import memory as resident_memory
from _programs import HERE, ROOT, begin, output_of, returned
from _report import parse, say
from dqn import bare, train_dqn, whole

from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.nvml import NVMLContext

NOT_THERE = "has no effect here"  # how tfutils.precision refuses what this device does not have
ROW = "{:16} {:9} {:>6}  {}"
SMALL = ["--memory-size", "5000", "--init-memory-size", "1000", "--eval-every", "1000000"]
WHERE = re.compile(r"Where the time goes: .*")
EPOCH, SAVED = resident_memory.EPOCH, re.compile(r"Model saved to \S+model-(\d+)")


class Skipped(Exception):
    """A step cannot be run here; the message says why."""


def doctor(args):
    """What `tensorpack doctor` says of TensorFlow and the device."""
    lines = output_of("-m", "tensorpack", "doctor").splitlines()
    return [line for line in lines if line.startswith(("tensorflow", "GPUs"))]


def rates(args):
    """Updates per second of the main job, with eight games, beside the bare update, in each way."""
    errors = []
    for xla in ([], ["--xla"]):
        for precision in ("fp32", "bf16", "fp16"):
            flags = ["--precision", precision, *xla]
            # what XLA compiles is compiled before the steps that count
            job = [*flags, "--num-players", "8", "--warm-up", args.steps if xla else 60]
            name = " ".join([precision, *xla])
            try:
                alone = bare(args.seconds, flags)
                run = whole(args.steps, args.rom, job)
                staged = whole(args.steps, args.rom, [*job, "--staging"])
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                if NOT_THERE in str(error):
                    yield f"{name}: refused, as this device does not have it"
                else:
                    errors.append(f"{name}: {error}")
                continue
            yield (
                f"{name}: bare {alone:.1f} updates/s; main job {run:.1f} ({run / alone:.2f}); "
                f"with staging {staged:.1f} ({staged / alone:.2f})"
            )
    if errors:
        raise RuntimeError("\n".join(errors))


def where(args):
    """Where the time of the main job goes, as it says itself."""
    text = output_of(train_dqn, args.steps, args.rom, [])
    return [f"{returned(text):.2f} updates/s", *WHERE.findall(text)]


def nchw(args):
    """Layers and exports with channels first."""
    return output_of(HERE / "nchw.py").strip().splitlines()[-2:]


def towers(args):
    """The main job on two GPUs against one."""
    if get_num_gpu() < 2 and not args.anywhere:
        raise Skipped("it needs two GPUs")
    one, two = (whole(args.steps, args.rom, ["--towers", n]) for n in (1, 2))
    return [f"one {one:.1f} updates/s, two {two:.1f} ({two / one:.2f})"]


def figures(name, *flags):
    """The results of a figure, as lines."""
    for each in parse(output_of(HERE / "run.py", name, *flags)):
        yield f"{each.figure} {each.what}: {each.value:.4g} {each.unit} ({each.peer})"


def r1(args):
    """The main job against the bare update, in pairs, also where nine of ten actions are chosen."""
    common = ["--pairs", args.pairs, "--steps", args.steps, "--rom", args.rom]
    yield from figures("R1", *common)
    yield from figures("R1", *common, "--exploration", "0.1", "--num-players", "4")


def r5(args):
    """A step of a trainer against the bare callable."""
    return figures("R5", "--pairs", args.pairs)


def memory(args):
    """What is used of the first GPU, by all programs, over the steps of a run."""
    measure = used if get_num_gpu() else resident_memory.resident
    points = resident_memory.whole(args.rom, 5000, args.memory_steps // 10, 10, measure=measure)
    shown = ", ".join(f"{megabytes:.0f} after {step}" for step, megabytes in points)
    grown = points[-1][1] - points[1][1]
    return [f"MB: {shown}", f"{grown:+.0f} MB from step {points[1][0]} to {points[-1][0]}"]


def used(child):
    """Megabytes that are used of the first GPU."""
    with NVMLContext() as nvml:
        return nvml.device(0).memory()["used"] / resident_memory.MB


def interrupt(args):
    """Ctrl-C in the second epoch, then the rest of the run: it has to start where it was saved."""
    with tempfile.TemporaryDirectory() as folder:
        program = ROOT / "examples" / "DeepQNetwork" / "DQN.py"
        flags = [*SMALL, "--rom", args.rom, "--logdir", Path(folder) / "log"]
        flags += ["--steps-per-epoch", args.steps, "--max-epoch", "4"]
        with begin([program, *flags]) as child:
            lines, pressed = [], 0.0
            for line in child.stdout:
                lines.append(line)
                if "Start Epoch 2" in line:
                    time.sleep(1)
                    pressed = time.perf_counter()
                    child.send_signal(signal.SIGINT)
            code, took = child.wait(), time.perf_counter() - pressed
        text = "".join(lines)
        if code != 128 + signal.SIGINT:
            raise RuntimeError(f"Ctrl-C ended the run with {code}:\n{text}")
        saved = int(SAVED.findall(text)[-1])
        again = output_of(program, *flags, "--resume", "must")
        ended = [int(step) for step in EPOCH.findall(again)]
        if saved < args.steps or ended[-1] != 4 * args.steps or ended[0] <= saved - args.steps:
            raise RuntimeError(f"saved at {saved}, resumed to {ended}:\n{text}\n{again}")
        return [f"ended in {took:.1f} s, saved at step {saved}, resumed, epochs ended at {ended}"]


def tests(args):
    """The tests that need a GPU."""
    try:
        text = output_of(
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "gpu",
            ROOT / "tests" / "callbacks",
        )
    except RuntimeError as error:
        if "No module named pytest" in str(error):
            raise Skipped("pytest is not installed") from error
        raise
    return text.strip().splitlines()[-1:]


STEPS = {
    each.__name__: each
    for each in (doctor, interrupt, nchw, memory, where, r5, rates, r1, towers, tests)
}


def run(name, args):
    """Runs a step, prints its rows as they come, and returns whether it did not fail."""
    start, failed = time.perf_counter(), False

    def show(outcome, line):
        say(ROW.format(name, outcome, f"{time.perf_counter() - start:.0f} s", line))

    try:
        for line in STEPS[name](args):
            show("ok", line)
    except Skipped as why:
        show("not run", str(why))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        args.logs.mkdir(parents=True, exist_ok=True)
        (args.logs / f"{name}.txt").write_text(f"{error}\n{getattr(error, 'output', None) or ''}")
        failed = True
        last = str(error).strip().splitlines()[-1]
        show("failed", f"{last[:200]} (all of it: {args.logs / name}.txt)")
    return not failed


def main(argv=None):
    """Runs the steps; the exit code is 1 if any of them failed or was not run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", metavar=",".join(STEPS), default=",".join(STEPS))
    add("--seconds", type=float, default=10.0, help="of a bare update (default: 10)")
    add("--steps", type=int, default=1000, help="of the main job (default: 1000)")
    add("--memory-steps", type=int, default=5000, help="over which memory is read (default: 5000)")
    add("--pairs", type=int, default=3, help="of R1 and R5 (default: 3)")
    add("--anywhere", action="store_true", help="also where there is no GPU")
    add("--rom", default="breakout.bin")
    add("--logs", type=Path, default=ROOT / "build" / "gpu-check")
    args = parser.parse_args(argv)
    unknown = set(args.only.split(",")).difference(STEPS)
    if unknown:
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    gpus = get_num_gpu()
    say(f"{gpus} GPUs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    say(ROW.format("step", "outcome", "time", "what"))
    if not gpus and not args.anywhere:
        why = "this machine has no GPU, or CUDA_VISIBLE_DEVICES hides it"
        for name in args.only.split(","):
            say(ROW.format(name, "not run", "", why))
        sys.exit(1)
    failed = [name for name in args.only.split(",") if not run(name, args)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
