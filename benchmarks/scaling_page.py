"""Writes the tables and the curve of docs/scaling.md from the simulator and the measured points.

    python benchmarks/scaling_page.py --write    renews docs/scaling.md and docs/scaling/*.svg
    python benchmarks/scaling_page.py --parameters 60e6 --compute 0.12 --batch 64 --network 25

The curve needs matplotlib (`pip install matplotlib`). All figures of machines and models are
here, each with its source as in docs/scaling.md.
"""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from _report import say
from scaling import FLOAT, TRAINERS, Group, Machine, Model, group_of, predict, ring
from scaling_data import (
    GB,
    GRPC,
    LOOPBACK,
    MACHINES,
    MODELS,
    PUBLISHED,
    SPREAD,
    Published,
    line_rate,
)

__all__ = ["CURVE", "PAGE", "draw", "points", "published", "render", "tables"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scaling.md"
POINTS = ROOT / "docs" / "scaling" / "measured.json"
CURVE = ROOT / "docs" / "scaling" / "curve.svg"
BLOCK = re.compile(
    r"(?P<begin><!-- scaling: (?P<name>[\w-]+) -->\n)(?P<old>.*?)(?=<!-- end -->)", re.S
)

SIZES = (1, 2, 4, 8, 16, 32, 64)
WAYS = {"all-reduce": ("collective", 1), "8 servers": ("servers", 8), "1 server": ("servers", 1)}
LEARNERS = (
    ("two cores, no GPU: 14 steps/s", 14),
    ("GTX 1080: 107 steps/s", 107),
    ("three times as fast, planned: 321 steps/s", 321),
)
EXCHANGES = ("all-reduce", "packs", "servers")
BARE_STEPS = ("steps", "towers")
STEPS_OF = {  # what they are to the simulator, and whether the count is of towers
    "steps": ("collective", False),
    "towers": ("replicated", True),
    "SyncMultiGPUTrainerReplicated": ("replicated", True),
    "SyncMultiGPUTrainerParameterServer": ("cpu", True),
    "DistributedReplicatedTrainer": ("servers", False),
    "CollectiveTrainer": ("collective", False),
}
ONE_OP = 32e6  # bytes in a message, beyond which TensorFlow is slow


class Point(NamedTuple):
    """A figure that was measured here, and what the simulator says of it, both in ms."""

    kind: str
    processes: int
    size: int
    packs: int
    tensorflow: str
    measured: float
    predicted: float


# ------------------------------------------------------------------ comparisons


def trainer_for(group: Group) -> str:
    """The trainer that the tables are of."""
    return "replicated" if group.machines == 1 else "collective"


def points() -> Iterator[Point]:
    """Each point of docs/scaling/measured.json, but those of too large messages."""
    rows = json.loads(POINTS.read_text(encoding="utf-8"))["points"]
    alone = {
        (row["kind"], row["tensorflow"], row["bytes"]): row["ms"]
        for row in rows
        if row["processes"] == 1
    }
    for row in rows:
        kind, processes, size, version = (
            row[name] for name in ("kind", "processes", "bytes", "tensorflow")
        )
        message = {"all-reduce": size / processes, "servers": size}.get(kind, 0)
        if kind == "SimpleTrainer" or message > ONE_OP:
            continue
        if kind in EXCHANGES:
            seconds = exchanged(kind, processes, size)
        elif (kind, processes) in (("steps", 1), ("towers", 1)):
            continue  # these are what the simulator is given
        else:
            one = alone[kind if kind in BARE_STEPS else "SimpleTrainer", version, size]
            seconds = stepped(kind, processes, size, one / 1000)
        known = (kind, processes, size, row["packs"], version, row["ms"])
        yield Point(*known, seconds * 1000)


def exchanged(kind: str, processes: int, size: int) -> float:
    """Seconds of an exchange on this machine, see benchmarks/scaling_points.py."""
    network = LOOPBACK.network
    if kind == "servers":
        return 2 * network.seconds(size, processes)
    return ring(size, processes, network)


def stepped(kind: str, count: int, size: int, alone: float) -> float:
    """Seconds of a step on this machine, on which nothing is hidden.

    Args:
      kind: a trainer, or of `BARE_STEPS`.
      count: of processes or towers.
      size: bytes of the gradients.
      alone: seconds of a step of one.
    """
    trainer, of_towers = STEPS_OF[kind]
    group = Group(1, count, packs=1) if of_towers else Group(count, 1, packs=1)
    model = Model("", size / FLOAT, alone, 1, spread=0.0)
    return predict(model, group, LOOPBACK, trainer).step


def published() -> Iterator[Tuple[Published, int, float, float]]:
    """Each published figure: of what, GPUs, datapoints/s published and predicted."""
    for each in PUBLISHED:
        name, millions = each.model
        model = Model(name, millions * 1e6, each.batch / each.alone, each.batch, spread=SPREAD)
        machine = MACHINES[each.machine]
        for devices, rate, servers in each.rates:
            group = group_of(devices, machine, servers)
            yield each, devices, rate, predict(model, group, machine, each.trainer).rate


# ------------------------------------------------------------------ tables


def table(head: str, rows: List[str]) -> str:
    columns = head.count("|") - 1
    return "\n".join([head, "|---" * columns + "|", *rows]) + "\n"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bytes_text(size: int) -> str:
    return f"{size // 1000:,} kB" if size < 1e6 else f"{size // 1000000:,} MB"


def model_table(
    model: Model, machine: Machine, trainer: Optional[str] = None, servers: int = 1
) -> str:
    """A model on 1 to 64 GPUs.

    Args:
      model: to train.
      machine: to train it on.
      trainer: one of `TRAINERS`; None for replicated ones, in a machine and across machines.
      servers: parameter servers, on machines of their own.

    Raises:
      ValueError: the trainer does not run on so many machines.
    """
    rows = []
    for devices in SIZES:
        group = group_of(devices, machine, servers)
        got = predict(model, group, machine, trainer or trainer_for(group))
        rows.append(
            f"| {devices} | {group.machines} | {got.step * 1000:.1f} | {number(got.rate)} | "
            f"{got.efficiency:.0%} | {got.memory / GB:.1f} | {got.limit} |"
        )
    return table(
        f"| GPUs | machines | ms a step | {model.unit}/s | efficiency | GB a GPU | limit |", rows
    )


def network_table() -> str:
    """The efficiency of 64 GPUs by network and trainer."""
    networks = [("gRPC, 10 Gbit/s or more", GRPC)]
    networks += [(f"{speed} Gbit/s at line rate", line_rate(speed)) for speed in (10, 25, 100, 200)]
    rows = []
    for label, link in networks:
        cells = []
        for model, machine_name in MODELS.values():
            machine = MACHINES[machine_name]._replace(network=link)
            for trainer, servers in WAYS.values():
                group = group_of(64, machine, servers)
                share = predict(model._replace(actors=None), group, machine, trainer).efficiency
                cells.append(f"{share:.0%}")
        rows.append(f"| {label} | " + " | ".join(cells) + " |")
    names = " | ".join(f"{name}, {way}" for name in MODELS for way in WAYS)
    return table(f"| network | {names} |", rows)


def actor_table() -> str:
    """The cores that players need, by speed of the learner and GPUs."""
    actors, rows = MODELS["DQN"][0].actors, []
    for label, steps in LEARNERS:
        for devices in (1, 8, 64):
            transitions = steps * actors.transitions * devices
            cores = math.ceil(transitions / actors.rate)
            rows.append(f"| {label} | {devices} | {number(transitions)} | {cores} |")
    return table("| learner | GPUs | transitions/s | cores that play |", rows)


def published_table() -> str:
    rows = []
    for each, devices, rate, said in published():
        rows.append(
            f"| {each.model[0]} | {each.machine} | `{each.trainer}` | {devices} | {number(rate)} | "
            f"{number(said)} | {said / rate:.2f} | {each.source} |"
        )
    return table(
        "| model | machine | trainer | GPUs | published/s | predicted/s | ratio | source |", rows
    )


def points_table() -> str:
    """What was measured, and in brackets what is predicted, by number of processes."""
    cells: Dict[Tuple[str, int, int, str], Dict[int, str]] = {}
    for each in points():
        row = cells.setdefault((each.kind, each.size, each.packs, each.tensorflow), {})
        row[each.processes] = f"{each.measured:.3g} ({each.predicted:.3g})"
    rows = []
    order = [*EXCHANGES, *STEPS_OF]
    for key in sorted(cells, key=lambda each: (order.index(each[0]), each[3], *each[1:3])):
        kind, size, packs, version = key
        row = cells[key]
        ops = f", {packs} ops" if packs > 1 else ""
        columns = " | ".join(row.get(count, "") for count in (1, 2, 3, 4))
        rows.append(f"| {kind}, {bytes_text(size)}{ops} | {version} | {columns} |")
    return table("| what | TensorFlow | 1 process | 2 | 3 | 4 |", rows)


def tables() -> Dict[str, str]:
    """All tables of the page, by name."""
    made = {
        name.lower(): model_table(model, MACHINES[machine])
        for name, (model, machine) in MODELS.items()
    }
    made.update(network=network_table(), actors=actor_table())
    made.update(published=published_table(), measured=points_table())
    return made


def render(page: str) -> str:
    """The page with its tables renewed.

    Raises:
      ValueError: a table has no place, or a place no table.
    """
    made = tables()
    places = [match.group("name") for match in BLOCK.finditer(page)]
    if sorted(places) != sorted(made):
        raise ValueError(f"docs/scaling.md has places for {places}, the tables are {list(made)}.")
    return BLOCK.sub(lambda match: match.group("begin") + made[match.group("name")], page)


# ------------------------------------------------------------------ the curve


def draw(path: Path) -> None:
    """Draws the efficiency over the number of GPUs, the same file in each run.

    Raises:
      ImportError: matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "scaling", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 4.5))
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        for name, (model, machine_name) in MODELS.items():
            for label, link, style in (
                ("gRPC", GRPC, ":"),
                ("25 Gbit/s", line_rate(25), "--"),
                ("100 Gbit/s", line_rate(100), "-"),
            ):
                machine = MACHINES[machine_name]._replace(network=link)
                groups = [group_of(devices, machine) for devices in SIZES]
                shares = [
                    predict(model._replace(actors=None), group, machine, trainer_for(group))
                    for group in groups
                ]
                axes.plot(
                    SIZES,
                    [each.efficiency for each in shares],
                    style,
                    color=f"C{list(MODELS).index(name)}",
                    label=f"{name}, {label}",
                )
        axes.set(xlabel="GPUs, 8 on a machine", ylabel="efficiency", xscale="log", ylim=(0, 1.05))
        axes.set_xticks(SIZES, [str(each) for each in SIZES])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(str(path), metadata={"Date": None})


def main() -> None:
    """Writes the page, or prints the table of a model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="renew the page")
    parser.add_argument("--parameters", type=float, help="of the model")
    parser.add_argument("--compute", type=float, help="seconds of a step on one GPU")
    parser.add_argument("--batch", type=int, help="datapoints of this step")
    parser.add_argument("--machine", choices=list(MACHINES), default=next(iter(MACHINES)))
    parser.add_argument("--network", type=float, help="Gbit/s at line rate; else gRPC")
    parser.add_argument("--trainer", choices=list(TRAINERS))
    parser.add_argument("--servers", type=int, default=1)
    args = parser.parse_args()
    if args.write:
        PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        draw(CURVE)
        return
    if None in (args.parameters, args.compute, args.batch):
        parser.error("give --parameters, --compute and --batch, or --write")
    model = Model("", args.parameters, args.compute, args.batch, "datapoints", spread=SPREAD)
    machine = MACHINES[args.machine]
    if args.network:
        machine = machine._replace(network=line_rate(args.network))
    try:
        say(model_table(model, machine, args.trainer, args.servers))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
