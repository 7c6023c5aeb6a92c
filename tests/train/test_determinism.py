import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train import TrainConfig
from tensorpack.train.determinism import fix_graph_seed, warn_of_random_ops
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.rng import _streams


@pytest.fixture(autouse=True)
def unseeded(monkeypatch):
    monkeypatch.setattr(_streams, "seeded", False)


@pytest.fixture
def seeded(unseeded):
    fix_rng_seed(3)


def config(**options):
    return TrainConfig(steps_per_epoch=1, max_epoch=1, monitors=[], **options)


def test_it_needs_a_seed():
    with pytest.raises(ValueError, match=r"call tensorpack.utils.fix_rng_seed\(N\) first"):
        config(deterministic=True)


def test_the_session_has_one_thread(seeded):
    session = config(deterministic=True).session_creator.config
    assert session.intra_op_parallelism_threads == 1
    assert session.inter_op_parallelism_threads == 1


def test_xla_is_refused(seeded):
    with pytest.raises(ValueError, match="deterministic=True excludes xla=True"):
        config(deterministic=True, xla=True)


@pytest.mark.parametrize("threads, warned", [(0, True), (1, False)])
def test_a_config_of_the_users_is_kept_and_warned_of(seeded, threads, warned, capsys):
    given = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=threads)
    assert config(deterministic=True, session_config=given).session_creator.config is given
    assert ("needs (1, 1)" in capsys.readouterr().out) == warned


def test_the_graph_seed_follows_from_that_of_the_process(seeded):
    def first_value():
        with tf.Graph().as_default() as graph:
            fix_graph_seed(graph)
            value = tf.random.uniform([])
            with tf.Session() as sess:
                return sess.run(value)

    one = first_value()
    assert first_value() == one
    fix_rng_seed(4)
    assert first_value() != one


def test_a_graph_seed_of_the_users_stays(seeded):
    with tf.Graph().as_default() as graph:
        graph.seed = 17
        fix_graph_seed(graph)
        assert graph.seed == 17


def test_without_a_seed_the_graph_has_none():
    graph = tf.Graph()
    fix_graph_seed(graph)
    assert graph.seed is None


def test_a_step_that_draws_in_the_graph_is_warned_of(capsys):
    variable = tf.get_variable("v", [2], initializer=tf.random_normal_initializer())
    draw = tf.random.uniform([2], name="draw")
    with tf.control_dependencies([draw]):
        warn_of_random_ops(variable.assign_add([1.0, 1.0]).op)
    said = capsys.readouterr().out
    assert "draw/RandomUniform" in said
    assert "v/Initializer" not in said
    warn_of_random_ops(variable.assign_add([1.0, 1.0]).op)
    warn_of_random_ops(None)
    assert capsys.readouterr().out == ""
