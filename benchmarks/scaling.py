"""Predicts the step time, speed and memory of data-parallel training on 1 to 64 GPUs.

A step is compute and an exchange of gradients, which costs what compute does not hide.
docs/scaling.md explains it and compares it with measurements; `scaling_page.py` prints the tables.
"""

import math
from typing import Callable, Dict, NamedTuple, Optional

import numpy as np

__all__ = [
    "LIMITS",
    "TRAINERS",
    "Actors",
    "Exchange",
    "Group",
    "Link",
    "Machine",
    "Model",
    "Prediction",
    "expected_maximum",
    "group_of",
    "pipelined",
    "predict",
    "ring",
]

FLOAT = 4  # bytes of a number
PACK = 4 << 20  # bytes
HIDDEN = 0.05  # of a step: what adds less than this to the compute is not called the limit
LIMITS = ("compute", "stragglers", "device link", "network", "server", "input", "actors")


class Link(NamedTuple):
    """A way for bytes.

    Attributes:
      bandwidth: bytes/s of each participant in each direction; of all together where `shared`.
      latency: seconds that a message takes beyond its bytes.
      shared: if not 0, the cores that all participants share, as processes of one machine do.
    """

    bandwidth: float
    latency: float = 0.0
    shared: int = 0

    def seconds(self, size: float, participants: int = 1, messages: int = 1) -> float:
        """How long it takes if each participant sends `size` bytes, in some messages."""
        if not self.shared:
            return size / self.bandwidth + messages * self.latency
        turns = max(1.0, participants / self.shared)
        return size * participants / self.bandwidth + messages * turns * self.latency


class Machine(NamedTuple):
    """A machine with GPUs.

    Attributes:
      devices: how many.
      between: the link between devices, the speed of an all-reduce among them ("bus bandwidth").
      host: the link of a device to the memory of the CPU.
      network: the link of the machine to others.
      memory: bytes of a device.
      sums: bytes/s of gradients that the CPU of a parameter server adds up and applies.
      inputs: datapoints/s that its CPU prepares for the devices; None if they are no limit.
      parallel: towers that compute at the same time, where all share the cores of one machine, also
        those of several "machines"; None where each has a device of its own.
    """

    devices: int
    between: Link
    host: Link
    network: Link
    memory: float
    sums: float = 1e10
    inputs: Optional[float] = None
    parallel: Optional[int] = None


class Actors(NamedTuple):
    """The players of a reinforcement learner.

    Attributes:
      transitions: that a step of one tower needs.
      rate: transitions/s that a core plays.
      cores: that play, on each machine.
    """

    transitions: float
    rate: float
    cores: int


class Model(NamedTuple):
    """What one tower computes.

    Attributes:
      name: as a title.
      parameters: how many numbers.
      compute: seconds of a step of one tower, without any exchange.
      batch: datapoints of such a step.
      unit: what a datapoint is, in the plural.
      slots: numbers that the optimizer keeps for each parameter.
      activations: bytes for each datapoint, from the forward to the backward pass.
      datapoint: bytes of a datapoint as it is fed.
      backward: share of the compute that is the backward pass.
      spread: standard deviation of a tower's compute, as a share of it.
      frozen: numbers that are kept but not trained, as a target network.
      actors: who makes the datapoints, if they are played.
    """

    name: str
    parameters: float
    compute: float
    batch: int
    unit: str = "images"
    slots: int = 1
    activations: float = 0.0
    datapoint: float = 0.0
    backward: float = 2 / 3
    spread: float = 0.02
    frozen: float = 0.0
    actors: Optional[Actors] = None

    @property
    def size(self) -> float:
        """Bytes of the gradients."""
        return self.parameters * FLOAT


class Group(NamedTuple):
    """Where a run takes place.

    Attributes:
      machines: how many, each with a process.
      towers: on each machine.
      servers: parameter servers, each on a machine of its own.
      packs: parts in which the gradients are exchanged, each as soon as it is computed; 0 for
        parts of 4 MiB, as those of `CollectiveTrainer`.
    """

    machines: int = 1
    towers: int = 1
    servers: int = 1
    packs: int = 0

    @property
    def size(self) -> int:
        return self.machines * self.towers


class Exchange(NamedTuple):
    """Seconds that the exchange of a step takes, if nothing hid it.

    Attributes:
      early: by name of the resource, what can happen during the backward pass.
      late: what follows it.
      ahead: what can happen during the next forward pass.
      busy: seconds of a step for which the servers are taken up by one worker.
      variables: the variables, gradients and packs on a device, in sizes of the model.
      slots: the share of the optimizer's numbers that a device keeps.
    """

    early: Dict[str, float]
    late: Dict[str, float]
    ahead: Dict[str, float]
    busy: float = 0.0
    variables: float = 2.0
    slots: float = 1.0


