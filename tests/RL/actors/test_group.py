"""A learner and its actors over real sockets, in one process: the pace, the games, the ends."""

import threading
import time

import numpy as np
import pytest

from tensorpack.dataflow import RemoteDataZMQ, RemoteSender
from tensorpack.RL import (
    ActorGroup,
    Agent,
    RemotePlayer,
    RemoteSimulator,
    ReplayMemory,
    play_for_learner,
)
from tensorpack.RL.actors import actor
from tensorpack.RL.actors.actor import Actor, Orders
from tensorpack.utils import get_rng
from tensorpack.utils.stopping import Failed, Finished, StopToken
from tests.dataflow.remote_peers import free_address
from tests.processes import wait_until
from tests.RL.catch import CountingCatch, small_catch
from tests.RL.test_simulator import Network

pytest.importorskip("zmq")
pytest.importorskip("msgpack")

GAMES = 2  # of each actor
WEIGHTS = {"w": np.arange(3.0)}


class Acting(threading.Thread):
    """An actor in a thread; `weights` is what it was given, `token` why it has ended."""

    def __init__(self, number, addresses, token=None):
        super().__init__(name="Acting")
        self.token = token or StopToken()
        self.weights = []
        self.player = small_catch(GAMES, CountingCatch)
        self.network = Network(best=1)
        self._number, self._addresses = number, addresses
        self.start()

    def run(self):
        with Orders(self._addresses[self._number], self._addresses[0], self.token) as orders:
            with RemoteSender(self._addresses[0]) as sender:
                agent = Agent(self.network, self.player, 4, get_rng())
                sent = self.weights.append
                ours = [self._number, self.player, agent, sent, orders, sender, self.token]
                Actor(*ours).run()


class Fake:
    """An actor by hand: sends what a test wants, and shows what it is told."""

    def __init__(self, number, addresses):
        self._number = number
        self._orders = RemoteDataZMQ(addresses[number], timeout=20)
        self._orders.reset_state()
        self._sender = RemoteSender(addresses[0])

    def send(self, run, seq, frame=None, version=0):
        """Sends a beat, or a transition from one frame to the next."""
        chunk = None
        if frame is not None:
            ones = np.ones(1, int)
            chunk = {
                "frames": np.full((1, 14, 14), frame, np.uint8),
                "actions": ones,
                "rewards": np.zeros(1, np.float32),
                "over": ones == 0,
                "truncated": ones == 0,
                "begins": ones == 0,
                "lanes": ones,
                "ticks": ones,
                "final_frames": np.zeros((0, 14, 14), np.uint8),
            }
        names = ["actor", "run", "seq", "version", "chunk", "games"]
        self._sender.send(dict(zip(names, [self._number, run, seq, version, chunk, []])))

    def told(self, condition=lambda order: True):
        """The next order that fulfils a condition."""
        return next(order for order in self._orders if condition(order))

    def close(self):
        self._sender.close()
        self._orders.close()


class Learning:
    """The side of the learner, without a training."""

    def __init__(self, actors, **options):
        self.addresses = [free_address() for _ in range(actors + 1)]
        self.group = ActorGroup(self.addresses, **options)
        self.player = RemotePlayer(small_catch(GAMES), self.group)
        self.memory = ReplayMemory(2000, (14, 14), 4, self.player.num_envs)
        self.simulator = RemoteSimulator(self.player, self.memory)
        self.token = StopToken()
        self.simulator.begin()

    def start(self, fetch=lambda: WEIGHTS):
        self.group.start(fetch, self.token)

    def tick(self, epsilon=1.0):
        """Stores one chunk."""
        wait_until(lambda: self.simulator.tick(epsilon))


@pytest.fixture
def made():
    """What is closed after the test; actors are told to end before."""
    things = []
    yield things
    for thing in things:
        if isinstance(thing, Acting):
            thing.token.request(Finished())
    for thing in things:
        if isinstance(thing, Learning):
            thing.player.close()
        elif isinstance(thing, Acting):
            thing.join(10)
        else:
            thing.close()


@pytest.fixture
def learning(made):
    made.append(Learning(actors=2))
    made[-1].start()
    return made[-1]


@pytest.fixture
def fake(made):
    made.append(Learning(actors=1))
    made[-1].start()
    made.append(Fake(1, made[-1].addresses))
    return made[-1]


