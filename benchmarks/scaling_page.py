"""Writes the tables of docs/scaling.md from the simulator and the measured points.

    python benchmarks/scaling_page.py --write    renews docs/scaling.md
    python benchmarks/scaling_page.py --parameters 60e6 --compute 0.12 --batch 64 --network 25

What others published of machines, links and
models is in docs/scaling/published.json, what was measured here in docs/scaling/measured.json.
"""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Iterator, Optional, Tuple

from _report import say
from scaling import FLOAT, TRAINERS, Group, Link, Machine, Model, group_of, predict, ring

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "scaling.md"
BLOCK = re.compile(r"(?P<begin><!-- scaling: (?P<name>[\w-]+) -->\n).*?(?=<!-- end -->)", re.S)
GB = 1e9
SPREAD = 0.025  # so that 8 GPUs of a DGX A100 are 7.7 times as fast as one [4]
# All processes of this machine share its two cores; what is sent costs cycles of both ends.
WIRE, ADDING = Link(1.7 * GB, 0.5e-3, shared=2), Link(10 * GB, shared=2)
LOOPBACK = Machine(1, ADDING, Link(math.inf), WIRE, 24 * GB, 10 * GB, parallel=2)
SIZES = (1, 2, 4, 8, 16, 32, 64)
EXCHANGES = ("all-reduce", "packs", "servers")
STEPS_OF = {  # what they are to the simulator, and whether the count is of towers
    "steps": ("collective", False),
    "towers": ("replicated", True),
    "SyncMultiGPUTrainerReplicated": ("replicated", True),
    "SyncMultiGPUTrainerParameterServer": ("cpu", True),
    "DistributedReplicatedTrainer": ("servers", False),
    "CollectiveTrainer": ("collective", False),
}
GIVEN = ("kind", "processes", "bytes", "tensorflow")
ONE_OP = 32e6  # bytes in a message, beyond which TensorFlow is slow


def line_rate(gigabits: float) -> Link:
    """What NCCL makes of a network with RDMA."""
    return Link(gigabits * 1e9 / 8, 5e-6)


def _known(name: str) -> dict:
    return json.loads((DOCS / "scaling" / f"{name}.json").read_text(encoding="utf-8"))


def _model(row: dict) -> Model:
    given = {name: row[name] for name in Model._fields if name in row}
    return Model(**{"name": "", "compute": row["batch"] / row["alone"], **given}, spread=SPREAD)


KNOWN = _known("published")
LINKS = {name: Link(row["bandwidth"], row["latency"]) for name, row in KNOWN["links"].items()}
MACHINES = {
    name: Machine(**{key: LINKS.get(value, value) for key, value in row.items()})
    for name, row in KNOWN["machines"].items()
}
MODELS = {name: (_model(row), MACHINES[row["machine"]]) for name, row in KNOWN["models"].items()}


def points() -> Iterator[Tuple[dict, float]]:
    """Each point of docs/scaling/measured.json, but those of too large messages, and what the
    simulator says of it, in ms.
    """
    rows = _known("measured")["points"]
    alone = {
        (row["kind"], row["tensorflow"], row["bytes"]): row["ms"] / 1000
        for row in rows
        if row["processes"] == 1
    }
    for row in rows:
        kind, count, size, version = (row[name] for name in GIVEN)
        message = {"all-reduce": size / count, "servers": size}.get(kind, 0)
        is_given = kind == "SimpleTrainer" or count == 1 and kind in ("steps", "towers")
        if is_given or message > ONE_OP:
            continue
        if kind == "servers":
            seconds = 2 * WIRE.seconds(size, count)
        elif kind in EXCHANGES:
            seconds = ring(size, count, WIRE)
        else:  # a step of one is given; nothing is hidden on this machine
            trainer, of_towers = STEPS_OF[kind]
            one = alone[kind if kind in ("steps", "towers") else "SimpleTrainer", version, size]
            group = Group(1, count, packs=1) if of_towers else Group(count, 1, packs=1)
            model = Model("", size / FLOAT, one, 1, spread=0.0)
            seconds = predict(model, group, LOOPBACK, trainer).step
        yield row, seconds * 1000


def published() -> Iterator[Tuple[dict, int, float, float]]:
    """Each published figure: its row of the file, GPUs, datapoints/s published and predicted."""
    for row in KNOWN["speeds"]:
        model, machine = _model(row), MACHINES[row["machine"]]
        for devices, rate, servers in row["rates"]:
            group = group_of(devices, machine, servers)
            yield row, devices, rate, predict(model, group, machine, row["trainer"]).rate


def model_table(
    model: Model, machine: Machine, trainer: Optional[str] = None, servers: int = 1
) -> str:
    """A model on 1 to 64 GPUs; without a trainer replicated in a machine, collective across them.

    Raises:
      ValueError: the trainer does not run on so many machines.
    """
    rows = []
    for devices in SIZES:
        group = group_of(devices, machine, servers)
        usual = "replicated" if group.machines == 1 else "collective"
        got = predict(model, group, machine, trainer or usual)
        rows.append(
            f"| {devices} | {group.machines} | {got.step * 1000:.1f} | {got.rate:,.0f} | "
            f"{got.efficiency:.0%} | {got.memory / GB:.1f} | {got.limit} |"
        )
    head = f"| GPUs | machines | ms a step | {model.unit}/s | efficiency | GB a GPU | limit |"
    return "\n".join([head, "|---" * 7 + "|", *rows, ""])


def render(page: str) -> str:
    """The page with its tables renewed.

    Raises:
      ValueError: a table has no place, or a place no table.
    """
    made = {name.lower(): model_table(*each) for name, each in MODELS.items()}
    places = [match.group("name") for match in BLOCK.finditer(page)]
    if sorted(places) != sorted(made):
        raise ValueError(f"docs/scaling.md has places for {places}, the tables are {list(made)}.")
    return BLOCK.sub(lambda match: match.group("begin") + made[match.group("name")], page)


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
        return
    if None in (args.parameters, args.compute, args.batch):
        parser.error("give --parameters, --compute and --batch, or --write")
    model = Model("", args.parameters, args.compute, args.batch, "datapoints", spread=SPREAD)
    machine = MACHINES[args.machine]
    if args.network:
        machine = machine._replace(network=line_rate(args.network))
    say(model_table(model, machine, args.trainer, args.servers))


if __name__ == "__main__":
    main()
