"""The contract between a trainer and its callbacks: what each may ask of the other.

It is in this low layer because input sources bring callbacks and must not import upwards. The
public address of `Callback` is `tensorpack.callbacks`.
"""

import weakref
from operator import attrgetter
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.stopping import StopToken

from .common import get_tensors_by_names
from .hooked_session import as_request


class StopTraining(BaseException):
    """Ends the training in order, as after the last epoch; raised by a callback or a step."""


class TrainerContract:
    """What a callback may ask of its trainer, with the defaults of a trainer that lacks it.

    Attributes:
      sess: the `tf.Session`, once it is created.
      monitors: the `Monitors`, once the callbacks are set up.
      stop_token: the `StopToken` of the run; any thread may end the run through it.
      step_op: the op that a step runs, once and alone; None where a step does something else.
      callback_seconds: how long `trigger_step` of each callback took so far, by its name.
      towers: the `TowerTensorHandles` of the towers built so far, or None.
      state_saver: the `ModelSaver` that saves the state of the run with the variables, or None.
      record: keeps `run.json`; functions in its list `on_complete` are called when that is done,
        at the very end of the run. None in a trainer that keeps none.
      is_chief: whether this process saves and logs.
      resumed: whether the run continues a saved state.
      resumed_from: prefix of the checkpoint that the run continues, or None.
      resume_strictly: whether it is an error if the run cannot be continued exactly.
      deterministic: whether equal programs do equal runs, see `TrainConfig`.
    """

    config: Any = None
    sess: Any = None
    hooked_sess: Any = None
    monitors: Any = None
    stop_token: StopToken
    step_op: Any = None
    all_callbacks: Sequence[Any] = ()
    callback_seconds: Mapping[str, float] = {}
    towers: Any = None
    state_saver: Any = None
    record: Any = None
    is_chief = True
    resumed = False
    resumed_from: Optional[str] = None
    resume_strictly = False
    deterministic = False

    def check_stop(self) -> None:
        """Unwinds a long loop on the main thread if the run was asked to end.

        Raises:
          StopRequested: it was. Do not catch it: the trainer turns it into the reason.
        """
        self.stop_token.raise_if_requested()

    def interruptible(self, function: Callable[[], Any], end_wait: Callable[[], None]) -> Any:
        """Calls a function that may block, so that a stop request can end it.

        If the run is asked to end and the function does not return in time, `end_wait` is called on
        another thread, and what the function raises then is StopRequested.
        """
        return function()

    def build_inference_towers(
        self, source: Any, towers: Sequence[Any], tower_func: Any = None
    ) -> Any:
        """Builds the model for inference, see `TowerTrainer`; in `Callback._setup_graph` only."""
        raise RuntimeError(
            f"{type(self).__name__} has no tower function, so it cannot build its model for "
            "inference: train with a TowerTrainer, such as SimpleTrainer."
        )

    def prepare_save(self) -> None:
        """Brings the variables up to date that are about to be saved."""

    def variables_to_save(self) -> List[tf.Variable]:
        """Returns the variables of which this process saves the values, and loads them when it
        resumes: all global ones, unless it is one of several that share them.
        """
        return tf.global_variables()


