"""What only a machine with a GPU can show, as one table: `make gpu-check`, about 20 minutes.

    python benchmarks/gpu_check.py [--only rates,memory] [--steps 1000] [--anywhere 1]

A step yields lines of the table; the next one runs whatever became of it. What a failed one printed
is kept in build/gpu-check. Without a GPU nothing is run: `--anywhere 1` runs the steps anyway, to
try this script. The exit code is 1 if a step failed, or if there is no GPU.

--steps are updates of the main job, --seconds those of a bare update, --pairs those of R1 and R5.
"""

import os
import re
import sys
import time

import memory as resident_memory
from _clock import parse_args
from _programs import ROOT, output_of, returned
from _report import line, say
from dqn import bare, train_dqn, whole
from run import rows_of

from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.nvml import NVMLContext

NOT_THERE = "has no effect here"  # how tfutils.precision refuses what this device does not have
WHERE = re.compile(r"Where the time goes: .*")


def doctor(args):
    """What `tensorpack doctor` says of TensorFlow and the device."""
    lines = output_of("-m", "tensorpack", "doctor").splitlines()
    return [text for text in lines if text.startswith(("tensorflow", "GPUs"))]


def rates(args):
    """Updates per second of the main job, with eight games, beside the bare update, in each way."""
    errors = []
    for precision in ("fp32", "bf16", "fp16"):
        for xla in ([], ["--xla"]):
            flags = ["--precision", precision, *xla]
            # what XLA compiles is compiled before the steps that count
            job = [*flags, "--num-players", "8", "--warm-up", args.steps if xla else 60]
            try:
                alone = bare(args.seconds, flags)
                rates = [whole(args.steps, args.rom, [*job, *more]) for more in ([], ["--staging"])]
            except RuntimeError as error:
                is_there = NOT_THERE not in str(error)
                errors += [f"{flags}: {error}"] * is_there
                yield f"{flags}: {'failed' if is_there else 'this device does not have it'}"
                continue
            run, staged = (f"{rate:.1f} ({rate / alone:.2f})" for rate in rates)
            yield f"{flags}: bare {alone:.1f} updates/s; main job {run}; with staging {staged}"
    if errors:
        raise RuntimeError("\n".join(errors))


def where(args):
    """Where the time of the main job goes, as it says itself."""
    text = output_of(train_dqn, args.steps, args.rom, [])
    return [f"{returned(text):.2f} updates/s", *WHERE.findall(text)]


def towers(args):
    """The main job on two GPUs against one."""
    if get_num_gpu() < 2 and not args.anywhere:
        return ["not run: it needs two GPUs"]
    one, two = (whole(args.steps, args.rom, ["--towers", n]) for n in (1, 2))
    return [f"one {one:.1f} updates/s, two {two:.1f} ({two / one:.2f})"]


def r1(args):
    """The main job against the bare update, in pairs, also where nine of ten actions are chosen."""
    common = ["--pairs", args.pairs, "--steps", args.steps, "--rom", args.rom]
    for more in ([], ["--exploration", "0.1", "--num-players", "4"]):
        yield from (" ".join(row.cells()) for row in rows_of("R1", *common, *more))


def r5(args):
    """A step of a trainer against the bare callable."""
    return [" ".join(row.cells()) for row in rows_of("R5", "--pairs", args.pairs)]


def memory(args):
    """What is used of the first GPU, by all programs, over the steps of a run."""
    measure = used if get_num_gpu() else resident_memory.resident
    points = resident_memory.whole(args.rom, 5000, args.steps // 2, 10, measure=measure)
    shown = ", ".join(f"{megabytes:.0f} after {step}" for step, megabytes in points)
    grown = points[-1][1] - points[1][1]
    return [f"MB: {shown}", f"{grown:+.0f} MB from step {points[1][0]} to {points[-1][0]}"]


def used(pid):
    """Megabytes that are used of the first GPU."""
    with NVMLContext() as nvml:
        return nvml.device(0).memory()["used"] / resident_memory.MB


def tests(args):
    """The tests that need a GPU, and two that may end otherwise there."""
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m"]
    ctrl_c = "examples/test_program.py::test_ctrl_c_before_the_training_exits_with_130"
    for mark, path in (("gpu", "callbacks"), ("", "models/test_channels_first.py"), ("", ctrl_c)):
        yield output_of(*pytest, mark, ROOT / "tests" / path).strip().splitlines()[-1]


STEPS = {step.__name__: step for step in (doctor, memory, where, r5, rates, r1, towers, tests)}


def run(name, args):
    """Runs a step, prints its lines as they come, and returns whether it did not fail."""
    start = time.perf_counter()

    def show(outcome, text):
        say(line(name, outcome, f"{time.perf_counter() - start:.0f} s", text), end="")

    try:
        for text in STEPS[name](args):
            show("ok", text)
    except (RuntimeError, OSError) as error:
        log = ROOT / "build" / "gpu-check" / f"{name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(str(error))
        show("failed", f"{str(error).strip().splitlines()[-1][:200]} (all of it: {log})")
        return False
    return True


def main():
    """Runs the steps; the exit code is 1 if any of them failed or was not run."""
    flags = {"seconds": 10.0, "steps": 1000, "pairs": 3, "rom": "breakout.bin", "anywhere": 0}
    args = parse_args(__doc__, only=",".join(STEPS), **flags)
    gpus = get_num_gpu()
    say(f"{gpus} GPUs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if not gpus and not args.anywhere:
        sys.exit("not run: this machine has no GPU, or CUDA_VISIBLE_DEVICES hides it")
    say("| step | outcome | time | what |\n|---|---|---|---|")
    failed = [name for name in args.only.split(",") if not run(name, args)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
