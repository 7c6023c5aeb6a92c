"""The trainer: what a script, a subclass or a callback may call; `run.py` has the life of a run."""

import weakref
from typing import Any, Dict, List, Optional, Sequence

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.group import Callbacks, of_other_workers
from tensorpack.callbacks.monitor import MonitorBase, Monitors
from tensorpack.callbacks.queue_runners import StartQueueRunners
from tensorpack.callbacks.saver import ModelSaver
from tensorpack.callbacks.steps import MaintainStepCounter
from tensorpack.compat import end_eager_execution
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.hooked_session import HookedSession
from tensorpack.tfutils.model_utils import describe_trainable_vars
from tensorpack.tfutils.queues import all_queues
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.utils import logger
from tensorpack.utils.argtools import call_only_once
from tensorpack.utils.checks import check_kind

from .config import TrainConfig
from .determinism import fix_draws, fix_graph_seed
from .record import TrainingRecord
from .resume import RunState, state_saver_of
from .run import ENDLESS, TrainLoop

__all__ = ["StopTraining", "Trainer"]


class Trainer(TrainLoop):
    """Runs `run_step` again and again, with callbacks around it.

    A run goes through these phases, each once and in this order::

        setup:       (subclasses build the graph) setup_callbacks -> initialize
        main loop:   before_train
                     for each epoch: before_epoch, (run_step, trigger_step) x steps_per_epoch,
                                     after_epoch, trigger_epoch
                     after_train            (always, also after an error)
        teardown:    threads told to stop and joined, queues drained and closed, session closed

    Given a `TrainConfig`, `train()` does all of it. Without one, `train(...)` takes the parts of it
    as arguments.

    Attributes:
      graph: the graph that is trained: the default graph at construction, which also ends eager
        execution in a process that has it on, so that a constructor can build the graph.
      train_op: the op that a step runs, unless `run_step` is overridden.

    The others (`sess`, `monitors`, `stop_token`, ...) are those of `TrainerContract`, the counters
    (`epoch_num`, `local_step`, `global_step`, ...) those of `TrainLoop`.
    """

    model: Any = None
    _worker = 0  # its number in a group of processes

    def __init__(self, config: Optional[TrainConfig] = None) -> None:
        super().__init__()
        if config is not None:
            check_kind("config", config, TrainConfig)
        self.config = config
        self.model = self.model if config is None else config.model
        end_eager_execution()
        self.graph = tf.get_default_graph()
        fix_graph_seed(self.graph)
        self.sess: Optional[tf.Session] = None
        self.hooked_sess: Optional[HookedSession] = None
        self.monitors: Optional[Monitors] = None
        self.train_op: Any = None
        self.state_saver: Optional[ModelSaver] = None
        self._state = RunState(self)
        self._registered: List[Callback] = []
        self._callbacks: Optional[Callbacks] = None
        self.record = TrainingRecord(self)

    def train(
        self,
        callbacks: Optional[Sequence[Callback]] = None,
        monitors: Optional[Sequence[MonitorBase]] = None,
        session_creator: Any = None,
        session_init: Any = None,
        steps_per_epoch: Optional[int] = None,
        starting_epoch: int = 1,
        max_epoch: int = ENDLESS,
    ) -> None:
        """Does the whole run. A trainer that has a config takes no arguments here.

        Raises:
          TrainingInterrupted: a signal ended the run.
          Exception: what failed, with its original type and traceback.
        """
        self._set_config(
            {"extra_callbacks": [], "monitors": []},
            callbacks=callbacks,
            monitors=monitors,
            session_creator=session_creator,
            session_init=session_init,
            steps_per_epoch=steps_per_epoch,
            starting_epoch=starting_epoch,
            max_epoch=max_epoch,
        )
        self._run()

    def train_with_defaults(self, **arguments: Any) -> None:
        """As `train`, with default callbacks and monitors; takes all that `TrainConfig` does."""
        self._set_config({}, **arguments)
        self._run()

    def _set_config(self, defaults: Dict[str, Any], **arguments: Any) -> None:
        """Builds the config from the arguments of `train()`; raises if there is one already."""
        unset = {"starting_epoch": 1, "max_epoch": ENDLESS}
        given = {k: v for k, v in arguments.items() if v is not None and v != unset.get(k)}
        if self.config is None:
            if not {"steps_per_epoch", "data", "dataflow"} & set(given):
                raise ValueError("A run needs steps_per_epoch, or a trainer with a TrainConfig.")
            self.config = TrainConfig(**{**defaults, **given})
            self.model = self.model or self.config.model
        elif given:
            raise ValueError(
                f"This trainer has a TrainConfig: put {', '.join(given)} there, and call train() "
                "or main_loop() without arguments."
            )

    def setup(self) -> None:
        """Builds the graph, sets the callbacks up, creates and initialises the session."""
        config = self._require_config()
        if self.graph.finalized:
            raise RuntimeError(
                "An earlier training has used and finalized this graph. Begin each one with "
                "`with tf.Graph().as_default():`, or call tf.reset_default_graph() before it."
            )
        self.deterministic = config.deterministic
        self._state.find(config.resume, [*config.callbacks, *self._registered])
        with self.graph.as_default():
            # the process may have got its seed after the constructor
            fix_graph_seed(self.graph, self._worker)
            self._setup()
            self.check_stop()
            self.setup_callbacks(config.callbacks, config.monitors)
            self.check_stop()
            if self.deterministic:
                fix_draws(self.train_op, once=self.step_op is not None)
            self.initialize(config.session_creator, config.session_init)

    def _setup(self) -> None:
        """Override to build the graph and set `train_op`, or what else `run_step` needs."""

    @call_only_once
    def setup_callbacks(
        self, callbacks: Sequence[Callback], monitors: Sequence[MonitorBase]
    ) -> None:
        """Sets up the counter, queue runners, registered and given callbacks, and monitors."""
        describe_trainable_vars()
        monitors = [*monitors, *(c for c in self._registered if isinstance(c, MonitorBase))]
        registered = [cb for cb in self._registered if cb not in monitors]
        self.monitors = Monitors(monitors)
        first = [MaintainStepCounter(), StartQueueRunners()]
        everyone = [*first, *callbacks, *registered, *monitors, self.monitors]
        leading = [*first, *(cb for cb in registered if not cb.follows)]
        here = everyone if self.is_chief else of_other_workers(everyone)
        self.state_saver = state_saver_of(here)
        self._callbacks = Callbacks(here, leading=leading)
        self.all_callbacks = self._callbacks.cbs
        self.callback_seconds = self._callbacks.step_seconds
        logger.info("Setup callbacks graph ...")
        self._callbacks.setup_graph(weakref.proxy(self))

    @call_only_once
    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """Creates the session, gives the variables their values and finalises the graph."""
        if self._callbacks is None:
            raise RuntimeError("initialize() comes after setup_callbacks().")
        if self.train_op is None and type(self).run_step is Trainer.run_step:
            raise NotImplementedError(
                f"{type(self).__name__} has nothing to run in a step: set self.train_op in "
                "_setup(), or override run_step()."
            )
        logger.info("Creating the session ...")
        queues = all_queues(self.graph)
        self.sess = (session_creator or NewSessionCreator()).create_session()
        self._queues = queues
        self.check_stop()
        self.initialize_hooks()
        logger.info("Initializing the session ...")
        self._state.session_init(session_init or JustCurrentSession()).init(self.sess)
        self.sess.graph.finalize()
        logger.info("Graph Finalized.")

    @call_only_once
    def initialize_hooks(self) -> None:
        """Makes `hooked_sess` of the session and the callbacks; a part of `initialize`."""
        cbs = self._callbacks
        self.hooked_sess = HookedSession(self.sess, cbs.get_hooks(), cbs.run_along)

    def main_loop(
        self,
        steps_per_epoch: Optional[int] = None,
        starting_epoch: int = 1,
        max_epoch: int = ENDLESS,
    ) -> None:
        """Runs the epochs, and the teardown, whatever happens.

        It comes after `setup`, without arguments; or, in a trainer without a config, after
        `setup_graph`, `setup_callbacks` and `initialize`, with the plan of the run as arguments.
        """
        self._set_config(
            {"extra_callbacks": [], "monitors": []},
            steps_per_epoch=steps_per_epoch,
            starting_epoch=starting_epoch,
            max_epoch=max_epoch,
        )
        if self.hooked_sess is None:
            raise RuntimeError("It runs after setup(), or setup_callbacks() and initialize().")
        self._run(is_set_up=True)

    def run_state(self, interrupted: bool = False) -> Optional[Dict[str, Any]]:
        """Returns all that is needed to continue this run except for its variables.

        To be called between two steps, or by a callback in its turn; None before the first epoch,
        when some callbacks have begun and others have not. The caller must tell the `Segments` in
        it how the save went, see `utils.checkpoints.abandon`.

        Args:
          interrupted: whether the callback whose turn it is, if any, has it again after a resume;
            otherwise it is the one that asks.
        """
        if not self.begun:
            return None
        if not interrupted and self.in_step:
            raise RuntimeError(
                "A run has no state in the middle of a step: save in trigger_step or trigger_epoch."
            )
        return self._state.capture(self._callbacks, interrupted)

    def position(self, interrupted: bool = False) -> Any:
        """Returns the position of the run, a value to compare; see `run_state`."""
        return self._state.position_of(self._callbacks, interrupted)

    def run_step(self) -> None:
        """Runs one iteration: `train_op`, unless overridden.

        The first run of `hooked_sess` in a step counts the step.
        """
        self.hooked_sess.run(self.train_op)

    @property
    def step_op(self) -> Any:
        """The op that a step runs, once and alone; None if `run_step` is overridden."""
        return self.train_op if type(self).run_step is Trainer.run_step else None

    def register_callback(self, cb: Any) -> None:
        """Adds a callback, or a list of them, before their setup. Their turn is before those of the
        config, which save and evaluate what they do, but after them for what `follows`, as inputs.
        """
        if self._callbacks is not None:
            raise RuntimeError("Register callbacks only before setup_callbacks: they may add ops.")
        for one in cb if isinstance(cb, (list, tuple)) else [cb]:
            self._registered.append(check_kind("What register_callback takes", one, Callback))

    def register_monitor(self, mon: MonitorBase) -> None:
        """Adds a monitor after those of the config; before the setup of the callbacks."""
        self.register_callback(check_kind("What register_monitor takes", mon, MonitorBase))

    def _require_config(self) -> TrainConfig:
        if self.config is None:
            raise RuntimeError(
                "This trainer has no TrainConfig: give it one, or call train(...) with its parts."
            )
        return self.config
