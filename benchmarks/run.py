"""Measures the figures of docs/performance.md: one of them, or all for the table, `make bench`.

    python benchmarks/run.py R5 [--pairs 7] [flags]          one figure, see R5 --help
    python benchmarks/run.py [--only R5,R6] [--quick]        a table of them

- `figures.py` lists the figures. A figure is a function that yields contests (`_contest.py`): a row
  of the table, with its target and the sides it is measured by, ours first.
- The sides take turns, A B A B, because the speed of a machine varies: a round gives a number, as
  the ratio of ours and the best of the others, and the median of the rounds is the result.
- What has to be a process of its own is a function, too, which `_programs.fresh` calls in one.
- Peers are scripts in `peers/` that print a rate, each run by the interpreter of its environment.
- For the table each figure is a process, whose rows are kept in docs/performance/results.json;
  `_report.py` makes the table of them, `_chart.py` the picture.

A figure whose peers are not installed is left out, and says so; if one fails, the exit code is 1.
What is not measured keeps its rows, if they are of this machine.
"""

import argparse
import datetime
import functools
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from _chart import draw
from _contest import call
from _programs import HERE, RETURNED, ROOT, output_of, returned
from _report import Row, insert, line, markdown, say
from figures import FIGURES, TF1, TF2

PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "docs" / "performance" / "results.json"
CHART = RESULTS.with_suffix(".svg")
LOGS = ROOT / ".venv" / "bench-logs"
PACKAGES = (
    *["tensorflow", "tensorflow-cpu", "tensorpack", "torch", "stable-baselines3"],
    *["envpool", "array-record", "datasets", "lmdb"],
    *["torchvision", "albumentations", "grain", "opencv-python-headless", "ale-py", "numpy"],
)


def measure_here(name, argv):
    """Measures one figure in this process; prints its rows, and again for `rows_of`."""
    figure = FIGURES[name]
    module, _, attribute = figure.function.partition(".")
    function = getattr(importlib.import_module(module), attribute)
    rows = call(function, name, [*figure.flags, *argv], figure.pairs)
    say("".join(line(name, *row.cells()) for row in rows), end="")
    say(RETURNED + json.dumps([row._asdict() for row in rows]))


def rows_of(name, *flags, **options):
    """The rows of a figure, measured in a process; options are those of `output_of`."""
    text = output_of(HERE / "run.py", name, *flags, **options)
    return [Row(**fields) for fields in returned(text)]


def environments_of(figure):
    """Name -> interpreter, of the figure itself and of its peers."""
    names = [figure.environment, *(f".venv-peer-{peer}" for peer in figure.peers)]
    paths = {name: str(ROOT / name / "bin" / "python") for name in names}
    return {name: sys.executable if name == TF2 else path for name, path in paths.items()}


@functools.lru_cache(maxsize=None)
def versions_of(python):
    """What is installed beside an interpreter, as text."""
    listed = subprocess.check_output([python, "-m", "pip", "list", "--format", "freeze"], text=True)
    versions = dict(each.lower().replace("_", "-").split("==")[:2] for each in listed.split())
    shown = [f"{name} {versions[name]}" for name in PACKAGES if name in versions]
    return ", ".join([subprocess.check_output([python, "--version"], text=True).strip(), *shown])


def machine():
    """The processor, its cores and the memory, as text; from /proc, so Linux only."""
    cpu = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search("MemTotal: *([0-9]+)", Path("/proc/meminfo").read_text())
    name, size = cpu.group(1) if cpu else "unknown processor", int(memory.group(1)) / 2**20
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {size:.0f} GiB, no GPU used"


def start(kept, here, quick):
    """The results to add to: the kept ones if they are of this machine, since one table is."""
    if kept["machine"] == here and not quick:
        return kept
    return {"machine": here, "versions": {}, "runs": {}}


def run(name, quick, results):
    """Measures a figure in a process, and adds its rows to the results; says if it failed."""
    figure, log, begun = FIGURES[name], LOGS / f"{name}.txt", time.perf_counter()
    pythons = environments_of(figure)
    missing = [each for each, python in pythons.items() if not os.path.exists(python)]
    if missing:
        say(f"not measured: there is no {missing[0]}, see make bench-peers")
        return False
    flags = ["--pairs", "1"] if quick else []
    if figure.environment == TF1 and figure.function.startswith("dqn."):
        from tensorpack.RL import find_rom

        flags += ["--rom", find_rom("breakout.bin")]  # the ale-py of TensorFlow 1.15 has no games
    options = {"python": pythons[figure.environment], "limit": 60 * (1 + 3 * figure.minutes)}
    LOGS.mkdir(parents=True, exist_ok=True)
    try:
        text = output_of(HERE / "run.py", name, *flags, **options)
    except RuntimeError as error:
        log.write_text(str(error))
        say(f"failed, see {log}")
        return True
    log.write_text(text)
    say(f"{time.perf_counter() - begun:.0f} s")
    say("".join("    " + line(*Row(**fields).cells()) for fields in returned(text)), end="")
    today = datetime.date.today().isoformat()
    results["runs"][name] = {"date": today, "rows": returned(text)}
    results["versions"].update((each, versions_of(python)) for each, python in pythons.items())
    return False


def write(results):
    """Writes the chart, and the table into the page."""
    CHART.write_text(draw(results))
    PAGE.write_text(insert(PAGE.read_text(), markdown(results)))
    say(f"wrote {PAGE}")


def main(argv):
    """Measures, writes the page, and says whether all figures could be measured."""
    if argv and argv[0] in FIGURES:
        measure_here(argv[0], argv[1:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    figures = list(dict.fromkeys(name.partition("-")[0] for name in FIGURES))
    parser.add_argument("--only", metavar="R5,R6", default=",".join(figures), help="these figures")
    parser.add_argument("--quick", action="store_true", help="one pair each, and write nothing")
    parser.add_argument("--write", action="store_true", help="write what is kept, measure nothing")
    args = parser.parse_args(argv)
    kept = json.loads(RESULTS.read_text())
    if args.write:
        write(kept)
        return
    only, load = args.only.upper().split(","), os.getloadavg()[0]
    if not set(only) <= set(figures):
        parser.error(f"no such figure: {', '.join(set(only) - set(figures))}")
    names = [name for name in FIGURES if name.partition("-")[0] in only]
    minutes = sum(FIGURES[name].minutes for name in names)
    say(f"about {minutes:.1f} min on two idle cores, less with --quick")
    if load > 0.5:
        sys.stderr.write(f"warning: the load is {load:.1f}; figures count on an idle machine\n")
    results, failed = start(kept, machine(), args.quick), []
    for index, name in enumerate(names, 1):
        figure = FIGURES[name]
        say(f"[{index}/{len(names)}] {name} {figure.title} ({figure.minutes:g} min) ...", end=" ")
        failed += [name] * run(name, args.quick, results)
        if not args.quick:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if args.quick:
        say("\n" + markdown(results))
    else:
        write(results)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