def test_actors_play_with_the_weights_and_the_epsilon_of_the_learner(learning, made):
    made += [Acting(number, learning.addresses) for number in (1, 2)]
    actors = made[-2:]
    while (learning.memory._rings.filled() < 100).any():
        learning.tick()
    assert [each.network.asked for each in actors] == [[], []]
    # each game is in a lane of its own, with no frame left out: balls fall by a row
    batch = learning.memory.sample(300, np.random.RandomState(0))
    rows = (batch.frames[~batch.terminated] == 255).any(-1).argmax(-1) // 2
    assert (rows[:, -1] - rows[:, -2] == 1).all()
    games = learning.simulator.take_episodes()
    assert len(games) > 20
    assert {(each.score, each.length) for each in games} == {(1.0, 6), (-1.0, 6)}
    assert 0 < games[0].step <= games[-1].step <= learning.simulator.transitions
    learning.group.renew()
    wait_until(lambda: learning.simulator.tick(0.0) and all(a.network.asked for a in actors))
    wait_until(lambda: learning.simulator.tick(0.0) and all(len(a.weights) > 1 for a in actors))
    np.testing.assert_equal(actors[0].weights, [WEIGHTS, WEIGHTS])
    learning.player.close()
    for each in actors:
        each.join(10)
        assert each.token.reason == Finished()
    assert learning.token.reason is None


def test_an_actor_waits_until_its_chunks_are_taken(learning, made):
    made.append(Acting(1, learning.addresses))
    waiting = learning.group._chunks.qsize
    wait_until(lambda: waiting() == actor.WINDOW)
    time.sleep(0.2)
    assert waiting() == actor.WINDOW
    for _ in range(3 * actor.WINDOW):
        learning.tick()
    wait_until(lambda: waiting() == actor.WINDOW)
    assert learning.simulator.transitions >= 3 * actor.WINDOW * actor.CHUNK_ROWS


def test_other_actors_are_other_games():
    players = [Learning(actors).player for actors in (1, 2)]
    assert [each.identity for each in players] == [{"actors": 1}, {"actors": 2}]
    assert [each.num_envs for each in players] == [GAMES, 2 * GAMES]


def ending_of(learning):
    """The frames of all transitions that can be sampled, the last two of each."""
    if not learning.memory.num_sampleable:
        return []
    frames = learning.memory.sample(200, np.random.RandomState(0)).frames[:, -2:, 0, 0]
    return sorted(map(tuple, np.unique(frames, axis=0).tolist()))


def test_a_chunk_that_is_lost_splits_the_games(fake, made):
    learning = made[0]
    for seq, frame in [(0, 1), (1, 2), (3, 4), (4, 5)]:
        fake.send(b"a", seq, frame)
        learning.tick()
    assert ending_of(learning) == [(1, 2), (4, 5)]
    # what was lost counts as taken, so that the actor does not wait for it
    assert fake.told(lambda order: order["taken"] == 5)["run"] == b"a"


def test_chunks_that_were_lost_last_count_as_taken_with_the_next_beat(fake, made):
    fake.send(b"a", 0)
    fake.send(b"a", 4)
    assert fake.told(lambda order: order["taken"] == 4)


def test_a_beat_after_a_chunk_that_is_lost_does_not_hide_it(fake, made):
    learning = made[0]
    for seq, frame in [(0, 1), (1, 2), (3, None), (3, 4), (4, 5)]:
        fake.send(b"a", seq, frame)
        if frame is not None:
            learning.tick()
    assert ending_of(learning) == [(1, 2), (4, 5)]


def test_an_actor_that_begins_again_has_new_games_and_gets_the_weights(fake, made):
    learning = made[0]
    fake.send(b"a", 0)
    assert fake.told()["weights"] is not None
    for seq, frame in [(0, 1), (1, 2)]:
        fake.send(b"a", seq, frame, version=1)
        learning.tick()
    fake.send(b"b", 0)  # as every actor, it says that it is there before it plays
    for seq, frame in [(0, 3), (1, 4)]:
        fake.send(b"b", seq, frame)
        learning.tick()
    assert ending_of(learning) == [(1, 2), (3, 4)]
    order = fake.told(lambda order: order["run"] == b"b" and order["weights"] is not None)
    assert order["version"] == 1