class Callback:
    """Rides along with one training run. The run is this, and only this::

        cb.setup_graph(trainer)        # ops may still be added to the graph
        (session created, variables initialised and restored, graph finalised)
        cb.load_state_dict(state)      # if the run resumes a saved state
        cb.before_train()
        for each epoch:
            cb.check_over()            # may raise StopTraining
            cb.before_epoch()
            for each step:
                hooked_sess.run(...)   # cb.before_run(ctx), the run, cb.after_run(ctx, values)
                cb.trigger_step()
            cb.after_epoch()
            cb.trigger_epoch()         # calls trigger() unless overridden
        cb.after_train()               # always, also after an error, if before_train() was entered

    Everything is called on the main thread, callback after callback in the order of their list.
    Subclasses override the methods with a leading underscore; the framework calls those without. An
    exception from any of them ends the run. A loop in a callback that takes long calls
    `self.trainer.check_stop()` in every round, so that a stop does not have to wait for its end.

    Attributes:
      trainer: the trainer (a weak proxy), from `setup_graph` on.
      graph: the `tf.Graph` of the run, from `setup_graph` on.
      name_scope: under which name `_setup_graph` adds its ops; the class name by default.
      sets_up_last: whether it is set up after all callbacks without this, so that it sees the
        variables and summaries that they add.
      state_of: what its state belongs to, such as the name of a scalar, where `state_dict` has that
        as "of": a state of something else is not loaded.
      sees_runs: set it to False, in `_setup_graph` at the latest, if `before_run` and `after_run`
        have nothing to do in this run although they are overridden: steps become faster.
    """

    trainer: Any = None
    graph: Optional[tf.Graph] = None
    name_scope: Optional[str] = None
    sets_up_last = False
    sees_runs = True
    state_of: Optional[str] = None
    follows = False  # the script's callbacks, though a trainer registers it; needs what they do
    _chief_only = True

    def setup_graph(self, trainer: Any) -> None:
        """Binds the callback to a trainer and lets it add ops to the graph, for the only time."""
        proxy = trainer if isinstance(trainer, weakref.ProxyTypes) else weakref.proxy(trainer)
        if self.trainer is proxy:
            raise ValueError(
                f"The callback {self} is in this run twice, perhaps inside of another one, and "
                "would run twice on one state: remove it, or create a second one."
            )
        self.trainer = proxy
        self.graph = tf.get_default_graph()
        with tf.name_scope(self.name_scope or type(self).__name__.strip("_")):
            self._setup_graph()
        for value in vars(self).values():  # there is no session yet, see `DataFlow`
            value = list(value.values()) if isinstance(value, dict) else value
            for flow in value if isinstance(value, (list, tuple)) else [value]:
                if hasattr(type(flow), "start_processes"):
                    flow.start_processes()

    def _setup_graph(self) -> None:
        """Override to add ops to the graph, or to look tensors up.

        Processes of the flows that it has then are started, while they can be forked.
        """

    def before_train(self) -> None:
        """Called once: the session is open, variables have their values, the graph is finalised."""
        self._before_train()

    def _before_train(self) -> None:
        """Override to do something before the first step."""

    def check_over(self) -> None:
        """Override to raise `StopTraining` where the run ends before its next epoch."""

    def before_epoch(self) -> None:
        """Called before each epoch."""
        self._before_epoch()

    def _before_epoch(self) -> None:
        """Override to do something before each epoch; should be quick."""

    def before_run(self, ctx: tf.train.SessionRunContext) -> Optional[tf.train.SessionRunArgs]:
        """Called before each run of the hooked session; returns what to fetch or feed with it."""
        request = self._before_run(ctx)
        return None if request is None else as_request(request)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        """Override to return `SessionRunArgs`, a list of tensors, ops or names, or None."""
        return None

    def after_run(
        self, run_context: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Called after each run of the hooked session, with what `before_run` asked for."""
        self._after_run(run_context, run_values)

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Override to look at `run_values.results`, shaped as the fetches of `_before_run`."""

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        """Returns ops that must run in each hooked run of these fetches.

        Called when a kind of run is prepared, not in each run. Unlike `before_run` it is told all
        that the caller and the callbacks ask for.

        Args:
          fetches: a list of all structures that are fetched.
        """
        return []

    def trigger_step(self) -> None:
        """Called after each step."""
        self._trigger_step()

    def _trigger_step(self) -> None:
        """Override to do something after each step; anything slow here slows the training."""

    def after_epoch(self) -> None:
        """Called right after the last step of each epoch."""
        self._after_epoch()

    def _after_epoch(self) -> None:
        """Override for what must happen before any `trigger_epoch`; should be quick."""

    def trigger_epoch(self) -> None:
        """Called once per epoch, after every callback's `after_epoch`."""
        self._trigger_epoch()

    def _trigger_epoch(self) -> None:
        """Override to do something every epoch, unless `_trigger` says it already."""
        self.trigger()

    def trigger(self) -> None:
        """Does what the callback is for; called by the schedule, each epoch by default."""
        self._trigger()

    def _trigger(self) -> None:
        """Override to do something that may be scheduled, for example by `PeriodicTrigger`."""

    def after_train(self) -> None:
        """Called once after the run, however it ended, if `before_train` was entered."""
        self._after_train()

    def _after_train(self) -> None:
        """Override to release what `_before_train` took, also if that failed."""

    def state_dict(self) -> Dict[str, Any]:
        """Returns what the callback needs to resume in another process; {} is nothing.

        Override it, and `load_state_dict`, in a callback that keeps anything between two calls. It
        is called on the main thread, after a step or after another callback had its turn.

        Returns:
          a tree of dictionaries (keys are strings), lists, tuples, None, booleans, numbers, text,
          bytes and numpy arrays without objects. It must not change any more.
        """
        return {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Takes back what `state_dict` returned in an earlier run; called before `before_train`.

        Raises:
          ValueError: it does not suit this callback.
        """

    # Functions in C: several of them are asked for in each step.
    epoch_num = property(
        attrgetter("trainer.epoch_num"),
        doc="The number of the running epoch; `starting_epoch - 1` before the training.",
    )
    global_step = property(
        attrgetter("trainer.global_step"),
        doc="How many steps have finished or are running, over all epochs and resumed runs.",
    )
    local_step = property(
        attrgetter("trainer.local_step"), doc="The index of the running step in its epoch, from 0."
    )

    @property
    def chief_only(self) -> bool:
        """Whether only the chief of several workers runs this callback."""
        return self._chief_only

    @chief_only.setter
    def chief_only(self, value: bool) -> None:
        self._chief_only = bool(value)

    def set_chief_only(self, v: bool = True) -> "Callback":
        """Sets `chief_only` and returns the callback itself."""
        self.chief_only = v
        return self

    def get_tensors_maybe_in_tower(self, names: Sequence[str]) -> List[Any]:
        """Returns ops and tensors by name, from the graph or else the first training tower."""
        return [self._tensor_maybe_in_tower(name) for name in names]

    def _tensor_maybe_in_tower(self, name: str) -> Any:
        try:
            return get_tensors_by_names([name])[0]
        except KeyError:
            towers = self.trainer.towers
            training = towers.training() if towers is not None else []
            if not training:
                raise
            return training[0].get_tensor(name)

    def __str__(self) -> str:
        return type(self).__name__
