"""The learner's side: what actors play comes in and fills a memory, weights go out."""

import queue
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.dataflow import DataFlowTerminated, RemoteDataZMQ, RemoteSender
from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed, StopToken

from ..episodes import Episode
from ..player import Player
from ..replay import ReplayMemory
from ..simulator import Simulator
from .actor import BEAT_SECONDS, FIRST_SECONDS, MANY, SILENT, SILENT_SECONDS, WINDOW
from .chunks import store_chunk

Weights = Dict[str, np.ndarray]

_TOLD_TOGETHER = WINDOW // 2  # chunks that are taken before the actor is told
_JOIN_SECONDS = 3.0
_TICK_SECONDS = 0.2  # for a chunk to come


class Chunk(NamedTuple):
    """What an actor has played."""

    actor: int  # from 0
    run: bytes  # see actor.py
    follows: bool  # whether it continues the actor's chunk before
    rows: Dict[str, Any]  # see chunks.py
    games: List[Tuple[float, int]]  # score and length of each that ended


class _Actor:
    """What is known of an actor, from its messages."""

    def __init__(self, deadline: float) -> None:
        self.run = b""  # empty before the first message
        self.sent = 0  # chunks
        self.next = self.run, 0  # the run and the number of the chunk that follows the last one
        self.waiting = 0  # of these, in the queue here
        self.version = 0  # of the weights that it has
        self.given = 0.0  # when weights were sent last
        self.deadline = deadline  # when it is lost unless it says something


class _Told:
    """What an actor was told last."""

    def __init__(self, run: bytes) -> None:
        self.run = run
        self.taken = 0
        self.version = 0
        self.epsilon = -1.0


