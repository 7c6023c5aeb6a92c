"""The figures by name: what measures them, their peers, and how `make bench` runs them.

A function yields `Contest`s, which have the targets; its arguments are the flags of the figure.
"""

from typing import Dict, NamedTuple, Tuple

# The environments of this project: with the current TensorFlow, or with 1.15, see .ci/run.
TF2, TF1 = ".venv", ".venv-tf1"
ROM = "{rom}"  # stands for the path of the game, for an ale-py that has none


class Run(NamedTuple):
    """One run of a figure."""

    suffix: str = ""  # added to the name of the figure, for the name of the run
    where: str = ""  # what the rows are to be told apart by
    flags: Tuple[str, ...] = ()  # of the figure
    environment: str = TF2  # whose interpreter runs it


class Figure(NamedTuple):
    """What is measured, and how."""

    function: str  # the module and the name of what measures it
    title: str  # what it measures, for when it does not
    minutes: float  # that a run takes on two cores; the limit is three times as long
    peers: Tuple[str, ...] = ()  # of `benchmarks/peers`, whose environments it needs
    pairs: int = 5  # rounds that are measured by default
    quick: Tuple[str, ...] = ()  # the flags, beside `--pairs 1`, that make it short
    runs: Tuple[Run, ...] = (Run(),)  # that make the table, one after the other


ACTING = ("--exploration", "0.1")
BOTH = (Run("", "TF 2"), Run("-tf1", "TF 1.15", environment=TF1))
FIGURES: Dict[str, Figure] = {
    "R1": Figure(
        *["dqn.whole_run", "whole run / bare update", 6],
        quick=("--steps", "20", "--seconds", "2"),
        runs=(
            Run("", "TF 2"),
            Run("-acting", "TF 2, exploration 0.1", ACTING),
            Run("-players", "TF 2, exploration 0.1, 4 games", (*ACTING, "--num-players", "4")),
            Run("-tf1", "TF 1.15", ("--rom", ROM), TF1),
        ),
    ),
    "R2": Figure("dqn.gain", "whole run / tensorpack 0.11", 12, ("tensorpack-0.11",)),
    "R3": Figure(
        *["dqn.against_sb3", "whole run / stable-baselines3", 5, ("sb3",)],
        runs=(Run(), Run("-bf16", "", ("--games", "4", "--precision", "bf16"))),
    ),
    "R4": Figure("replay.filling", "filling / bare environments", 1.2, quick=("--seconds", "1")),
    "R5": Figure("steps.step", "step / bare callable", 0.5, pairs=7, runs=BOTH),
    "R6": Figure("steps.queue_step", "queue step / bare queue loop", 0.5, pairs=7, runs=BOTH),
    "R7": Figure(
        *["replay.sampling", "sampling", 1.5, (), 7, ("--frames", "20000", "--calls", "10")]
    ),
    "R8": Figure("streams.processes", "parallel dataflow", 11, ("tensorpack-0.11", "torch")),
    "R9": Figure("startup.imported", "import tensorpack", 0.1, pairs=11),
    "R10": Figure(
        *["memory.run", "resident memory", 6, (), 2],
        quick=("--epochs", "4", "--steps", "20", "--seconds", "2"),
    ),
    "R11": Figure("pipelines.photographs", "images", 15, ("images",)),
    "R12": Figure("streams.second_process", "two processes / one", 0.5),
    "R13": Figure(
        *["workers.all_reduce", "all-reduce of gradients", 2, (), 3],
        quick=("--kilobytes", "1,1000"),
    ),
    "R15": Figure(
        *["saving.save", "save and resume of 100,000 frames", 2],
        quick=("--frames", "5000", "--new", "500", "--steps", "20"),
    ),
    "R17": Figure(
        *["dqn.actor_critic", "actor-critic / others", 20, ("sb3", "envpool", "sample-factory")],
        quick=("--steps", "800", "--seconds", "30"),
    ),
    "R18": Figure(
        *["updates.against_others", "update / PyTorch and JAX", 25, ("torch", "jax")],
        quick=("--seconds", "1"),
    ),
    "R19": Figure(
        *["streams.files", "records of files / other libraries", 8, ("files",)],
        quick=("--seconds", "1"),
    ),
    "R20": Figure("startup.first_update", "start-up of the main job / bare TensorFlow", 2),
}
