"""Runs the benchmarks one by one and writes the table in docs/performance.md: `make bench`.

    python benchmarks/run_all.py [--only R5,R6] [--quick]

A figure whose peers are not installed is not measured, with a warning; one that fails is shown as
failed, and the exit code is 1. The results are kept in docs/performance/results.json, so that
`--only` renews some rows. `--quick` measures one pair each, prints the table and writes nothing.
"""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

from _programs import ROOT, rom_path
from _report import NOT_MEASURED, insert, markdown, merge, parse, say

HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "docs" / "performance" / "results.json"
LOGS = ROOT / ".venv" / "bench-logs"
PACKAGES = (
    *["tensorflow", "tensorflow-cpu", "tensorpack", "torch", "stable-baselines3"],
    *["torchvision", "albumentations", "grain", "opencv-python-headless", "ale-py", "numpy"],
)
# Measured on nothing but this project, or in the environment of TensorFlow 1.15, see .ci/run.
TF2, TF1 = ".venv", ".venv-tf1"
ROM = "{rom}"  # stands for the path of the game, for an ale-py that has none
KILL_GRACE = 10  # seconds


class Job(NamedTuple):
    """A script as it is run here.

    Attributes:
      figure: as in docs/performance.md.
      title: what it measures, for when it does not.
      command: the script and its arguments.
      minutes: how long it takes on two cores; the limit is three times as long.
      where: what the row is to be told apart by.
      environment: whose interpreter runs it.
      peers: the other environments it needs.
      quick: the arguments that make it as short as it can be.
    """

    figure: str
    title: str
    command: Tuple[str, ...]
    minutes: float
    where: str = ""
    environment: str = TF2
    peers: Tuple[str, ...] = ()
    quick: Tuple[str, ...] = ("--pairs", "1")


TENSORPACK, SB3, TORCH, IMAGES = (
    f".venv-peer-{name}" for name in ("tensorpack-0.11", "sb3", "torch", "images")
)
JOBS: Dict[str, Job] = {
    "R1": Job("R1", "whole run / bare update", ("r1_dqn_run.py",), 4, "TF 2"),
    "R1-acting": Job(
        *["R1", "whole run / bare update, exploration 0.1"],
        ("r1_dqn_run.py", "--exploration", "0.1", "--label", "whole DQN run / bare update, acting"),
        *[4, "TF 2, exploration 0.1"],
    ),
    "R1-players": Job(
        *["R1", "whole run / bare update, exploration 0.1, 4 games"],
        (
            *["r1_dqn_run.py", "--exploration", "0.1", "--num-players", "4"],
            *["--label", "whole DQN run / bare update, acting for 4 games"],
        ),
        *[4, "TF 2, exploration 0.1, 4 games"],
    ),
    "R1-tf1": Job(
        *["R1", "whole run / bare update", ("r1_dqn_run.py", "--rom", ROM), 6.5, "TF 1.15", TF1]
    ),
    "R2": Job(
        *["R2", "whole run / tensorpack 0.11", ("r2_tensorpack_011.py",), 8],
        peers=(TENSORPACK,),
    ),
    "R3": Job("R3", "whole run / stable-baselines3", ("r3_sb3.py",), 5, peers=(SB3,)),
    "R3-bf16": Job(
        *["R3", "whole run / stable-baselines3, 4 games, bf16"],
        ("r3_sb3.py", "--games", "4", "--precision", "bf16"),
        *[5, "4 games, bf16"],
        peers=(SB3,),
    ),
    "R4": Job("R4", "filling / bare environments", ("r4_filling.py",), 1.2),
    "R5": Job("R5", "step / bare callable", ("r5_step.py",), 0.5, "TF 2"),
    "R5-tf1": Job("R5", "step / bare callable", ("r5_step.py",), 0.5, "TF 1.15", TF1),
    "R6": Job("R6", "queue step / bare queue loop", ("r6_queue_step.py",), 0.5, "TF 2"),
    "R6-tf1": Job("R6", "queue step / bare queue loop", ("r6_queue_step.py",), 0.5, "TF 1.15", TF1),
    "R7": Job("R7", "sampling", ("r7_sampling.py",), 1.5, quick=("--rounds", "1")),
    "R8": Job(
        *["R8", "parallel dataflow", ("r8_dataflow.py",), 11],
        peers=(TENSORPACK, TORCH),
    ),
    "R9": Job("R9", "import tensorpack", ("r9_import.py",), 0.1),
    "R10": Job(
        *["R10", "resident memory", ("r10_memory.py", "--pairs", "2", "--steps", "300"), 6],
        quick=("--pairs", "1", "--epochs", "4", "--steps", "60"),
    ),
    "R11": Job("R11", "images", ("r11_images.py",), 15, peers=(IMAGES,)),
    "R13": Job(
        *["R13", "all-reduce of gradients", ("r13_all_reduce.py",), 2],
        peers=(TORCH,),
        quick=("--rounds", "1", "--kilobytes", "1,1000"),
    ),
    "R17": Job("R17", "actor-critic / stable-baselines3", ("a2c_sb3.py",), 5, peers=(SB3,)),
}


