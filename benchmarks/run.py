"""Measures the figures of docs/performance.md: one of them, or all for the table, `make bench`.

    python benchmarks/run.py R5 [--pairs 7] [flags]          one figure, see R5 --help
    python benchmarks/run.py [--only R5,R6] [--quick]        a table of them
    python benchmarks/run.py --write                         the page from the kept results

- A figure is a function that yields contests (`_contest.py`): a row of the table, with its target
  and the sides it is measured by, ours first. It has no loop, no command line and no output.
- The sides take turns, A B A B, because the speed of a machine varies: a round gives a number, as
  the ratio of ours and the best of the others, and the median of the rounds is the result.
- `figures.py` lists the figures: function, peers, minutes, and the runs that make the table.
- What has to be a process of its own is a function, too, which `_programs.fresh` calls in one.
- Peers are scripts in `peers/` that print a rate, each run by the interpreter of its environment.
- A figure runs alone in a process; for the table this program starts processes, reads their
  `RESULT` lines (`_report.py`), and writes the page and its chart (`_chart.py`).

A figure whose peers are not installed is not measured, with a warning; one that fails is shown as
failed, and the exit code is 1. The results are kept in docs/performance/results.json, so that
`--only` renews some rows. `--quick` measures one pair each, prints the table and writes nothing.
"""

import argparse
import datetime
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from _chart import draw
from _contest import parser_of, results
from _programs import HERE, ROOT
from _report import NOT_MEASURED, insert, markdown, merge, parse, report, say
from figures import FIGURES, ROM, TF2

PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "docs" / "performance" / "results.json"
CHART = RESULTS.with_suffix(".svg")
LOGS = ROOT / ".venv" / "bench-logs"
PACKAGES = (
    *["tensorflow", "tensorflow-cpu", "tensorpack", "torch", "jax", "stable-baselines3"],
    *["envpool", "sample-factory", "array-record", "webdataset", "datasets"],
    *["torchvision", "albumentations", "grain", "opencv-python-headless", "ale-py", "numpy"],
)
RUNS = {name + run.suffix: (name, run) for name, each in FIGURES.items() for run in each.runs}
KILL_GRACE = 10  # seconds


def measure(name, argv):
    """Measures one figure in this process, and prints its results."""
    figure = FIGURES[name]
    module, _, attribute = figure.function.partition(".")
    function = getattr(importlib.import_module(module), attribute)
    parser = parser_of(name, function, figure.pairs)
    args, flags = parser.parse_known_args(argv)
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    if flags and "flags" not in wanted:
        parser.error(f"unrecognized arguments: {' '.join(flags)}")
    given = dict(vars(args), flags=flags)
    contests = function(**{key: given[key] for key in wanted})
    report(*results(name, contests, args.pairs, args.alone))


def python_of(environment):
    """The interpreter of an environment; this one for the one that this runs in."""
    path = ROOT / environment / "bin" / "python"
    return sys.executable if environment == TF2 else str(path)


def environments_of(name):
    """Of a run: its own, and those of the peers."""
    figure, run = RUNS[name]
    return [run.environment, *(f".venv-peer-{peer}" for peer in FIGURES[figure].peers)]


def missing(name):
    """Why a run cannot take place, empty if it can."""
    lacking = [each for each in environments_of(name) if not os.path.exists(python_of(each))]
    if not lacking:
        return ""
    remedy = "run make bench-peers" if "peer" in lacking[0] else f"no {lacking[0]}"
    return f"{NOT_MEASURED}: {remedy}"


def versions_of(environment):
    """What is installed in an environment, as text."""
    python = python_of(environment)
    listed = subprocess.check_output([python, "-m", "pip", "list", "--format", "freeze"], text=True)
    found = dict(line.lower().replace("_", "-").split("==")[:2] for line in listed.split())
    shown = [f"{name} {found[name]}" for name in PACKAGES if name in found]
    version = subprocess.check_output([python, "--version"], text=True).strip()
    return ", ".join([version, *shown])


def machine():
    """The processor, its cores and the memory, as text; from /proc, so Linux only."""
    cpu = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search("MemTotal: *([0-9]+)", Path("/proc/meminfo").read_text())
    name, size = cpu.group(1) if cpu else "unknown processor", int(memory.group(1)) / 2**20
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {size:.0f} GiB, no GPU used"


