"""The figures by name: what measures them, with which peers, and how `make bench` runs them.

A name with a hyphen, as "R1-tf1", is another run of the same figure.
"""

from typing import Dict, NamedTuple, Tuple

# The environments of this project: with the current TensorFlow, or with 1.15, see .ci/run.
TF2, TF1 = ".venv", ".venv-tf1"


class Figure(NamedTuple):
    """What is measured, and how."""

    function: str  # the module and the name of what measures it: a generator of `Contest`
    title: str  # for the chart
    minutes: float  # that it takes on two cores; the limit is three times as long
    peers: Tuple[str, ...] = ()  # of `benchmarks/peers`, whose environments it needs
    pairs: int = 5  # rounds
    where: str = ""  # what its rows are to be told apart by
    flags: Tuple[str, ...] = ()
    environment: str = TF2  # whose interpreter runs it


R1 = ("dqn.whole_run", "whole run / bare update", 4)
R3 = ("dqn.against_sb3", "whole run / stable-baselines3", 5, ("sb3",))
R5 = ("steps.step", "step / bare callable", 0.5, (), 7)
R6 = ("steps.queue_step", "queue step / bare queue loop", 0.5, (), 7)
SHORT = ("--steps", "200", "--seconds", "8")
ACTING = (*SHORT, "--exploration", "0.1")
FIGURES: Dict[str, Figure] = {
    "R1": Figure(*R1, where="TF 2", flags=SHORT),
    "R1-acting": Figure(*R1, where="TF 2, exploration 0.1", flags=ACTING),
    "R1-players": Figure(
        *R1, where="TF 2, exploration 0.1, 4 games", flags=(*ACTING, "--num-players", "4")
    ),
    "R1-tf1": Figure(*R1, where="TF 1.15", flags=SHORT, environment=TF1),
    "R2": Figure(
        *("dqn.gain", "whole run / tensorpack 0.11", 9, ("tensorpack-0.11",)), flags=SHORT[:2]
    ),
    "R3": Figure(*R3),
    "R3-bf16": Figure(*R3, flags=("--games", "4", "--precision", "bf16")),
    "R4": Figure("replay.filling", "filling / bare environments", 1.2),
    "R5": Figure(*R5, where="TF 2"),
    "R5-tf1": Figure(*R5, where="TF 1.15", environment=TF1),
    "R6": Figure(*R6, where="TF 2"),
    "R6-tf1": Figure(*R6, where="TF 1.15", environment=TF1),
    "R7": Figure("replay.sampling", "sampling", 1.5, pairs=7),
    "R8": Figure("streams.processes", "parallel dataflow", 16, ("tensorpack-0.11", "torch")),
    "R9": Figure("startup.imported", "import tensorpack", 0.1, pairs=11),
    "R10": Figure("memory.run", "resident memory", 6, pairs=2),
    "R11": Figure("pipelines.photographs", "images", 6.5, ("images",)),
    "R12": Figure("streams.second_process", "two processes / one", 0.5),
    "R13": Figure("workers.all_reduce", "all-reduce of gradients", 1.5, pairs=3),
    "R15": Figure("saving.save", "save of 100,000 frames", 1),
    "R17": Figure("dqn.actor_critic", "actor-critic / others", 8, ("sb3", "envpool")),
    "R18": Figure("updates.against_torch", "update / compiled PyTorch", 4, ("torch",)),
    "R19": Figure("streams.files", "records of files / other libraries", 5, ("files",)),
    "R20": Figure("startup.first_update", "start-up of the main job / bare TensorFlow", 2),
}
