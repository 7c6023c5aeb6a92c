"""Experience replay: the data source of a DQN, and the callback that keeps it filled."""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from agent import Agent
from budget import TransitionBudget
from gate import Gate
from rules import check_rules
from scores import Scores
from simulator import Simulator, SimulatorThread

from tensorpack.callbacks import Callback
from tensorpack.dataflow import DataFlow
from tensorpack.RL import Player, ReplayMemory
from tensorpack.utils import get_rng, get_tqdm, logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.rng import is_seeded, rng_state, set_rng_state
from tensorpack.utils.segments import SegmentDamaged
from tensorpack.utils.stopping import Failed, StopRequested

__all__ = ["ExpReplay"]

_TICK_SECONDS = 5.0  # in which a tick or a batch that is under way must be over
_LONG_TICK_SECONDS = 60.0  # the same, while the training goes on
_MANY_PLAYERS = 32  # more of them do not make the playing much faster


class ExpReplay(DataFlow, Callback):
    """Yields batches of what players have experienced, while they go on playing.

    Give one object to a `TrainConfig` both as `dataflow` and among the `callbacks`::

        main thread    fills the memory before the training, then trains
        EnqueueThread  samples a batch, hands it out, grants `update_frequency` transitions, ...
        SimulatorThread  plays what was granted, at most five batches behind

    In a deterministic run there is no SimulatorThread, and nothing depends on the speed of threads:
    whoever asks for a batch first plays the transitions of that batch, with the weights of that
    moment. A batch that was begun is finished, also when the run is asked to end.

    A run that is resumed goes on with the memory, the games, the scores and all random streams. If
    the memory was lost, it is populated anew, by the trained network with the exploration of that
    time; if the games were lost (not every player can save them), new ones are begun. Both are told
    in warnings, or are errors if the run is to be resumed strictly. Where only the variables were
    saved, the memory is populated as in the beginning, with `init_exploration`.

    A datapoint is `[comb_state, action, reward, isOver]`: uint8
    `[B, history_len + 1, *frame_shape]`, int64, float32 and bool `[B]`. The first `history_len`
    frames are the state that `action` was taken in, the last `history_len` the one that followed.
    A lost life counts as over. The frames are read-only, and so need not be copied when they are
    enqueued.

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
      rules: what else defines what is learned, such as `{"algo": "Double"}`: saved, and compared
        when the run is resumed, see `check_rules`.

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
        rules: Optional[Mapping[str, Any]] = None,
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
        self._rules = {
            **(rules or {}),
            "batch_size": batch_size,
            "update_frequency": update_frequency,
            "history_len": history_len,
        }
        self._memory = ReplayMemory(
            memory_size,
            player.frame_shape,
            history=history_len,
            lanes=player.num_envs,
            frame_dtype=np.dtype(player.frame_dtype).type,
        )
        self._simulator: Any = None
        self._budget = TransitionBudget(update_frequency)
        self._scores = Scores()
        self._gate = Gate()
        self._sampling_rng = get_rng(self)
        self._acting_rng = get_rng(self)
        self._thread: Optional[SimulatorThread] = None
        self._ready = self._over = False
        logger.info(f"Number of Legal actions: {player.num_actions}")

    @property
    def seeded(self) -> bool:
        """Whether the random streams will be the same ones in the next run of the program."""
        return is_seeded()

    @property
    def env_steps(self) -> int:
        """Transitions that were played in this run, over all environments."""
        return 0 if self._simulator is None else self._simulator.transitions

    def bottleneck_hint(self, limit: str) -> Optional[str]:
        """Returns what may be done about a limit of the training, see `TimeReport`."""
        if limit == "processor":
            computing = getattr(getattr(self.trainer, "config", None), "computing", None)
            lower = getattr(computing, "precision", None) != "bf16"
            first = "--precision bf16 (with TensorFlow 2), " if lower else ""
            return first + "a GPU, more cores or fewer summaries help"
        if limit not in ("data", "draining") or self._player.num_envs >= _MANY_PLAYERS:
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
            with self._gate.piece():
                if in_lockstep:
                    self._play_for_a_batch()
                batch = list(self._memory.sample(self._batch_size, self._sampling_rng))
            _freeze(batch[0])
            yield batch
            if not in_lockstep and not self._budget.grant():
                raise StopRequested(self.trainer.stop_token.reason)

    def _play_for_a_batch(self) -> None:
        """Plays what is granted for one batch, and what is left over from before.

        Also when the run was asked to end, for a step that has begun waits for the batch.

        Raises:
          StopRequested: the run is over and its player closed.
        """
        if self._over:
            raise StopRequested("The training is over: there are no games any more.")
        self._play_what_is_granted()
        self._budget.grant()
        self._play_what_is_granted()

    def _play_what_is_granted(self) -> None:
        while self._budget.open > 0:
            self._budget.spend(self._simulator.tick(self.exploration))

    def _setup_graph(self) -> None:
        predictor = self.trainer.get_predictor(*self._predictor_io_names)
        agent = Agent(predictor, self._player, self._history_len, self._acting_rng)
        self._simulator = Simulator(self._player, self._memory, agent, self._scores)

    def _before_train(self) -> None:
        if not self._simulator.playing:
            self._simulator.begin()
        if self._needs_more():
            self._populate()
        if not self.trainer.deterministic:
            self._start_thread()
        self._ready = True

    def _needs_more(self) -> bool:
        """Whether the training cannot begin. A transition is whole when its next frame is there."""
        return len(self._memory) < self._init_memory_size or not self._memory.num_sampleable

    def _populate(self) -> None:
        # What a trained network does by chance alone, it has long learned from.
        epsilon = self.exploration if self.trainer.resumed else self._init_exploration
        size = self._init_memory_size
        logger.info(f"Populating replay memory with epsilon={epsilon} ...")
        with get_tqdm(total=size) as bar:
            while self._needs_more():
                self.trainer.check_stop()
                stored = self._simulator.tick(epsilon)
                bar.update(min(stored, size - bar.n))

    def _start_thread(self) -> None:
        token = self.trainer.stop_token
        thread = SimulatorThread(
            self._simulator, self._budget, lambda: self.exploration, self._gate
        )
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
            thread.join(_TICK_SECONDS)
            if thread.is_alive():
                logger.error(f"Cannot join {thread.name}: the player does not come back.")
                return  # it is still using the player
        with self._gate.pause(_TICK_SECONDS) as nobody_plays:
            self._over = True
            if nobody_plays:
                self._player.close()
            else:
                logger.error("Cannot close the player: it does not come back.")

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the next batches depend on, between two ticks and two batches.

        Raises:
          RuntimeError: a tick takes so long that the player seems to hang.
        """
        seconds = _TICK_SECONDS if self.trainer.stop_token.requested else _LONG_TICK_SECONDS
        with self._gate.pause(seconds) as nobody_plays:
            if not nobody_plays:
                raise RuntimeError(
                    f"The state of the replay memory cannot be saved: the player has not come back "
                    f"within {seconds} s."
                )
            return {
                "games": self._player.identity,
                "rules": dict(self._rules),
                "simulator": self._simulator.state_dict(),
                "sampling_rng": rng_state(self._sampling_rng),
                "scores": self._scores.waiting(),
                "budget": self._budget.open,
                "exploration": float(self.exploration),
                # The last one: from here on the memory waits to hear how the save went.
                "memory": self._memory.state_dict(),
            }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Takes back what `state_dict` returned; called before the training begins.

        Raises:
          ValueError: the state is of other games, of another algorithm, or of a memory of another
            size.
          RuntimeError: something of it is lost, or another rule of learning has changed, and the
            run is to be resumed strictly.
        """
        theirs, ours = state.get("games", {}), self._player.identity
        if theirs and theirs != ours:
            raise ValueError(
                f"The state is of games with {theirs}, these are games with {ours}. Resume with "
                "the games of before, or begin another run and give it the weights (--load)."
            )
        changed = check_rules(state.get("rules", {}), self._rules)
        if changed:
            self._accept_loss(f"The run learns by other rules from here on: {changed}.")
        self._load_memory(state["memory"])
        lost = self._simulator.load_state_dict(state["simulator"])
        if lost:
            self._accept_loss(f"The games cannot be gone on with: new ones are begun. {lost}")
        set_rng_state(self._sampling_rng, state["sampling_rng"])
        self._scores.take()
        self._scores.add(state["scores"])
        self._budget.open = state["budget"]
        self.exploration = state["exploration"]

    def _load_memory(self, saved: Any) -> None:
        try:
            self._memory.load_state_dict(saved)
        except SegmentDamaged as error:  # and the memory is empty
            if self.trainer.resume_strictly:
                raise
            logger.warning(f"The replay memory is lost and is populated anew. {error}")
        else:
            logger.info(f"The replay memory goes on with {len(self._memory)} entries.")

    def _accept_loss(self, what: str) -> None:
        if self.trainer.resume_strictly:
            raise RuntimeError(
                f"{what} If that is good enough, resume with another policy than must."
            )
        logger.warning(what)


def _freeze(array: np.ndarray) -> None:
    """Makes an array read-only, and the memory it views."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory.setflags(write=False)
        memory = memory.base