def command_of(name, quick):
    """The command line of a run."""
    figure, run = RUNS[name]
    flags = run.flags
    if ROM in flags:
        from tensorpack.RL import find_rom

        flags = [find_rom("breakout.bin") if flag == ROM else flag for flag in flags]
    short = ["--pairs", "1", *FIGURES[figure].quick] if quick else []
    return [python_of(run.environment), str(HERE / "run.py"), figure, *flags, *short]


def result(name, status, rows=(), versions=None):
    """What is known of a run, in a form that JSON can hold; see `_report.markdown`."""
    figure, run = RUNS[name]
    return {
        "figure": figure,
        "title": FIGURES[figure].title,
        "where": run.where,
        "status": status,
        "date": datetime.date.today().isoformat(),
        "rows": [row._asdict() for row in rows],
        "versions": versions or {},
    }


def run(name, quick):
    """Measures the figure of a run in a process, and keeps what it printed; returns the result."""
    limit = 3 * 60 * FIGURES[RUNS[name][0]].minutes + 60
    text, status = _output(command_of(name, quick), limit)
    rows = parse(text)
    if status == "ok" and not rows:
        status = "failed: it printed no result"
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"{name}.txt").write_text(text)
    return result(name, status, rows, {each: versions_of(each) for each in environments_of(name)})


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
    """The names of the runs of some figures.

    Raises:
      SystemExit: there is no such figure.
    """
    wanted = set(only.upper().split(",")) if only else {name.upper() for name in FIGURES}
    unknown = wanted - {name.upper() for name in FIGURES}
    if unknown:
        raise SystemExit(f"no such figure: {', '.join(sorted(unknown))}")
    return [name for name, (figure, _) in RUNS.items() if figure.upper() in wanted]


def run_all(names, quick):
    """Runs what can be run, with a line about each; returns name to result."""
    done = {}
    for index, name in enumerate(names, 1):
        figure, start, why = FIGURES[RUNS[name][0]], time.perf_counter(), missing(name)
        say(f"[{index}/{len(names)}] {name} {figure.title} ({figure.minutes:g} min) ...", end=" ")
        done[name] = result(name, why) if why else run(name, quick)
        status = done[name]["status"]
        say(f"{status} after {time.perf_counter() - start:.0f} s")
        for row in done[name]["rows"]:
            say(f"    {row['what']}: {row['value']:.4g} {row['unit']} (target {row['target']})")
        if status.startswith(NOT_MEASURED):
            sys.stderr.write(f"warning: {name} is {status}\n")
        elif status != "ok":
            sys.stderr.write(f"warning: {name} {status}, see {LOGS / name}.txt\n")
    return done


def write(found):
    """Writes the chart, and the table into the page."""
    CHART.write_text(draw(found, list(RUNS)))
    PAGE.write_text(insert(PAGE.read_text(), markdown(found, list(RUNS))))
    say(f"wrote {PAGE}")


def main(argv):
    """Measures, writes the page, and says whether all figures could be measured."""
    if argv and argv[0] in FIGURES:
        measure(argv[0], argv[1:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="R5,R6", help="these figures")
    parser.add_argument("--quick", action="store_true", help="one pair each, and write nothing")
    parser.add_argument("--write", action="store_true", help="write what is kept, measure nothing")
    args = parser.parse_args(argv)
    if args.write:
        write(json.loads(RESULTS.read_text()))
        return
    names, load = chosen(args.only), os.getloadavg()[0]
    if not args.quick:
        minutes = sum(FIGURES[RUNS[name][0]].minutes for name in names)
        say(f"about {minutes:.0f} minutes on two idle cores")
    if load > 0.5:
        sys.stderr.write(f"warning: the load is {load:.1f}; figures count on an idle machine\n")
    done = run_all(names, args.quick)
    found = {"machine": machine(), "jobs": done}
    if args.quick:
        say("\n" + markdown(found, list(RUNS)))
    else:
        found = merge(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}, found)
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        write(found)
    sys.exit(any(each["status"].startswith("failed") for each in done.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