class ActorGroup:
    """The connection of a learner with its actors.

    A thread receives what they play; another one for each actor tells it about new weights, the
    probability of random actions, and how much was taken. A thread that fails, and an actor that
    is silent for a minute, are failures of the run.

    Args:
      addresses: of the learner and of all actors, such as `tcp://127.0.0.1:5000`.
      key: path of the key, see `make_remote_key`.
      silent: seconds after which an actor is lost.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        key: Optional[str] = None,
        silent: float = SILENT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses = list(addresses)
        self._key = key
        self._silent = silent
        self._clock = clock
        self.size = len(addresses) - 1
        self._flow = RemoteDataZMQ(addresses[0], key=key)
        self._actors: List[_Actor] = []
        self._chunks: queue.Queue[Chunk] = queue.Queue()  # of each actor at most WINDOW
        self._change = threading.Condition()
        self._epsilon = 1.0
        self._newest = 0  # version of the weights that actors should have
        self._fetched = 0  # version of the weights below
        self._weights: Weights = {}
        self._fetching = threading.Lock()
        self._over = False
        self._threads: List[threading.Thread] = []

    def start(self, fetch: Callable[[], Weights], token: StopToken) -> None:
        """Begins to hear the actors, and lets those that are heard begin to play.

        `fetch` returns the present weights, on any thread; the token is told about failures.
        """
        self._flow.reset_state()
        deadline = self._clock() + FIRST_SECONDS
        self._actors = [_Actor(deadline) for _ in range(self.size)]
        self._fetch, self._newest = fetch, 1
        self._run("ActorGroup", self._receive, token)
        for index in range(self.size):
            self._run(f"actor {index + 1}", partial(self._serve, index), token)
        logger.info(f"Waiting for {self.size} actors at {self._addresses[0]} ...")

    def renew(self) -> None:
        """Gives all actors the weights that the network has from now on."""
        with self._change:
            self._newest += 1
            self._change.notify_all()

    def set_epsilon(self, epsilon: float) -> None:
        """Sets the probability of a random action."""
        with self._change:
            if epsilon != self._epsilon:
                self._epsilon = epsilon
                self._change.notify_all()

    def take(self, seconds: float) -> Optional[Chunk]:
        """Returns the next chunk of any actor; None if none comes for so long."""
        try:
            chunk = self._chunks.get(timeout=seconds)
        except queue.Empty:
            return None
        actor = self._actors[chunk.actor]
        with self._change:
            if chunk.run == actor.run:
                actor.waiting -= 1
                self._change.notify_all()
        return chunk

    def close(self) -> None:
        """Tells the actors that the training is over, and ends the connection."""
        with self._change:
            self._over = True
            self._change.notify_all()
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads[1:]:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._flow.close()
        for thread in self._threads[:1]:
            thread.join()
        for thread in self._threads:
            if thread.is_alive():
                logger.warning(f"The connection with {thread.name} could not be closed.")

    def _run(self, name: str, target: Callable[[], None], token: StopToken) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        guard_thread(thread, lambda error: token.request(Failed(error, name)))
        self._threads.append(thread)
        thread.start()

    def _receive(self) -> None:
        try:
            for message in self._flow:
                self._note(message)
        except DataFlowTerminated:
            if not self._over:
                raise

    def _note(self, message: Dict[str, Any]) -> None:
        index, run, seq = message["actor"] - 1, message["run"], message["seq"]
        if not 0 <= index < self.size:
            raise ValueError(f"A message of actor {index + 1}: there are {self.size} actors here.")
        actor = self._actors[index]
        with self._change:
            if run != actor.run:
                if actor.run:
                    logger.warning(f"Actor {index + 1} has begun again.")
                actor.run, actor.waiting = run, 0
            actor.sent, actor.version = seq, message["version"]
            actor.deadline = self._clock() + self._silent
            if message["chunk"] is not None:
                follows, actor.next = actor.next == (run, seq), (run, seq + 1)
                actor.sent += 1
                actor.waiting += 1
                self._chunks.put(Chunk(index, run, follows, message["chunk"], message["games"]))
            self._change.notify_all()

    def _serve(self, index: int) -> None:
        """Tells an actor what is new, from its first message until the end."""
        actor, address = self._actors[index], self._addresses[index + 1]
        told, over = _Told(b""), False
        with RemoteSender(address, MANY, key=self._key, timeout=self._silent) as sender:
            while not over:
                with self._change:  # for a second at most
                    self._change.wait_for(partial(self._has_news, actor, told), BEAT_SECONDS)
                    if self._clock() > actor.deadline:
                        raise TimeoutError(f"Actor {index + 1} at {address} {SILENT}")
                    over = self._over
                    told = told if told.run == actor.run else _Told(actor.run)
                    renew = self._needs_weights(actor, told) and not over
                    actor.given = self._clock() if renew else actor.given
                    told.taken, told.epsilon = actor.sent - actor.waiting, self._epsilon
                weights = self._weights_for(told) if renew else None
                if told.run:
                    sender.send({**vars(told), "weights": weights, "over": over})

    def _has_news(self, actor: _Actor, told: _Told) -> bool:
        if self._over or not actor.run:
            return self._over
        return (
            actor.run != told.run
            or self._needs_weights(actor, told)
            or self._epsilon != told.epsilon
            or actor.sent - actor.waiting >= told.taken + _TOLD_TOGETHER
        )

    def _needs_weights(self, actor: _Actor, told: _Told) -> bool:
        """True if there are newer weights, and those that were sent last have come, or are lost."""
        came = actor.version == told.version or self._clock() > actor.given + self._silent
        return bool(actor.run) and came and actor.version < self._newest

    def _weights_for(self, told: _Told) -> Weights:
        """Returns the newest weights, fetched once for all actors; notes their version."""
        with self._fetching:
            if self._fetched < self._newest:
                self._fetched = self._newest  # before: they may be newer, never older
                self._weights = self._fetch()
            told.version = self._fetched
            return self._weights


class RemotePlayer(Player):
    """The games of all actors: it says what they are, and cannot be stepped. It owns its group.

    Each actor has a player `like` this one, of which only the attributes are read.
    """

    def __init__(self, like: Player, group: ActorGroup) -> None:
        self.group = group
        self.games = like.num_envs  # of each actor
        self.num_envs = like.num_envs * group.size
        self.num_actions = like.num_actions
        self.frame_shape = like.frame_shape
        self.frame_dtype = like.frame_dtype
        self._identity = {**like.identity, "actors": group.size}

    @property
    def identity(self) -> Dict[str, Any]:
        return self._identity

    def _close(self) -> None:
        self.group.close()


class RemoteSimulator(Simulator):
    """Fills a replay memory, with a lane for each game of each actor, with what these play.

    A tick is a chunk of one of them.
    """

    def __init__(self, player: RemotePlayer, memory: ReplayMemory) -> None:
        no_agent: Any = None  # the actors have theirs
        super().__init__(player, memory, agent=no_agent)
        self._group = player.group
        self._lanes = np.arange(player.num_envs).reshape(player.group.size, player.games)

    def begin(self) -> None:
        """Cuts off the games that the memory has; actors always begin new ones."""
        self._memory.end_episodes()
        self.playing = True

    def tick(self, epsilon: float) -> int:
        """Stores a chunk of any actor, if one comes soon; returns how many transitions it has.

        `epsilon` counts from some chunks later on. ValueError if what came is not a chunk.
        """
        self._group.set_epsilon(epsilon)
        chunk = self._group.take(_TICK_SECONDS)
        if chunk is None:
            return 0
        lanes = self._lanes[chunk.actor]
        if not chunk.follows:
            self._memory.end_episodes(lanes)
        stored = store_chunk(self._memory, chunk.rows, lanes)
        self.transitions += stored
        self._ended.extend(Episode(self.transitions, *each) for each in chunk.games)
        return stored

    def state_dict(self) -> Dict[str, Any]:
        return {"transitions": self.transitions}

    def load_state_dict(self, state: Dict[str, Any]) -> str:
        self.transitions = state.get("transitions", 0)
        return "Actors do not save games."
