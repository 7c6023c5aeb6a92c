"""An actor: plays games in a process of its own, for a learner in another one.

Each message is a datapoint of the remote dataflow, a dictionary::

    actor -> learner   actor     its number, from 1
                       run       8 random bytes: those of this process
                       seq       how many chunks it has sent before
                       version   of the weights that it plays with; 0 before the first ones
                       chunk     transitions, see `chunks.py`; None if there is nothing but a beat
                       games     score and length of each that ended
    learner -> actor   run       the process that this is for
                       taken     how many chunks of it have been taken
                       epsilon   probability of a random action
                       version   of the weights in this message
                       weights   name of a variable to its value; None if there is nothing new
                       over      True if the training is over

An actor plays at most `WINDOW` chunks ahead of what has been taken. Each side sends at least every
`BEAT_SECONDS`, so either knows when the other one is gone.
"""

import os
import threading
import time
from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np

from tensorpack.dataflow import DataFlowTerminated, RemoteDataZMQ, RemoteSender
from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.signals import SignalListener
from tensorpack.utils.stopping import Failed, Finished, Interrupted, StopToken

from ..player import Player
from ..simulator import Agent, Simulator
from .chunks import Recorder

WINDOW = 4  # chunks that an actor may be ahead
CHUNK_ROWS = 32  # transitions in a chunk, at least, unless they take `BEAT_SECONDS`
BEAT_SECONDS = 1.0
SILENT_SECONDS = 60.0  # after which the other side is taken for lost ...
FIRST_SECONDS = 600.0  # ... and before it has said anything
SILENT = "has been silent for too long: it has ended or hangs, or the connection is broken."
MANY = 1000  # messages that may wait to be sent: more than come until the other side is lost