class Prediction(NamedTuple):
    """A row of the table.

    Attributes:
      group: where.
      step: seconds; for an asynchronous trainer, those of one worker.
      rate: datapoints/s of all towers.
      efficiency: of the rate, against as many towers that exchange nothing and never wait.
      memory: bytes on a device.
      limit: one of `LIMITS`.
      seconds: of a step, by name of the resource, before anything is hidden.
    """

    group: Group
    step: float
    rate: float
    efficiency: float
    memory: float
    limit: str
    seconds: Dict[str, float]


# ------------------------------------------------------------------ formulas


def ring(size: float, ranks: int, link: Link) -> float:
    """Seconds of a ring all-reduce of `size` bytes.

    Each rank sends 2 (N - 1) messages of size/N bytes: R. Thakur, R. Rabenseifner, W. Gropp,
    "Optimization of Collective Communication Operations in MPICH", 2005; P. Patarasuk, X. Yuan,
    "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
    """
    messages = 2 * (ranks - 1)
    return link.seconds(size * messages / ranks, ranks, messages)


def expected_maximum(count: int) -> float:
    """The expected largest of `count` standard normal numbers, by integration.

    `E = integral of 1 - F(x)^N for x > 0, minus that of F(x)^N for x < 0`, F the normal
    distribution (H. A. David, "Order Statistics").
    """
    x, width = np.linspace(-8, 8, 4000, retstep=True)  # not at 0, where the sign changes
    below = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in x]) ** count
    return float(np.sum((x > 0) - below) * width)


def pipelined(first: float, second: float, parts: int) -> float:
    """Seconds of two stages of work in equal parts, each part of the second after its first."""
    return (first + second + (parts - 1) * max(first, second)) / parts


# ------------------------------------------------------------------ trainers


def replicated(size: float, group: Group, machine: Machine) -> Exchange:
    """`SyncMultiGPUTrainerReplicated`: each tower has all variables; the gradients are summed."""
    if group.machines > 1:
        raise ValueError("SyncMultiGPUTrainerReplicated runs on one machine, not on several.")
    return Exchange({"device link": ring(size, group.towers, machine.between)}, {}, {})


def on_gpus(size: float, group: Group, machine: Machine) -> Exchange:
    """`SyncMultiGPUTrainerParameterServer(ps_device="gpu")`: each GPU has some of the variables."""
    if group.machines > 1:
        raise ValueError("SyncMultiGPUTrainerParameterServer runs on one machine, not on several.")
    there, share = ring(size, group.towers, machine.between) / 2, 1 / group.towers
    return Exchange({"device link": there}, {}, {"device link": there}, 0.0, 2 + share, share)


def on_cpu(size: float, group: Group, machine: Machine) -> Exchange:
    """`SyncMultiGPUTrainerParameterServer(ps_device="cpu")`: variables in the CPU's memory."""
    if group.machines > 1:
        raise ValueError("SyncMultiGPUTrainerParameterServer runs on one machine, not on several.")
    there = machine.host.seconds(size, group.towers)
    early = {"device link": there, "server": size * group.towers / machine.sums}
    return Exchange(early, {}, {"device link": there}, slots=0.0)


def collective(size: float, group: Group, machine: Machine) -> Exchange:
    """`CollectiveTrainer`: towers of a machine are summed, then machines, in a ring."""
    early = {"device link": ring(size, group.towers, machine.between)}
    if group.machines > 1:
        early["network"] = ring(size, group.machines, machine.network)
        early["device link"] += 2 * machine.host.seconds(size)  # to the CPU's memory and back
    return Exchange(early, {}, {}, variables=3 if group.machines > 1 else 2)


def servers(size: float, group: Group, machine: Machine) -> Exchange:
    """`DistributedReplicatedTrainer`: gradients to the servers, then their variables back."""
    way = _to_servers(size, group, machine.network)
    host = machine.host.seconds(size)
    early = {"device link": ring(size, group.towers, machine.between) + host, "network": way}
    early["server"] = size * group.machines / group.servers / machine.sums
    late = {"network": way, "device link": host}
    return Exchange(early, late, {}, slots=0.0)


