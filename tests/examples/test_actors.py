"""A training with actors: their flags, the weights that they get, and the games that it resumes."""

from types import SimpleNamespace

import DQN
import flags
import numpy as np
import pytest
from actors import setter_of

from tensorpack.compat import tfv1 as tf
from tensorpack.RL import ActorGroup, RemotePlayer
from tensorpack.RL.actors import actor
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import Finished
from tests.dataflow.remote_peers import free_address
from tests.examples.small_dqn import read_stats, small_catch, train
from tests.RL.actors.test_group import GAMES, Acting
from tests.RL.players import breakout_rom

pytest.importorskip("zmq")
pytest.importorskip("msgpack")


@pytest.fixture
def act():
    """Starts an actor in a thread, which ends after the test."""
    started = []

    def start(addresses):
        started.append(Acting(1, addresses))
        return started[-1]

    yield start
    for each in started:
        each.token.request(Finished())
        each.join(10)


def test_the_agent_of_an_actor_is_that_of_the_flags(monkeypatch):
    found = []
    monkeypatch.setattr(DQN, "play_for_learner", lambda *args: found.append(args))
    addresses = ["127.0.0.1:1", "127.0.0.1:2"]
    for repeat in (1, 100):
        line = ["--rom", breakout_rom(), "--actors", "--random-repeat", f"{repeat}"]
        args = flags.parse([*line, "--no-life-loss-ends"])
        DQN.act(args, args.rom, Cluster(addresses, index=1))
        *_, agent, _, _, life_loss_ends = found[-1]
        actions = np.array([agent.act(1.0)[0] for _ in range(400)])
        assert (np.mean(actions[1:] == actions[:-1]) > 0.5) == (repeat > 1)
        assert life_loss_ends is False


def test_weights_of_another_network_are_refused_with_the_flags_to_compare():
    with tf.Session() as sess:
        tf.get_variable("conv0/alpha", [], initializer=tf.zeros_initializer())
        fct = tf.get_variable("fct/W", [2, 3], initializer=tf.zeros_initializer())
        sess.run(tf.global_variables_initializer())
        set_weights = setter_of(SimpleNamespace(graph=sess.graph, sess=sess))
        right = {"conv0/alpha": np.float32(1), "fct/W": np.ones([2, 3], "f")}
        for name, value in [("fct/W", np.ones([2, 4], "f")), ("fct_sigma/W", np.ones(1, "f"))]:
            with pytest.raises(ValueError) as error:
                set_weights({**right, name: value})
            assert str(error.value) == (
                f"The network of the learner is another one, it differs in {name}: start all "
                "processes with the same --rom, --preset, --algo, --dueling, --noisy, --network "
                "and --atoms."
            )
        assert not sess.run(fct).any()
        set_weights(right)
        assert sess.run(fct).all()


@pytest.mark.one_row
@pytest.mark.slow
def test_a_training_with_actors(log_dir, act, capsys):
    def run(*more_flags, resume="never"):
        addresses = [free_address() for _ in range(2)]
        acting = act(addresses)
        player = RemotePlayer(small_catch(GAMES), ActorGroup(addresses))
        train(player, "--actors", "--weights-every", "5", *more_flags, resume=resume)
        acting.join(10)
        assert acting.token.reason == Finished()
        return acting

    first = run("--max-epoch", "1")
    # all weights of the network, at the start and perhaps after five and ten steps
    assert 1 <= len(first.weights) <= 3
    assert {name: value.shape for name, value in first.weights[0].items()}["fct/W"] == (512, 3)
    assert not np.array_equal(first.weights[0]["fct/b"], first.weights[-1]["fct/b"])
    tick = actor.CHUNK_ROWS + GAMES
    steps = 10 + 51  # and those in the input queue
    played = first.player.played
    assert 60 + 4 * (10 - 5) <= played <= 60 + tick + 4 * steps + tick * (actor.WINDOW + 2)
    capsys.readouterr()
    with tf.Graph().as_default():
        run(resume="auto")
    said = capsys.readouterr().out
    assert "The games cannot be restored: new ones begin. Actors do not save games." in said
    assert "Populating" not in said
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
