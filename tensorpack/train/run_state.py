"""What a run is, beside its variables: where it stands, its random streams, its callbacks' states.

A state is taken at the boundary of a step, where nothing is half done, or between the turns of two
callbacks. It is a tree as `Callback.state_dict` describes it.
"""

import random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tensorpack.callbacks.base import Callback, ProxyCallback
from tensorpack.callbacks.json_writer import JSONWriter
from tensorpack.callbacks.saver import ModelSaver
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.exact_restore import ExactRestore
from tensorpack.utils import logger
from tensorpack.utils.rng import rng_state, set_rng_state, set_streams_state, streams_state

from .resume import Resumption, find_resumption

__all__ = ["Position", "RunState"]


class Position(NamedTuple):
    """Where a run stands.

    Attributes:
      epoch: the running epoch, counted from 1.
      steps_done: how many steps of it have finished.
      hook: the round of callbacks that has begun and not ended, None if there is none.
      turns: names of the callbacks that had their turn in it.
    """

    epoch: int
    steps_done: int
    hook: Optional[str]
    turns: List[str]

    @property
    def epoch_is_over(self) -> bool:
        """Whether all that may be left of the epoch is a part of its `trigger_epoch`."""
        return self.hook == "trigger_epoch"


class RunState:
    """Takes the state of a trainer's run, and gives it back to a trainer that goes on with it.

    Args:
      trainer: the trainer.

    Attributes:
      position: where the earlier run stood; None if there is none, or if nobody knows.
      first_epoch: number of the first epoch that is run, from its beginning or not.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._resumption: Optional[Resumption] = None
        self.position: Optional[Position] = None
        self.first_epoch = 1

    def look(self, resume: str, callbacks: Sequence[Callback]) -> None:
        """Finds what the run goes on from, before anything is built that takes time.

        Args:
          resume: the policy, see `resume`.
          callbacks: those of the run; the first `ModelSaver` tells where states are.
        """
        self._resumption = found = find_resumption(resume, _directory_of_states(callbacks))
        if found is not None:
            self._trainer.resumed, self._trainer.resumed_from = True, found.prefix
            self._trainer.resume_strictly = found.strictly

    def session_init(self, given: Any) -> Any:
        """Returns what gives the variables their values: the state found, or else what is given."""
        return given if self._resumption is None else ExactRestore(self._resumption.prefix)

    def load(self, callbacks: Any, starting_epoch: int) -> None:
        """Gives the callbacks their states, when the variables have their values.

        Args:
          callbacks: the group of all.
          starting_epoch: number of the first epoch of a run that goes on from nothing.
        """
        self.first_epoch = starting_epoch
        if self._resumption is None:
            return
        state = self._resumption.state
        if state is None:
            self.first_epoch = self._guess_epoch() + 1
            return
        self.position = Position(**state["position"])
        self.first_epoch = self.position.epoch + int(self.position.epoch_is_over)
        self._compare_lengths(state["steps_per_epoch"])
        strictly = self._resumption.strictly
        callbacks.load_states(state["callbacks"], state["callback_names"], strictly)

    def load_random(self) -> None:
        """Sets the random streams of the process, when all that draws at the start has drawn."""
        if self._resumption is not None and self._resumption.state is not None:
            _load_random_state(self._resumption.state["random"])
            self._resumption = None  # it may be large, and has been given to all

    def take(self, callbacks: Any, interrupted: bool) -> Dict[str, Any]:
        """Returns the state of the run now.

        Args:
          callbacks: the group of all.
          interrupted: whether the callback whose turn it is, if any, has to have it again;
            otherwise it is the one that asks.
        """
        loop = self._trainer.loop
        return {
            "position": dict(self.where(callbacks, interrupted)._asdict()),
            "global_step": loop.steps_taken,
            "steps_per_epoch": loop.steps_per_epoch,
            "random": _random_state(),
            "callback_names": callbacks.names(),
            # The last one: from then on the owners of segments wait to hear how the save went.
            "callbacks": callbacks.state_dict(),
        }

    def where(self, callbacks: Any, interrupted: bool) -> Position:
        """Returns where the run stands; see `take` for the arguments."""
        loop = self._trainer.loop
        hook, turns = callbacks.unfinished_round(with_current=not interrupted)
        return Position(loop.epoch_num, loop.steps_done, hook, turns)

    def _guess_epoch(self) -> int:
        """The epoch that ended with the global step, by stats.json, or else by counting."""
        step, steps_per_epoch = get_global_step_value(), self._trainer.config.steps_per_epoch
        directory = logger.get_logger_dir()
        known = JSONWriter.load_existing_json(directory) if directory is not None else None
        epochs = [each["epoch_num"] for each in known or [] if each.get("global_step") == step]
        epoch = int(epochs[-1]) if epochs else step // steps_per_epoch
        logger.warning(f"Nobody knows where the run stood: it goes on behind epoch {epoch}.")
        return epoch

    def _compare_lengths(self, before: int) -> None:
        now = self._trainer.config.steps_per_epoch
        if before == now:
            return
        message = f"An epoch had {before} steps when the state was saved, and has {now} now."
        if self._trainer.resume_strictly:
            raise ValueError(f"{message} Give steps_per_epoch={before} to go on exactly.")
        logger.warning(message)


def _directory_of_states(callbacks: Sequence[Callback]) -> Optional[str]:
    for each in callbacks:
        while isinstance(each, ProxyCallback):
            each = each.cb
        if isinstance(each, ModelSaver) and each.saves_all and each.checkpoint_dir:
            return each.checkpoint_dir
    return logger.get_logger_dir()


def _random_state() -> Dict[str, Any]:
    """Returns the state of the random streams that belong to the process and not to an object."""
    version, numbers, gauss = random.getstate()
    python = {"version": version, "numbers": np.array(numbers, np.uint32), "gauss": gauss}
    return {"streams": streams_state(), "numpy": rng_state(_numpy_stream()), "python": python}


def _load_random_state(state: Dict[str, Any]) -> None:
    python = state["python"]
    numbers = tuple(int(each) for each in python["numbers"])
    random.setstate((python["version"], numbers, python["gauss"]))
    set_rng_state(_numpy_stream(), state["numpy"])
    set_streams_state(state["streams"])


def _numpy_stream() -> Any:
    return np.random  # the module has the methods of the generator behind its functions
