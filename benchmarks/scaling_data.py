"""Figures of machines, links, models and published speeds, for the predictions of docs/scaling.md.

Numbers in brackets are the sources that the page lists.
"""

import math
from typing import Dict, List, NamedTuple, Tuple

from scaling import FLOAT, Actors, Link, Machine, Model

__all__ = [
    "GB",
    "GRPC",
    "LOOPBACK",
    "MACHINES",
    "MODELS",
    "PUBLISHED",
    "SPREAD",
    "Published",
    "line_rate",
]

MB, GB = 1e6, 1e9
GBIT = 1e9 / 8
SPREAD = 0.025  # so that 8 GPUs of a DGX A100 are 7.7 times as fast as one [4]

# An all-reduce of NCCL over NVLink [6], and PCIe as NCCL counts it [7].
NVLINK = Link(200 * GB, 20e-6)
PCIE3, PCIE4 = Link(12 * GB, 20e-6), Link(24 * GB, 20e-6)
# TensorFlow's own runtime: 800 MB/s each way over 10 Gbit/s [8], 740 here with a core a process;
# half a millisecond a message here.
GRPC = Link(0.8 * GB, 0.5e-3)


def line_rate(gigabits: float) -> Link:
    """What NCCL makes of a network with RDMA."""
    return Link(gigabits * GBIT, 5e-6)


MACHINES: Dict[str, Machine] = {
    "8 x A100 40 GB, NVLink": Machine(8, NVLINK, PCIE4, GRPC, 40 * GB),
    "8 x GTX 1080 8 GB, PCIe 3": Machine(8, PCIE3, PCIE3, GRPC, 8 * GB),
    "DGX-1, P100": Machine(8, Link(20 * GB, 20e-6), PCIE3, GRPC, 16 * GB),
    "p2.8xlarge, K80": Machine(8, Link(6 * GB, 20e-6), PCIE3, GRPC, 12 * GB),
    "4 x P100, 25 Gbit/s RoCE": Machine(4, PCIE3, PCIE3, line_rate(25), 16 * GB),
}
# All processes of this machine share its two cores; what is sent costs cycles of both ends.
LOOPBACK = Machine(
    devices=1,
    between=Link(10 * GB, shared=2),
    host=Link(math.inf),
    network=Link(1.7 * GB, 0.5e-3, shared=2),
    memory=24 * GB,
    sums=10 * GB,
    parallel=2,
)

MODELS: Dict[str, Tuple[Model, str]] = {
    "DQN": (
        Model(
            "Double-DQN of the example, batch 64",
            *[4045479, 1 / 107, 64, "samples"],
            slots=2,
            activations=0.6 * MB,
            datapoint=5 * 84 * 84,
            spread=SPREAD,
            frozen=4045479,
            actors=Actors(4, 1671, 16),
        ),
        "8 x GTX 1080 8 GB, PCIe 3",
    ),
    "ResNet-50": (
        Model(
            "ResNet-50, batch 256",
            *[25.6e6, 256 / 909, 256, "images"],
            activations=2 * 11.1e6 * FLOAT,
            datapoint=224 * 224 * 3 * FLOAT,
            spread=SPREAD,
        ),
        "8 x A100 40 GB, NVLink",
    ),
    "BERT-Large": (
        Model(
            "BERT-Large, batch 64 x 128 words",
            *[340e6, 64 / 238.1, 64, "sequences"],
            slots=2,
            activations=24 * 128 * 1024 * (34 + 5 * 16 * 128 / 1024) * 2,
            datapoint=3 * 128 * FLOAT,
            spread=SPREAD,
        ),
        "8 x A100 40 GB, NVLink",
    ),
}


class Published(NamedTuple):
    """Speeds that others measured, of one model on one kind of machine.

    Attributes:
      model: its name, and its parameters in millions [9].
      batch: datapoints a tower.
      alone: datapoints/s of one GPU.
      machine: one of `MACHINES`.
      trainer: what it corresponds to here.
      rates: datapoints/s by number of GPUs, and number of parameter servers.
      source: as in docs/scaling.md.
    """

    model: Tuple[str, float]
    batch: int
    alone: float
    machine: str
    trainer: str
    rates: Tuple[Tuple[int, float, int], ...]
    source: str


RESNET, INCEPTION, RESNET152 = ("ResNet-50", 25.6), ("Inception V3", 23.9), ("ResNet-152", 60.4)
VGG, ALEXNET = ("VGG16", 138.4), ("AlexNet", 61.0)
K80, P100, A100, ROCE = (
    "p2.8xlarge, K80",
    "DGX-1, P100",
    "8 x A100 40 GB, NVLink",
    "4 x P100, 25 Gbit/s RoCE",
)
PUBLISHED: List[Published] = [
    Published(RESNET, 64, 219, P100, "cpu", ((2, 422, 1), (4, 852, 1), (8, 1734, 1)), "[2]"),
    Published(VGG, 64, 154, P100, "replicated", ((2, 295, 1), (4, 584, 1), (8, 1081, 1)), "[2]"),
    Published(
        *[ALEXNET, 512, 2987, P100, "replicated"],
        ((2, 5658, 1), (4, 10509, 1), (8, 17822, 1)),
        "[2]",
    ),
    Published(RESNET, 256, 909, A100, "replicated", ((8, 7000, 1),), "[4]"),
    Published(
        RESNET, 64, 52.4, K80, "servers", ((16, 751, 2), (32, 1388, 4), (64, 2744, 8)), "[2]"
    ),
    Published(
        INCEPTION, 64, 29.7, K80, "servers", ((16, 459, 2), (32, 902, 4), (64, 1783, 6)), "[2]"
    ),
    Published(
        RESNET152, 32, 19.4, K80, "servers", ((16, 291, 2), (32, 565, 4), (64, 981, 4)), "[2]"
    ),
    Published(INCEPTION, 64, 142, ROCE, "collective", ((512, 0.9 * 512 * 142, 1),), "[5]"),
    Published(VGG, 64, 154, ROCE, "collective", ((512, 0.68 * 512 * 154, 1),), "[5]"),
]
