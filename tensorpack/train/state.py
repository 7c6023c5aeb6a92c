"""The state of a run without its variables: its position, random streams, and callbacks' states.

A state is captured between two steps, or between the turns of two callbacks. It is a tree as
`Callback.state_dict` describes it.
"""

import os
import random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitors.json_writer import JSONWriter
from tensorpack.tfutils.checkpoint import RestorePoint, restore_point_at
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.sessinit import ExactRestore
from tensorpack.utils import logger
from tensorpack.utils.rng import rng_state, set_rng_state, set_streams_state, streams_state

from .resume import check_complete, find_resumption, state_directory

_NUMPY_STREAM: Any = np.random  # the module has the methods of the generator behind its functions


class Position(NamedTuple):
    """The position of a run.

    Attributes:
      hook: the round of callbacks that is unfinished, None if there is none.
      turns: names of the callbacks that had their turn in it.
    """

    epoch: int
    steps_done: int
    hook: Optional[str]
    turns: List[str]

    @property
    def epoch_is_over(self) -> bool:
        """Whether nothing of the epoch is left except a part of its `trigger_epoch`."""
        return self.hook == "trigger_epoch"


class RunState:
    """Captures the state of a trainer's run, and restores it in a trainer that resumes the run.

    Attributes:
      position: of the earlier run; None if there is none, or if it is not known.
      first_epoch: number of the first epoch that is run, from its beginning or not.
      step: that of the state to resume from, None for the newest one; set before `find`.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._restore_point: Optional[RestorePoint] = None
        self.position: Optional[Position] = None
        self.first_epoch = 1
        self.step: Optional[int] = None

    def find(self, resume: str, callbacks: Sequence[Callback]) -> None:
        """Finds the state to resume from, before anything is built that takes time."""
        directory = state_directory(callbacks)
        if self.step is None:
            found = find_resumption(resume, directory)
        else:
            found = restore_point_at(os.path.join(str(directory), f"model-{self.step}"), directory)
            check_complete(found, resume == "must")
        self._restore_point = found
        if found is not None:
            self._trainer.resumed, self._trainer.resumed_from = True, found.prefix
            self._trainer.resume_strictly = resume == "must"

    def session_init(self, given: Any) -> Any:
        """Returns what sets the variables: the state that was found, or else the one given."""
        if self._restore_point is None:
            return given
        trainer, prefix = self._trainer, self._restore_point.prefix
        return ExactRestore(prefix, trainer.variables_to_save(), strictly=trainer.resume_strictly)

    def load(self, callbacks: Any, starting_epoch: int) -> None:
        """Restores the states of the callbacks, after the variables."""
        self.first_epoch = starting_epoch
        if self._restore_point is None:
            return
        state = self._restore_point.state
        if state is None:
            self.first_epoch = self._guess_epoch() + 1
            return
        self.position = Position(**state["position"])
        self.first_epoch = self.position.epoch + int(self.position.epoch_is_over)
        self._compare_sizes(state)
        strictly = self._trainer.resume_strictly
        callbacks.load_states(state["callbacks"], state["callback_names"], strictly)

    def load_random(self) -> None:
        """Sets the random streams of the process, after all draws at the start."""
        if self._restore_point is not None and self._restore_point.state is not None:
            _load_random_state(self._restore_point.state["random"])
            self._restore_point = None  # it may be large

    def capture(self, callbacks: Any, interrupted: bool) -> Dict[str, Any]:
        """Returns the state of the run now, see `Trainer.run_state`."""
        return {
            "position": dict(self.position_of(callbacks, interrupted)._asdict()),
            "global_step": self._trainer.loop.steps_taken,
            **self._sizes(),
            "random": _random_state(),
            "callback_names": callbacks.names(),
            # The last one: from then on the owners of segments wait for the end of the save.
            "callbacks": callbacks.state_dict(),
        }

    def position_of(self, callbacks: Any, interrupted: bool) -> Position:
        """Returns the position of the run now, see `Trainer.run_state`."""
        loop = self._trainer.loop
        hook, turns = callbacks.unfinished_hook(with_current=not interrupted)
        return Position(loop.epoch_num, loop.steps_done, hook, turns)

    def _guess_epoch(self) -> int:
        """The epoch that ended with the global step, by stats.json, or else by counting."""
        step, steps_per_epoch = get_global_step_value(), self._trainer.config.steps_per_epoch
        directory = logger.get_logger_dir()
        known = JSONWriter.load_existing_json(directory) if directory is not None else None
        epochs = [each["epoch_num"] for each in known or [] if each.get("global_step") == step]
        epoch = int(epochs[-1]) if epochs else step // max(steps_per_epoch, 1)
        logger.warning(f"The position of the run is not known: it continues after epoch {epoch}.")
        return epoch

    def _sizes(self) -> Dict[str, int]:
        """Returns what the run consists of; the state has it, too."""
        return {
            "steps_per_epoch": self._trainer.config.steps_per_epoch,
            "workers": getattr(getattr(self._trainer, "cluster", None), "num_workers", 1),
            "towers": len(getattr(self._trainer, "tower_ids", [0])),
        }

    def _compare_sizes(self, state: Dict[str, Any]) -> None:
        for name, now in self._sizes().items():
            before = state.get(name, now)  # states of earlier versions have steps_per_epoch only
            message = f"The run had {name}={before} when its state was saved, and has {now} now."
            if before != now and self._trainer.resume_strictly and name != "towers":
                raise ValueError(f"{message} Start it with {name}={before} to continue exactly.")
            if before != now:
                logger.warning(message)


def _random_state() -> Dict[str, Any]:
    """Returns the state of the random streams that belong to the process and not to an object."""
    version, numbers, gauss = random.getstate()
    python = {"version": version, "numbers": np.array(numbers, np.uint32), "gauss": gauss}
    return {"streams": streams_state(), "numpy": rng_state(_NUMPY_STREAM), "python": python}


def _load_random_state(state: Dict[str, Any]) -> None:
    python = state["python"]
    random.setstate((python["version"], tuple(python["numbers"].tolist()), python["gauss"]))
    set_rng_state(_NUMPY_STREAM, state["numpy"])
    set_streams_state(state["streams"])
