"""Predicts the step time, speed and memory of data-parallel training on 1 to 64 GPUs.

A step is compute and an exchange of gradients, which costs what compute does not hide.
docs/scaling.md explains it and compares it with measurements; `scaling_page.py` prints the tables.
"""

import math
from typing import Callable, Dict, NamedTuple, Optional

import numpy as np

FLOAT = 4  # bytes of a number
PACK = 4 << 20  # bytes
HIDDEN = 0.05  # of a step: what adds less than this to the compute is not called the limit
LIMITS = ("compute", "stragglers", "device link", "network", "server")


class Link(NamedTuple):
    """A way for bytes."""

    bandwidth: float  # bytes/s of each participant each way; of all together where `shared`
    latency: float = 0.0  # seconds that a message takes beyond its bytes
    shared: int = 0  # if not 0, cores that all participants share, as processes of one machine do

    def seconds(self, size: float, participants: int = 1, messages: int = 1) -> float:
        """How long it takes if each participant sends `size` bytes, in some messages."""
        if not self.shared:
            return size / self.bandwidth + messages * self.latency
        turns = max(1.0, participants / self.shared)
        return size * participants / self.bandwidth + messages * turns * self.latency


class Machine(NamedTuple):
    """A machine with GPUs."""

    devices: int
    between: Link  # devices: the speed of an all-reduce among them ("bus bandwidth")
    host: Link  # from a device to the memory of the CPU
    network: Link  # to other machines
    memory: float  # bytes of a device
    sums: float = 1e10  # bytes/s of gradients that the CPU of a server adds up and applies
    parallel: Optional[int] = None  # towers that compute at the same time, on cores of one machine


class Model(NamedTuple):
    """What one tower computes."""

    name: str  # as a title
    parameters: float
    compute: float  # seconds of a step of one tower, without any exchange
    batch: int  # datapoints of such a step
    unit: str = "images"  # what a datapoint is
    slots: int = 1  # numbers that the optimizer keeps for each parameter
    activations: float = 0.0  # bytes for each datapoint, from the forward to the backward pass
    datapoint: float = 0.0  # bytes as it is fed
    backward: float = 2 / 3  # share of the compute that is the backward pass
    spread: float = 0.02  # standard deviation of a tower's compute, as a share of it
    frozen: float = 0.0  # numbers that are kept but not trained, as a target network

    @property
    def size(self) -> float:
        """Bytes of the gradients."""
        return self.parameters * FLOAT


class Group(NamedTuple):
    """Where a run takes place."""

    machines: int = 1  # each with a process
    towers: int = 1  # on each machine
    servers: int = 1  # parameter servers, each on a machine of its own
    packs: int = 0  # exchanged as soon as they are computed; 0: of 4 MiB, as `CollectiveTrainer`

    @property
    def size(self) -> int:
        return self.machines * self.towers


class Exchange(NamedTuple):
    """Seconds that the exchange of a step takes, by resource, if nothing hid it."""

    early: Dict[str, float] = {}  # what can happen during the backward pass
    late: Dict[str, float] = {}  # what follows it
    ahead: Dict[str, float] = {}  # what can happen during the next forward pass
    variables: float = 2.0  # variables, gradients and packs on a device, in sizes of the model
    slots: float = 1.0  # the share of the optimizer's numbers that a device keeps


class Prediction(NamedTuple):
    """A row of the table."""

    group: Group
    step: float  # seconds
    rate: float  # datapoints/s of all towers
    efficiency: float  # of it, against as many towers that exchange nothing and never wait
    memory: float  # bytes on a device
    limit: str  # one of `LIMITS`
    seconds: Dict[str, float]  # of a step, by resource, before anything is hidden


def ring(size: float, ranks: int, link: Link) -> float:
    """Seconds of a ring all-reduce: each rank sends 2 (N - 1) messages of size/N bytes, see [1]."""
    messages = 2 * (ranks - 1)
    return link.seconds(size * messages / ranks, ranks, messages)


def expected_maximum(count: int) -> float:
    """The expected largest of `count` standard normal numbers, by integration.

    It is the integral of 1 - F(x)^N for x > 0, minus that of F(x)^N for x < 0.
    """
    x, width = np.linspace(-8, 8, 4000, retstep=True)  # not at 0, where the sign changes
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in x]) ** count
    return float(np.sum((x > 0) - below) * width)


