"""What runs on games share: evaluation by whole games, the progress of a run, its weights.

Not for Q alone: a policy plays by a predictor that gives 1 for the action to take. For the command
line of such a run see `tensorpack.contrib.game_flags`.
"""

import os
import time
from contextlib import ExitStack
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.RL import Agent, GameVideo, Player
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.tfutils.sessinit import SessionInit, SmartInit, VariableMismatch
from tensorpack.tfutils.varmanip import is_training_name, known_of_graph, mismatch_table
from tensorpack.utils import get_rng, get_tqdm, humanize_time_delta, logger
from tensorpack.utils.checkpoints.variables import match, variables_of
from tensorpack.utils.optional import require
from tensorpack.utils.rng import rng_state, set_rng_state

__all__ = ["AllWeights", "Evaluator", "Progress", "play_n_episodes"]

_LONG_SECONDS = 600.0  # an evaluation that takes longer ...
_SHORTEN = 0.94  # ... plays this share of its games the next time


def play_n_episodes(
    player: Player,
    predict: Callable[..., Sequence[Any]],
    n: int,
    history: int = 4,
    epsilon: float = 0.001,
    rng: Optional[np.random.RandomState] = None,
    seed: Optional[int] = None,
    on_tick: Callable[[np.ndarray, int], None] = lambda frames, finished: None,
    watch: Optional[Callable[[np.ndarray], None]] = None,
) -> List[float]:
    """Plays n whole games and returns their scores, in the order in which they ended.

    Each environment plays a fixed share of the games. If the first n games to end were counted,
    long games would be missing, and those are the good ones.

    Args:
      player: plays them; reset first.
      predict: the predictor that acts, see `Agent`, as `history`, `epsilon` and `rng`.
      n: number of games.
      seed: of the games; by default the player keeps its random streams.
      on_tick: called after every action with the frames, uint8 `[N, *frame_shape]`, and the number
        of games that ended; an error that it raises ends the playing.
      watch: called in the first game of the first environment before every action, with the frame
        `[*frame_shape]`.
    """
    if n < 1:
        raise ValueError(f"The number of games must be at least 1, got {n}.")
    count = player.num_envs
    agent = Agent(predict, player, history, get_rng() if rng is None else rng)
    frames = player.reset(seed)
    agent.observe(frames, starts=np.ones(count, bool))
    games_left = np.array([n // count + (i < n % count) for i in range(count)])
    scores: List[float] = []
    while games_left.any():
        actions = agent.act(epsilon)
        if watch is not None:
            watch(frames[0])
        step = player.step(actions)
        frames = step.frames
        agent.observe(frames, starts=step.reset)
        if step.terminated[0] or step.truncated[0]:
            watch = None
        ended = (step.terminated | step.truncated) & (games_left > 0)
        games_left -= ended
        scores.extend(step.episode_score[ended].tolist())
        on_tick(frames, int(np.count_nonzero(ended)))
    return scores


class Evaluator(Callback):
    """Plays whole games when triggered, and logs `mean_score` and `max_score`.

    If the run is asked to end meanwhile, the evaluation is cancelled and logs nothing; when the run
    is resumed at this step, it plays the same games. After an evaluation of more than ten minutes
    the next has 6 % fewer games, except in a deterministic run.

    Args:
      nr_eval: number of games.
      input_names, output_names: of the predictor that acts.
      get_player: makes a `Player` of so many environments, to be seeded by `reset`; closed after
        each evaluation.
      num_players: environments at a time, at most.
      history: frames that make one state.
      epsilon: probability of a random action.
      game_seconds: returns how long a game takes about, before there was an evaluation.
      video: whether to write a video of one game of each evaluation, as the agent sees it, to
        `videos/game-{global_step}.mp4` in the log directory; frames must be pictures.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self,
        nr_eval: int,
        input_names: Sequence[str],
        output_names: Sequence[str],
        get_player: Callable[[int], Player],
        num_players: int = 8,
        history: int = 4,
        epsilon: float = 0.001,
        game_seconds: Callable[[], float] = lambda: 0.0,
        video: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if video:  # not only after hours
            require("cv2", "opencv-python-headless")
        self._nr_eval = self.eval_episode = nr_eval
        self._io_names = (input_names, output_names)
        self._get_player = get_player
        self._num_players = num_players
        self._history = history
        self._epsilon = epsilon
        self._game_seconds = game_seconds
        self._video = video
        self._clock = clock
        self._rng = get_rng(self)
        self._predictor: Any = None

    def _setup_graph(self) -> None:
        self._predictor = self.trainer.get_predictor(*self._io_names)

    def _trigger(self) -> None:
        start = self._clock()
        before = rng_state(self._rng)
        try:
            scores = self._play()
        except BaseException:  # the next one plays the same games
            set_rng_state(self._rng, before)
            raise
        took = self._clock() - start
        self._game_seconds = lambda: took / len(scores)
        monitors = self.trainer.monitors
        monitors.put_scalar("mean_score", float(np.mean(scores)))
        monitors.put_scalar("max_score", float(np.max(scores)))
        if took > _LONG_SECONDS and not self.trainer.deterministic:
            self.eval_episode = max(int(self.eval_episode * _SHORTEN), 1)
            logger.info(f"That took long: the next evaluation has {self.eval_episode} games.")

    def _play(self) -> List[float]:
        n, seed = self.eval_episode, int(self._rng.randint(2**31))
        seconds = n * self._game_seconds()
        about = f", about {humanize_time_delta(seconds)}" if seconds else ""
        logger.info(f"Evaluating: {n} games, {min(n, self._num_players)} at a time{about}.")
        with ExitStack() as stack:
            player = stack.enter_context(self._get_player(min(n, self._num_players)))
            bar = stack.enter_context(get_tqdm(total=n, desc="Evaluation"))
            watch = None
            if self._video:
                folder = os.path.join(logger.get_logger_dir() or "", "videos")
                video = GameVideo(os.path.join(folder, f"game-{self.global_step}.mp4"))
                stack.enter_context(video)
                watch = video.watch

            def on_tick(frames: np.ndarray, finished: int) -> None:
                bar.update(finished)
                self.trainer.check_stop()

            return play_n_episodes(
                *(player, self._predictor, n, self._history, self._epsilon, self._rng, seed),
                on_tick=on_tick,
                watch=watch,
            )

    def state_dict(self) -> Dict[str, Any]:
        """Returns the numbers of games and the random stream."""
        numbers = {"nr_eval": self._nr_eval, "eval_episode": self.eval_episode}
        return {**numbers, "rng": rng_state(self._rng)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned; of another `nr_eval`, the random stream alone."""
        set_rng_state(self._rng, state["rng"])
        if state["nr_eval"] == self._nr_eval:
            self.eval_episode = state["eval_episode"]


class Progress(Callback):
    """Puts how far the run is when triggered: what the x axis of a curve needs.

    The scalars are `agent_steps` (actions in training, over all games), `emulator_frames` (these,
    times the frames of an action), `episodes` (games that ended in training) and `hours` (of
    wall-clock time, with evaluations and saves). A resumed run continues them; time that was lost
    because the run was killed does not count. Put it after what plays.

    Args:
      expreplay: plays the games of the training.
      frame_skip: emulator frames for each action.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self, expreplay: Any, frame_skip: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._expreplay = expreplay
        self._frame_skip = frame_skip
        self._clock = clock
        self._start = 0.0  # earlier by the time of the run that is resumed

    def _setup_graph(self) -> None:
        self._start = self._clock()

    def _trigger(self) -> None:
        steps = self._expreplay.env_steps
        put = self.trainer.monitors.put_scalar
        put("agent_steps", steps)
        put("emulator_frames", steps * self._frame_skip)
        put("episodes", self._expreplay.num_episodes)
        put("hours", self._so_far() / 3600)

    def seconds_of_a_game(self) -> float:
        """Returns how long a game of the training takes, at the mean, with the learning."""
        return self._so_far() / max(self._expreplay.num_episodes, 1)

    def _so_far(self) -> float:
        return self._clock() - self._start

    def state_dict(self) -> Dict[str, Any]:
        """Returns the seconds so far."""
        return {"seconds": self._so_far()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned."""
        self._start -= state["seconds"]


class AllWeights(SessionInit):
    """Loads all variables of a network that is to act, from a file of its weights alone.

    Args:
      path: as in `SmartInit`.
      advice: what to do about the file of another network; begins the message of the error.

    Raises:
      VariableMismatch: in `init`; lists the variables that are missing, too many, or of another
        shape or type.
    """

    def __init__(self, path: str, advice: str) -> None:
        self._path = path
        self._advice = advice
        self._loader = SmartInit(path)

    def _run_init(self, sess: Any) -> None:
        saved = variables_of(load_checkpoint_vars(self._path))
        rows = match(known_of_graph(tf.global_variables()), saved)
        wrong = [row for row in rows if row.verdict not in ("same", "cast", "extra")]
        # A weight is LAYER/VARIABLE: target networks and optimizers have longer names.
        extra = [row for row in rows if row.verdict == "extra" and row.name.count("/") == 1]
        wrong += [row for row in extra if not is_training_name(row.name)]
        if wrong:
            raise VariableMismatch(f"{self._advice}\n{mismatch_table(wrong)}")
        self._loader.init(sess)