def asynchronous(size: float, group: Group, machine: Machine) -> Exchange:
    """`AsyncMultiGPUTrainer` and, on several machines, `DistributedTrainerParameterServer`."""
    name, link = "network", machine.network
    early, late = {}, {}
    if group.machines == 1:
        name, link = "device link", machine.host
    else:
        early["device link"] = ring(size, group.towers, machine.between) + machine.host.seconds(
            size
        )
        late["device link"] = machine.host.seconds(size)
    early[name] = early.get(name, 0.0) + link.seconds(size)
    late[name] = late.get(name, 0.0) + link.seconds(size)
    ways = 2 if link.shared else 1
    busy = max(ways * link.seconds(size), size / machine.sums) / group.servers
    return Exchange(early, {}, late, busy, slots=0.0)


def _to_servers(size: float, group: Group, link: Link) -> float:
    """Seconds in which all workers send to all servers, or the other way round."""
    if link.shared:
        return link.seconds(size, group.machines)
    return link.seconds(size * max(1.0, group.machines / group.servers))


TRAINERS: Dict[str, Callable[[float, Group, Machine], Exchange]] = {
    "replicated": replicated,
    "gpu": on_gpus,
    "cpu": on_cpu,
    "collective": collective,
    "servers": servers,
    "asynchronous": asynchronous,
}


def group_of(devices: int, machine: Machine, servers: int = 1) -> Group:
    """The machines and towers that hold so many devices."""
    machines = -(-devices // machine.devices)
    return Group(machines, -(-devices // machines), servers)


# ------------------------------------------------------------------ a step


def predict(model: Model, group: Group, machine: Machine, trainer: str) -> Prediction:
    """The step of a model, trained by one of `TRAINERS`.

    Raises:
      ValueError: there is no such trainer, or it does not run on several machines.
    """
    if trainer not in TRAINERS:
        raise ValueError(f"trainer must be one of {', '.join(TRAINERS)}, got {trainer!r}.")
    exchange = TRAINERS[trainer](model.size, group, machine)
    synchronous = trainer != "asynchronous"
    compute = model.compute * _turns(group, machine)
    waiting = model.compute * model.spread * expected_maximum(group.size) if synchronous else 0.0

    early, late, ahead = (sum(each.values()) for each in exchange[:3])
    forward, backward = compute * (1 - model.backward), compute * model.backward
    packs = group.packs or math.ceil(model.size / PACK)
    step = pipelined(backward, early, packs) + pipelined(ahead, forward, packs) + late + waiting

    parts = dict.fromkeys(LIMITS, 0.0)
    parts.update({"compute": compute, "stragglers": waiting})
    for each in exchange[:3]:
        for name, seconds in each.items():
            parts[name] += seconds
    workers = 1 if synchronous else group.machines if group.machines > 1 else group.towers
    limit, steps = _limit(parts, step), workers / step
    if steps * exchange.busy > 1:
        limit, steps = "server", 1 / exchange.busy
    rate = steps * model.batch * group.size / workers
    ceilings = {"input": _inputs(group, machine), "actors": _actors(model, group)}
    for name, ceiling in ceilings.items():
        if ceiling < rate:
            rate, limit = ceiling, name
    ideal = model.batch * group.size / model.compute
    return Prediction(group, step, rate, rate / ideal, _memory(model, exchange), limit, parts)


def _turns(group: Group, machine: Machine) -> float:
    """How many times as long a tower computes because others compute on the same cores."""
    if machine.parallel is None:
        return 1.0
    if group.machines == 1:
        return math.ceil(group.towers / machine.parallel)
    return max(1.0, group.size / machine.parallel)


def _limit(parts: Dict[str, float], step: float) -> str:
    """The resource that makes a step longer than its compute."""
    if step <= parts["compute"] * (1 + HIDDEN):
        return "compute"
    return max((name for name in parts if name != "compute"), key=lambda name: parts[name])


def _inputs(group: Group, machine: Machine) -> float:
    return math.inf if machine.inputs is None else machine.inputs * group.machines


def _actors(model: Model, group: Group) -> float:
    """Datapoints/s for which there are transitions enough."""
    if model.actors is None:
        return math.inf
    played = model.actors.rate * model.actors.cores * group.machines
    return played / model.actors.transitions * model.batch


def _memory(model: Model, exchange: Exchange) -> float:
    numbers = model.parameters * (exchange.variables + model.slots * exchange.slots)
    fed = 2 * model.datapoint  # one batch in use, one staged
    return (numbers + model.frozen) * FLOAT + model.batch * (model.activations + fed)
