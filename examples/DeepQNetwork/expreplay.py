"""Experience replay: the data source of a DQN, and the callback that keeps it filled."""

from functools import partial
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from checks import check_rules

from tensorpack.callbacks import Callback
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import QueueInput
from tensorpack.RL import (
    Agent,
    EpisodeLog,
    Pacer,
    Player,
    PrioritizedReplay,
    ReplayMemory,
    Simulator,
    SimulatorThread,
)
from tensorpack.utils import get_rng, get_tqdm, logger
from tensorpack.utils.checkpoints.segments import SegmentDamaged
from tensorpack.utils.checks import as_count
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.rng import is_seeded, rng_state, set_rng_state
from tensorpack.utils.stopping import Failed, StopRequested

_TICK_SECONDS = 5.0  # time-out for a tick or a batch that is under way when the run ends
_LONG_TICK_SECONDS = 60.0  # the same, during the training
_BATCHES_AHEAD = 4  # in the queue, if they are drawn by priorities
_MANY_PLAYERS = 32  # more of them do not make playing much faster


class ExpReplay(DataFlow, Callback):
    """Yields batches of past transitions while the players produce new ones.

    Give one object to a `TrainConfig` both as `dataflow` and among the `callbacks`::

        main thread      fills the memory before the training, then trains
        EnqueueThread    samples a batch, yields it, grants `update_frequency` transitions, ...
        SimulatorThread  plays what was granted, at most five batches behind

    A deterministic run has no SimulatorThread: the thread that asks for a batch first plays the
    transitions of that batch, with the current weights.

    A resumed run restores the memory, the games, the scores and all random streams. If the memory
    is lost, it is populated again, by the trained network with the exploration of that epoch; if
    the games are lost (not every player can save them), new ones begin. Both give a warning, or an
    error if the run must be resumed exactly. Where only the variables were saved, the memory is
    populated as at the start of a run, with `init_exploration`.

    A datapoint is a batch, or one of its `parts`, with the inputs of `DQNModel.Model`, which says
    what they are: see also `NStepBatch` and `PrioritizedReplay`. The frames are read-only, so that
    the queue need not copy them. With a `priority` above 0 the model has an input `slot` and a
    tensor `priority`, which are fetched in each step. Give the trainer `make_input`, so that
    priorities come back before many batches were sampled.

    Logs `expreplay/mean_score` and `expreplay/max_score` of the games that ended in an epoch (in
    the first one, also of those that ended before it), if there are any, and writes all games of
    the run to `episodes.csv`.

    Args:
      predictor_io_names: names of the inputs and of the outputs of the predictor that acts.
      player: plays the games; closed after the training.
      batch_size: transitions in a batch.
      memory_size: transitions in the memory.
      init_memory_size: transitions that are played before the training begins.
      update_frequency: transitions that are played for each batch, over all environments.
      history_len: frames that make one state.
      init_exploration: probability of a random action before the training begins.
      parts: datapoints that a batch is cut into, one for each tower of the training.
      life_loss_ends: whether a lost life counts as over.
      n_step: rewards of a transition, at most.
      priority: exponent of prioritised replay, up to 1; 0 samples uniformly.
      random_repeat: how often a random action is done in succession, at most, see `RandomActions`.
      rules: further settings that define the learning problem; saved, and compared when the run is
        resumed, see `check_rules`.

    Attributes:
      agent_type: makes what chooses the actions, see `Agent`.
      exploration: probability of a random action; may be set at any time.
      prioritized: whether transitions are drawn by priorities.

    Raises:
      ValueError: a size is not positive, the batch cannot be cut evenly, or the memory is smaller
        than what it is filled with.
    """

    agent_type = Agent

    def __init__(
        self,
        predictor_io_names: Tuple[Sequence[str], Sequence[str]],
        player: Player,
        batch_size: int,
        memory_size: int,
        init_memory_size: int,
        update_frequency: int = 4,
        history_len: int = 4,
        init_exploration: float = 1.0,
        parts: int = 1,
        life_loss_ends: bool = True,
        n_step: int = 1,
        priority: float = 0.0,
        random_repeat: int = 1,
        rules: Optional[Mapping[str, Any]] = None,
    ) -> None:
        count = partial(as_count, "ExpReplay")
        self._batch_size = batch_size = count("batch_size", batch_size)
        self.parts = parts = count("parts", parts)
        self._n_step = n_step = count("n_step", n_step)
        update_frequency = count("update_frequency", update_frequency)
        if batch_size % parts:
            raise ValueError(f"A batch of {batch_size} cannot be cut into {parts} equal parts.")
        if not 1 <= init_memory_size <= memory_size:
            raise ValueError(
                "init_memory_size must be between 1 and memory_size, got "
                f"init_memory_size={init_memory_size}, memory_size={memory_size}."
            )
        self._predictor_io_names = predictor_io_names
        self._player = player
        self._init_memory_size = init_memory_size
        self._life_loss_ends = life_loss_ends
        self.exploration = self._init_exploration = init_exploration
        self._random_repeat = random_repeat
        self._history_len = history_len
        self._rules = {
            **(rules or {}),
            "batch_size": batch_size,
            "update_frequency": update_frequency,
            "history_len": history_len,
            "n_step": n_step,
            "priority": priority,
            "random_repeat": random_repeat,
        }
        self.prioritized = self.sees_runs = priority != 0
        memory: Any = partial(PrioritizedReplay, alpha=priority) if priority else ReplayMemory
        lanes = history_len, player.num_envs, player.frame_dtype
        self._memory = memory(memory_size, player.frame_shape, *lanes)
        self._simulator: Any = None
        self._episodes = EpisodeLog()
        self._pacer = Pacer(update_frequency)
        self._sampling_rng = get_rng(self)
        self._acting_rng = get_rng(self)
        self._thread: Optional[SimulatorThread] = None
        self._ready = self._over = False
        logger.info(f"Number of Legal actions: {player.num_actions}")

    @property
    def seeded(self) -> bool:
        """True if the next run of the program will draw the same random numbers."""
        return is_seeded()

    @property
    def env_steps(self) -> int:
        """Transitions of the run, over all environments, also those before it was resumed."""
        return 0 if self._simulator is None else self._simulator.transitions

    @property
    def num_episodes(self) -> int:
        """Games of the run that were reported: those that ended before the last `trigger`."""
        return len(self._episodes)

    def bottleneck_hint(self, limit: str) -> Optional[str]:
        """Returns advice for what limits the speed of the training, see `TimeReport`."""
        if limit == "processor":
            computing = getattr(getattr(self.trainer, "config", None), "computing", None)
            lower = getattr(computing, "precision", None) != "bf16"
            first = "--precision bf16 (with TensorFlow 2), " if lower else ""
            return first + "a GPU, more cores or fewer summaries help"
        if limit != "data" or self._player.num_envs >= _MANY_PLAYERS:
            return None
        players = min(max(8, 2 * self._player.num_envs), _MANY_PLAYERS)
        return f"the players are the limit; try --num-players {players}"

    def __iter__(self) -> Iterator[List[np.ndarray]]:
        if not self._ready:
            raise RuntimeError(
                "The replay memory is filled before the training: put the ExpReplay among the "
                "callbacks of the TrainConfig too."
            )
        in_lockstep = self._thread is None
        while True:
            with self._pacer:
                if in_lockstep:
                    self._play_for_a_batch()
                batch = self._sample()
            _freeze(batch[0])
            size = self._batch_size // self.parts
            for start in range(0, self._batch_size, size):
                yield [column[start : start + size] for column in batch]
            if not in_lockstep and not self._pacer.grant():
                raise StopRequested(self.trainer.stop_token.reason)

    def _sample(self) -> List[np.ndarray]:
        how = self._batch_size, self._sampling_rng, self._n_step
        if not self.prioritized:
            return list(self._memory.sample(*how))
        drawn = self._memory.sample_weighted(*how)
        return [*drawn.batch, drawn.weight, drawn.slot]

    def _play_for_a_batch(self) -> None:
        """Plays the transitions of one batch, after those still open from before.

        It does not check for a stop: a step that has begun waits for its batch.
        """
        if self._over:
            raise StopRequested("The training is over: its player is closed.")
        self._play_open()
        self._pacer.grant()
        self._play_open()

    def _play_open(self) -> None:
        while self._pacer.open > 0:
            self._pacer.spend(self._simulator.tick(self.exploration))

    def _setup_graph(self) -> None:
        predictor = self.trainer.get_predictor(*self._predictor_io_names)
        how = self._history_len, self._acting_rng, self._random_repeat
        agent = self.agent_type(predictor, self._player, *how)
        self._simulator = Simulator(self._player, self._memory, agent, self._life_loss_ends)
        if self.prioritized:
            towers = self.trainer.tower_func.towers.training()
            self._learned = [tower.get_tensors(["slot", "priority"]) for tower in towers]

    def _before_train(self) -> None:
        if not self._simulator.playing:
            self._simulator.begin()
        if self._needs_more():
            self._populate()
        if not self.trainer.deterministic:
            self._start_thread()
        self._episodes.write()
        self._ready = True

    def _needs_more(self) -> bool:
        """True if the memory has too few entries, or no transition with its next frame."""
        return len(self._memory) < self._init_memory_size or not self._memory.num_sampleable

    def _populate(self) -> None:
        # A trained network learns nothing new from purely random play.
        epsilon = self.exploration if self.trainer.resumed else self._init_exploration
        size = self._init_memory_size
        logger.info(f"Populating replay memory with epsilon={epsilon} ...")
        with get_tqdm(total=size, desc="Replay memory") as bar:
            while self._needs_more():
                self.trainer.check_stop()
                bar.update(min(self._simulator.tick(epsilon), size - bar.n))

    def _start_thread(self) -> None:
        token = self.trainer.stop_token
        thread = SimulatorThread(self._simulator, self._pacer, lambda: self.exploration)
        guard_thread(thread, lambda error: token.request(Failed(error, thread.name)))
        token.on_request(thread.stop)
        thread.start()
        self._thread = thread

    def _before_run(self, ctx: Any) -> Any:
        return self._learned if self.prioritized else None

    def _after_run(self, ctx: Any, run_values: Any) -> None:
        for slots, priorities in run_values.results if self.prioritized else ():
            self._memory.update_priorities(slots, priorities)

    def _trigger(self) -> None:
        episodes = self._simulator.take_episodes()
        self._episodes.extend(episodes)
        self._episodes.write()
        if episodes:
            scores = [each.score for each in episodes]
            monitors = self.trainer.monitors
            monitors.put_scalar("expreplay/mean_score", float(np.mean(scores)))
            monitors.put_scalar("expreplay/max_score", float(np.max(scores)))

    def _after_train(self) -> None:
        thread = self._thread
        if thread is not None:
            thread.stop()
            thread.join(_TICK_SECONDS)
            if thread.is_alive():
                logger.error(f"Cannot join {thread.name}: a step of the player does not return.")
                return  # it still uses the player
        with self._pacer.pause(_TICK_SECONDS) as idle:
            self._over = True
            if idle:
                self._player.close()
            else:
                logger.error("Cannot close the player: one of its steps does not return.")

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the next batches depend on, with no tick or batch half done.

        Raises:
          RuntimeError: a tick takes so long that the player seems to hang.
        """
        seconds = _TICK_SECONDS if self.trainer.stop_token.requested else _LONG_TICK_SECONDS
        with self._pacer.pause(seconds) as idle:
            if not idle:
                raise RuntimeError(
                    "The replay memory cannot be saved: a step of the player has not returned "
                    f"within {seconds} s."
                )
            return {
                "games": self._player.identity,
                "rules": dict(self._rules),
                "simulator": self._simulator.state_dict(),
                "sampling_rng": rng_state(self._sampling_rng),
                "episodes": self._episodes.state_dict(),
                "waiting": [list(each) for each in self._simulator.waiting_episodes()],
                "budget": self._pacer.open,
                "exploration": float(self.exploration),
                # The last one: from here on the memory waits for the end of the save.
                "memory": self._memory.state_dict(),
            }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned; called before the training begins.

        Raises:
          ValueError: the state is of other games, of another algorithm, or of a memory of another
            size.
          RuntimeError: a part of it is lost, or another rule has changed, and the run must be
            resumed exactly.
        """
        theirs, ours = state["games"], self._player.identity
        if theirs != ours:
            raise ValueError(
                f"The state is of games with {theirs}, these are games with {ours}. Resume with "
                "the same games, or start a new run with the weights (--load)."
            )
        changed = check_rules(state["rules"], self._rules)
        if changed:
            self._accept_loss(f"The run continues with other rules: {changed}.")
        self._load_memory(state["memory"])
        lost = self._simulator.load_state_dict(state["simulator"])
        if lost:
            self._accept_loss(f"The games cannot be restored: new ones begin. {lost}")
        set_rng_state(self._sampling_rng, state["sampling_rng"])
        self._episodes.load_state_dict(state["episodes"])
        self._simulator.restore_episodes(state["waiting"])
        self._pacer.open = state["budget"]
        self.exploration = state["exploration"]

    def _load_memory(self, saved: Any) -> None:
        try:
            self._memory.load_state_dict(saved)
        except SegmentDamaged as error:  # and the memory is empty
            if self.trainer.resume_strictly:
                raise
            logger.warning(f"The replay memory is lost and is populated again. {error}")
        else:
            logger.info(f"The replay memory is restored with {len(self._memory)} entries.")

    def _accept_loss(self, what: str) -> None:
        if self.trainer.resume_strictly:
            raise RuntimeError(f"{what} If that is acceptable, use --resume auto.")
        logger.warning(what)


def make_input(expreplay: Any) -> QueueInput:
    """Returns what feeds a model from an `ExpReplay`: the `data` of a `TrainConfig`."""
    # With priorities the queue is short: a batch that waits was drawn by the priorities from before
    # the steps ahead of it.
    ahead = _BATCHES_AHEAD * expreplay.parts if expreplay.prioritized else None
    return QueueInput(expreplay, capacity=ahead)


def _freeze(array: np.ndarray) -> None:
    """Makes an array read-only, together with the arrays it is a view of."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory.setflags(write=False)
        memory = memory.base