def python_of(environment):
    """The interpreter of an environment; this one for the one that this runs in."""
    path = ROOT / environment / "bin" / "python"
    return sys.executable if environment == TF2 else str(path)


def missing(job):
    """Why a job cannot be run, empty if it can."""
    needed = [*job.peers, *([] if job.environment == TF2 else [job.environment])]
    lacking = [name for name in needed if not os.path.exists(python_of(name))]
    if not lacking:
        return ""
    remedy = "run make bench-peers" if lacking[0] in job.peers else f"no {lacking[0]}"
    return f"{NOT_MEASURED}: {remedy}"


def versions_of(environment):
    """What is installed in an environment, as text."""
    command = [python_of(environment), "-m", "pip", "list", "--format", "json"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    installed = {item["name"].lower().replace("_", "-"): item for item in json.loads(listed.stdout)}
    shown = [f"{name} {installed[name]['version']}" for name in PACKAGES if name in installed]
    python = subprocess.run(
        [python_of(environment), "-c", "import platform; print(platform.python_version())"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ", ".join([f"Python {python.stdout.strip()}", *shown])


def machine():
    """The processor, its cores and the memory, as text; from /proc, so Linux only."""
    cpu, memory = "unknown processor", 0.0
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal"):
            memory = int(line.split()[1]) / 2**20
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, no GPU used"


def run(name, job, quick):
    """Runs one script and keeps what it printed; returns its `result`."""
    script, *flags = job.command
    flags = [rom_path("breakout.bin") if flag == ROM else flag for flag in flags]
    command = [python_of(job.environment), str(HERE / script), *flags]
    command += job.quick if quick else ()
    text, status = _output(command, 3 * 60 * job.minutes + 60)
    rows = parse(text)
    if status == "ok" and not rows:
        status = "failed: it printed no result"
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"{name}.txt").write_text(text)
    versions = {env: versions_of(env) for env in (job.environment, *job.peers)}
    return result(job, status, rows, versions)


def result(job, status, rows=(), versions=None):
    """What is known of a job, in a form that JSON can hold; see `_report.markdown`."""
    return {
        "figure": job.figure,
        "title": job.title,
        "where": job.where,
        "status": status,
        "date": datetime.date.today().isoformat(),
        "rows": [row._asdict() for row in rows],
        "versions": versions or {},
    }


def _output(command, limit):
    """What a program prints, and "ok" or what is wrong; kills it and its children at the limit."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        cwd=str(ROOT),
        start_new_session=True,
    )
    try:
        text, _ = child.communicate(timeout=limit)
    except BaseException as error:
        os.killpg(child.pid, signal.SIGKILL)
        text, _ = child.communicate(timeout=KILL_GRACE)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return text, f"failed: not ready after {limit / 60:.0f} min"
    return text, "ok" if child.returncode == 0 else f"failed with exit code {child.returncode}"


def chosen(only):
    """The names of the jobs of some figures.

    Raises:
      SystemExit: there is no such figure.
    """
    figures = {job.figure for job in JOBS.values()}
    wanted = set(only.upper().split(",")) if only else figures
    if wanted - figures:
        raise SystemExit(f"no such figure: {', '.join(sorted(wanted - figures))}")
    return [name for name, job in JOBS.items() if job.figure in wanted]


def run_jobs(names, quick):
    """Runs the jobs that can be run, with a line about each; returns name to result."""
    done = {}
    for number, name in enumerate(names, 1):
        job, start = JOBS[name], time.perf_counter()
        why = missing(job)
        say(f"[{number}/{len(names)}] {name} {job.title} ({job.minutes:g} min) ...", end=" ")
        if why:
            done[name] = result(job, why)
            say(why)
            sys.stderr.write(f"warning: {name} is {why}\n")
            continue
        done[name] = run(name, job, quick)
        say(f"{done[name]['status']} after {time.perf_counter() - start:.0f} s")
        for row in done[name]["rows"]:
            say(f"    {row['what']}: {row['value']:.4g} {row['unit']} (target {row['target']})")
        if done[name]["status"] != "ok":
            sys.stderr.write(f"warning: {name} {done[name]['status']}, see {LOGS / name}.txt\n")
    return done


def main():
    """Measures, writes the page, and says whether all scripts ran."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="R5,R6", help="these figures")
    parser.add_argument("--quick", action="store_true", help="one pair each, and write nothing")
    args = parser.parse_args()
    names = chosen(args.only)
    if not args.quick:
        say(f"about {sum(JOBS[name].minutes for name in names):.0f} minutes on two idle cores")
    load = os.getloadavg()[0]
    if load > 0.5:
        sys.stderr.write(f"warning: the load is {load:.1f}; figures count on an idle machine\n")
    jobs = run_jobs(names, args.quick)
    new = {"machine": machine(), "jobs": jobs}
    if args.quick:
        say("\n" + markdown(new, list(JOBS)))
    else:
        old = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results = merge(old, new)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(insert(PAGE.read_text(), markdown(results, list(JOBS))))
        say(f"wrote {PAGE}")
    sys.exit(any(job["status"].startswith("failed") for job in jobs.values()))


if __name__ == "__main__":
    main()