def test_newer_weights_wait_until_the_last_ones_have_come(fake, made):
    learning, counter = made[0], iter(range(1, 99))
    learning.group._fetch = lambda: {"w": next(counter)}
    fake.send(b"a", 0)
    assert fake.told()["weights"] == {"w": 1}
    for _ in range(5):
        learning.group.renew()
    fake.send(b"a", 0, version=1)
    order = fake.told(lambda order: order["weights"] is not None)
    assert (order["weights"], order["version"]) == ({"w": 2}, 6)


def test_weights_that_were_lost_are_sent_again(made):
    now = [0.0]
    made.append(Learning(actors=1, clock=lambda: now[0]))
    made[0].start()
    made.append(Fake(1, made[0].addresses))
    made[1].send(b"a", 0)
    assert made[1].told()["version"] == 1
    assert made[1].told()["weights"] is None
    for now[0] in (40.0, 80.0):  # it speaks in time, and says that it has none
        made[1].send(b"a", 0)
        wait_until(lambda: made[0].group._actors[0].deadline == now[0] + actor.SILENT_SECONDS)
    orders = [made[1].told() for _ in range(3)]
    assert [each["version"] for each in orders if each["weights"] is not None] == [1]


def test_an_actor_that_is_silent_is_named(made):
    made.append(Learning(actors=2, silent=0.3))
    learning = made[0]
    learning.start()
    made += [Fake(1, learning.addresses), Fake(2, learning.addresses)]
    for number in (1, 2):
        made[number].send(b"a", 0)
    while not learning.token.wait(0.05):
        made[1].send(b"a", 0)
    reason = learning.token.reason
    assert isinstance(reason, Failed) and reason.where == "actor 2"
    said = f"Actor 2 at {learning.addresses[2]} has been silent"
    assert isinstance(reason.error, TimeoutError) and said in str(reason.error)


def test_a_message_of_an_actor_that_is_not_there_is_an_error(fake, made):
    fake._number = 3
    fake.send(b"a", 0)
    assert made[0].token.wait(10)
    assert "a message of actor 3" in str(made[0].token.reason.error).lower()


def test_what_is_no_chunk_is_an_error(fake, made):
    fake.send(b"a", 0, frame=np.zeros((14, 14)) > 0)
    fake._sender.send(
        {"actor": 1, "run": b"a", "seq": 1, "version": 0, "chunk": {"ticks": 1}, "games": []}
    )
    made[0].tick()
    with pytest.raises(ValueError, match="chunk"):
        made[0].tick()


def test_a_learner_that_is_silent_is_an_error_of_the_actor():
    token, now = StopToken(), [0.0]
    with Orders(free_address(), "tcp://127.0.0.1:9", token, clock=lambda: now[0]) as orders:
        assert not orders.wait_for(lambda: False)
        assert not token.requested
        now[0] = actor.FIRST_SECONDS + 1
        orders.wait_for(lambda: True)
    assert isinstance(token.reason.error, TimeoutError)
    assert "learner at tcp://127.0.0.1:9" in str(token.reason.error)


def test_an_actor_whose_learner_is_gone_ends_although_nothing_takes_its_beats(monkeypatch):
    monkeypatch.setattr(actor, "BEAT_SECONDS", 0.004)  # so it sends more than a sender lets wait
    monkeypatch.setattr(actor, "SILENT_SECONDS", 1.0)
    weights, errors = [], []
    addresses = [free_address() for _ in range(2)]

    def play():
        player, network = small_catch(GAMES), Network(best=1)
        agent = Agent(network, player, 4, get_rng())
        with pytest.raises(TimeoutError) as error:
            play_for_learner(1, addresses, player, agent, weights.append)
        errors.append(error.value)

    thread = threading.Thread(target=play, name="play", daemon=True)
    thread.start()
    learner = RemoteDataZMQ(addresses[0], timeout=20)
    run = next(iter(learner))["run"]
    order = {"run": run, "taken": 0, "epsilon": 1.0, "version": 1, "over": False}
    with RemoteSender(addresses[1]) as sender:
        sender.send({**order, "weights": WEIGHTS})
        wait_until(lambda: weights)
    learner.close()
    thread.join(10)
    assert not thread.is_alive()
    assert f"The learner at {addresses[0]} has been silent for too long" in str(errors[0])