def pipelined(first: float, second: float, parts: int) -> float:
    """Seconds of two stages of work in equal parts, each part of the second after its first."""
    return (first + second + (parts - 1) * max(first, second)) / parts


def replicated(size: float, group: Group, machine: Machine) -> Exchange:
    """`SyncMultiGPUTrainerReplicated`: each tower has all variables; the gradients are summed."""
    return Exchange({"device link": ring(size, group.towers, machine.between)})


def on_cpu(size: float, group: Group, machine: Machine) -> Exchange:
    """`SyncMultiGPUTrainerParameterServer(ps_device="cpu")`: variables in the CPU's memory."""
    way = {"device link": machine.host.seconds(size, group.towers)}
    return Exchange({**way, "server": size * group.towers / machine.sums}, ahead=way, slots=0.0)


def collective(size: float, group: Group, machine: Machine) -> Exchange:
    """`CollectiveTrainer`: towers of a machine are summed, then machines, in a ring."""
    early = {"device link": ring(size, group.towers, machine.between)}
    if group.machines > 1:
        early["network"] = ring(size, group.machines, machine.network)
        early["device link"] += 2 * machine.host.seconds(size)  # to the CPU's memory and back
    return Exchange(early, variables=3 if group.machines > 1 else 2)


def servers(size: float, group: Group, machine: Machine) -> Exchange:
    """`DistributedReplicatedTrainer`: gradients to the servers, then their variables back."""
    network, host = machine.network, machine.host.seconds(size)
    if network.shared:
        way = network.seconds(size, group.machines)
    else:
        way = network.seconds(size * max(1.0, group.machines / group.servers))
    early = {"device link": ring(size, group.towers, machine.between) + host, "network": way}
    early["server"] = size * group.machines / group.servers / machine.sums
    return Exchange(early, {"network": way, "device link": host}, slots=0.0)


TRAINERS: Dict[str, Callable[[float, Group, Machine], Exchange]] = {
    "replicated": replicated,
    "cpu": on_cpu,
    "collective": collective,
    "servers": servers,
}
ON_ONE_MACHINE = ("replicated", "cpu")


def group_of(devices: int, machine: Machine, servers: int = 1) -> Group:
    """The machines and towers that hold so many devices."""
    machines = -(-devices // machine.devices)
    return Group(machines, -(-devices // machines), servers)


def predict(model: Model, group: Group, machine: Machine, trainer: str) -> Prediction:
    """The step of a model, trained by one of `TRAINERS`.

    Raises:
      ValueError: there is no such trainer, or it does not run on several machines.
    """
    if trainer not in TRAINERS:
        raise ValueError(f"trainer must be one of {', '.join(TRAINERS)}, got {trainer!r}.")
    if group.machines > 1 and trainer in ON_ONE_MACHINE:
        raise ValueError(f"{trainer!r} runs on one machine, not on {group.machines}.")
    exchange = TRAINERS[trainer](model.size, group, machine)
    compute = model.compute * _turns(group, machine)
    waiting = model.compute * model.spread * expected_maximum(group.size)

    early, late, ahead = (sum(each.values()) for each in exchange[:3])
    forward, backward = compute * (1 - model.backward), compute * model.backward
    packs = group.packs or math.ceil(model.size / PACK)
    step = pipelined(backward, early, packs) + pipelined(ahead, forward, packs) + late + waiting

    parts = {**dict.fromkeys(LIMITS, 0.0), "compute": compute, "stragglers": waiting}
    for each in exchange[:3]:
        for name, seconds in each.items():
            parts[name] += seconds
    limit = "compute"
    if step > compute * (1 + HIDDEN):
        limit = max(LIMITS[1:], key=parts.__getitem__)
    rate = model.batch * group.size / step
    efficiency = model.compute / step
    numbers = model.parameters * (exchange.variables + model.slots * exchange.slots)
    fed = 2 * model.datapoint  # one batch in use, one staged
    memory = (numbers + model.frozen) * FLOAT + model.batch * (model.activations + fed)
    return Prediction(group, step, rate, efficiency, memory, limit, parts)


def _turns(group: Group, machine: Machine) -> float:
    """How many times as long a tower computes because others compute on the same cores."""
    if machine.parallel is None:
        return 1.0
    if group.machines == 1:
        return math.ceil(group.towers / machine.parallel)
    return max(1.0, group.size / machine.parallel)