class Orders:
    """A context within which a thread hears what the learner wants. Thread-safe.

    Args:
      address: where the learner sends it to; bound.
      learner: its address, for messages.
      token: asked to stop when the training is over, or the learner is lost.
      key, clock: as in `ActorGroup`.

    Attributes:
      run: 8 random bytes; only what is addressed to them counts.
      epsilon: probability of a random action.
      taken: how many chunks the learner has taken.
    """

    def __init__(
        self,
        address: str,
        learner: str,
        token: StopToken,
        key: Optional[str] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = os.urandom(8)
        self.epsilon = 1.0
        self.taken = 0
        self._learner = learner
        self._token = token
        self._clock = clock
        self._deadline = clock() + FIRST_SECONDS
        self._weights: Optional[Dict[str, Any]] = None
        self._change = threading.Condition()
        self._flow = RemoteDataZMQ(address, key=key)
        self._thread = threading.Thread(target=self._hear, name="Orders", daemon=True)
        guard_thread(self._thread, lambda error: token.request(Failed(error, "Orders")))

    def __enter__(self) -> "Orders":
        self._flow.reset_state()
        self._thread.start()
        self._forget = self._token.on_request(self._wake)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._forget()
        self._flow.close()
        self._thread.join()

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Waits until a condition of the orders is true, or the end; returns False after a second.

        Asks the token to stop if the learner has been silent for too long.
        """
        with self._change:
            known = self._change.wait_for(
                lambda: self._token.requested or condition(), BEAT_SECONDS
            )
        if self._clock() > self._deadline:
            lost = TimeoutError(f"The learner at {self._learner} {SILENT}")
            self._token.request(Failed(lost, "the learner"))
        return known

    @property
    def has_weights(self) -> bool:
        """True if there are weights that were not taken."""
        return self._weights is not None

    def take_weights(self) -> Optional[Dict[str, Any]]:
        """Returns the newest message with weights; None if they were taken before."""
        with self._change:
            weights, self._weights = self._weights, None
        return weights

    def _wake(self) -> None:
        with self._change:
            self._change.notify_all()

    def _hear(self) -> None:
        try:
            for message in self._flow:
                self._note(message)
        except DataFlowTerminated:
            return  # closed by __exit__

    def _note(self, message: Dict[str, Any]) -> None:
        if message["run"] != self.run:
            return
        with self._change:
            self._deadline = self._clock() + SILENT_SECONDS
            self.epsilon, self.taken = message["epsilon"], message["taken"]
            if message["weights"] is not None:
                self._weights = message
            self._change.notify_all()
        if message["over"]:
            self._token.request(Finished())


class Actor:
    """Plays and sends what it played, as the orders say, until the token asks it to stop.

    Args:
      number: of this actor, from 1.
      player, agent: the games, and what chooses their actions.
      set_weights: takes the weights of the learner, the name of each variable with its value.
      orders, sender, token: of the learner, to the learner, and the end.
      life_loss_ends: whether a lost life counts as over.
    """

    def __init__(
        self,
        number: int,
        player: Player,
        agent: Agent,
        set_weights: Callable[[Dict[str, np.ndarray]], None],
        orders: Orders,
        sender: RemoteSender,
        token: StopToken,
        life_loss_ends: bool = True,
    ) -> None:
        self._number = number
        self._set_weights = set_weights
        self._orders = orders
        self._sender = sender
        self._token = token
        self._recorder = Recorder()
        self._simulator = Simulator(player, self._recorder, agent, life_loss_ends)
        self._sent = 0
        self._version = 0

    def run(self) -> None:
        self._send(None)
        while self._wait_to_play():
            if not self._simulator.playing:
                self._simulator.begin()
            until = time.monotonic() + BEAT_SECONDS  # a slow game sends fewer rows
            while len(self._recorder) < CHUNK_ROWS and not self._token.requested:
                self._simulator.tick(self._orders.epsilon)
                if time.monotonic() > until:
                    break
            if not self._token.requested:
                self._send(self._recorder.take())
                self._sent += 1

    def _wait_to_play(self) -> bool:
        """Waits for the first weights, and for the learner to take chunks; False at the end."""
        orders = self._orders
        while not self._token.requested:
            self._take_weights()
            if self._version and self._has_room():
                return True
            if not orders.wait_for(lambda: orders.has_weights or self._has_room()):
                self._send(None)  # a beat
        return False

    def _has_room(self) -> bool:
        return self._version > 0 and self._sent - self._orders.taken < WINDOW

    def _take_weights(self) -> None:
        message = self._orders.take_weights()
        if message is not None:
            self._set_weights(message["weights"])
            self._version = message["version"]

    def _send(self, chunk: Optional[Dict[str, np.ndarray]]) -> None:
        ended = self._simulator.take_episodes() if chunk else []
        self._sender.send(
            {
                "actor": self._number,
                "run": self._orders.run,
                "seq": self._sent,
                "version": self._version,
                "chunk": chunk,
                "games": [[each.score, each.length] for each in ended],
            }
        )


def play_for_learner(
    number: int,
    addresses: Sequence[str],
    player: Player,
    agent: Agent,
    set_weights: Callable[[Dict[str, np.ndarray]], None],
    key: Optional[str] = None,
    life_loss_ends: bool = True,
) -> None:
    """Plays until the training is over.

    Args:
      number, player, agent, set_weights, life_loss_ends: as in `Actor`.
      addresses: of the learner and of all actors, such as `tcp://127.0.0.1:5000`.
      key: path of the key, see `make_remote_key`.

    Raises:
      SystemExit: with 128 + its number if a signal has ended it.
      TimeoutError: the learner is lost.
    """
    token, learner = StopToken(), addresses[0]

    def interrupt(signum: int) -> None:
        token.request(Interrupted(signum))

    with SignalListener(interrupt), Orders(addresses[number], learner, token, key) as orders:
        with RemoteSender(learner, MANY, key=key, timeout=SILENT_SECONDS) as sender:
            Actor(number, player, agent, set_weights, orders, sender, token, life_loss_ends).run()
    reason = token.reason
    if isinstance(reason, Failed):
        raise reason.error
    if isinstance(reason, Interrupted):
        raise SystemExit(128 + reason.signum)
    logger.info("The training is over.")
