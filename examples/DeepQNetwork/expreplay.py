"""Experience replay: the data source of a DQN, and the callback that keeps it filled."""

from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from agent import Agent
from budget import TransitionBudget
from scores import Scores
from simulator import Simulator, SimulatorThread

from tensorpack.callbacks import Callback
from tensorpack.dataflow import DataFlow
from tensorpack.RL import Player, ReplayMemory
from tensorpack.utils import get_rng, get_tqdm, logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed, StopRequested

__all__ = ["ExpReplay"]

_JOIN_SECONDS = 5.0  # for the tick that is under way


class ExpReplay(DataFlow, Callback):
    """Yields batches of what players have experienced, while they go on playing.

    Give one object to a `TrainConfig` both as `dataflow` and among the `callbacks`::

        main thread    fills the memory before the training, then trains
        EnqueueThread  samples a batch, hands it out, grants `update_frequency` transitions, ...
        SimulatorThread  plays what was granted, at most five batches behind

    A datapoint is `[comb_state, action, reward, isOver]`: uint8
    `[B, history_len + 1, *frame_shape]`, int64, float32 and bool `[B]`. The first `history_len`
    frames are the state that `action` was taken in, the last `history_len` the one that followed.
    A lost life counts as over.

    After each epoch `expreplay/mean_score` and `expreplay/max_score` of the games that ended in it
    are logged, those that ended before the first epoch included; nothing if none ended.

    Args:
      predictor_io_names: names of the inputs and of the outputs of the predictor that acts.
      player: plays the games; closed after the training.
      batch_size: transitions in a batch.
      memory_size: transitions that are kept.
      init_memory_size: transitions that are played before the training begins.
      update_frequency: transitions that are played for each batch, over all environments.
      history_len: frames that make one state.
      init_exploration: probability of an action by chance before the training begins.

    Attributes:
      exploration: probability of an action by chance; may be set at any time.

    Raises:
      ValueError: a size is not positive, or the memory is smaller than what it is filled with.
    """

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
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        if not 1 <= init_memory_size <= memory_size:
            raise ValueError(
                "init_memory_size must be between 1 and memory_size, got "
                f"init_memory_size={init_memory_size}, memory_size={memory_size}."
            )
        self._predictor_io_names = predictor_io_names
        self._player = player
        self._batch_size = batch_size
        self._init_memory_size = init_memory_size
        self._init_exploration = init_exploration
        self.exploration = init_exploration
        self._history_len = history_len
        self._memory = ReplayMemory(
            memory_size,
            player.frame_shape,
            history=history_len,
            lanes=player.num_envs,
            frame_dtype=np.dtype(player.frame_dtype).type,
        )
        self._budget = TransitionBudget(update_frequency)
        self._scores = Scores()
        self._sampling_rng = get_rng(self)
        self._acting_rng = get_rng(self)
        self._predictor: Any = None
        self._thread: Optional[SimulatorThread] = None
        logger.info(f"Number of Legal actions: {player.num_actions}")

    def __iter__(self) -> Iterator[List[np.ndarray]]:
        if self._thread is None:
            raise RuntimeError(
                "The replay memory is filled before the training: put the ExpReplay among the "
                "callbacks of the TrainConfig too."
            )
        while True:
            yield list(self._memory.sample(self._batch_size, self._sampling_rng))
            if not self._budget.grant():
                raise StopRequested(self.trainer.stop_token.reason)

    def _setup_graph(self) -> None:
        self._predictor = self.trainer.get_predictor(*self._predictor_io_names)

    def _before_train(self) -> None:
        agent = Agent(self._predictor, self._player, self._history_len, self._acting_rng)
        simulator = Simulator(self._player, self._memory, agent, self._scores)
        self._populate(simulator)
        self._start(simulator)

    def _populate(self, simulator: Simulator) -> None:
        epsilon, size = self._init_exploration, self._init_memory_size
        logger.info(f"Populating replay memory with epsilon={epsilon} ...")
        with get_tqdm(total=size) as bar:
            while len(self._memory) < size:
                self.trainer.check_stop()
                stored = simulator.tick(epsilon)
                bar.update(min(stored, size - bar.n))

    def _start(self, simulator: Simulator) -> None:
        token = self.trainer.stop_token
        thread = SimulatorThread(simulator, self._budget, lambda: self.exploration)
        guard_thread(thread, lambda error: token.request(Failed(error, thread.name)))
        token.on_request(thread.stop)
        thread.start()
        self._thread = thread

    def _trigger(self) -> None:
        scores = self._scores.take()
        if scores:
            monitors = self.trainer.monitors
            monitors.put_scalar("expreplay/mean_score", float(np.mean(scores)))
            monitors.put_scalar("expreplay/max_score", float(np.max(scores)))

    def _after_train(self) -> None:
        thread = self._thread
        if thread is not None:
            thread.stop()
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                logger.error(f"Cannot join {thread.name}: the player does not come back.")
                return  # it is still using the player
        self._player.close()
