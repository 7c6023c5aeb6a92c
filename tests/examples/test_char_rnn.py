"""The character model: training, resuming and writing by the command line; its state."""

import char_rnn
import numpy as np
import pytest

from tensorpack import JustCurrentSession, OfflinePredictor, PredictConfig
from tensorpack.compat import tfv1 as tf
from tests.examples.small_dqn import read_stats

SIZE = ["--layers", "1", "--units", "8"]


def train(log_dir, *flags):
    small = ["--fake", "--length", "3", "--steps-per-epoch", "10", "--logdir", log_dir]
    with tf.Graph().as_default():
        char_rnn.main([*small, *SIZE, *flags])


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_it_learns_goes_on_and_writes(log_dir, capsys):
    train(log_dir, "--max-epoch", "1")
    train(log_dir, "--max-epoch", "2", "--resume", "auto")
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
    assert np.log(256) > stats[0]["validation_cost"] > stats[1]["validation_cost"] > 0
    assert stats[0]["cost"] > stats[1]["cost"] > 0
    sample = ["--sample", "--load", log_dir, *SIZE, "--start", "1 + ü", "--chars", "20"]
    char_rnn.main([*sample, "--temperature", "0.5"])
    _, _, written = capsys.readouterr().out.partition("1 + ü")
    assert 5 < len(written) <= 20 + len("\n")


def test_a_fed_state_continues_a_segment():
    outputs = ["probability", "last_state"]

    def predict(length, *inputs):
        model = char_rnn.Model(length, layers=2, units=3)
        names = ["input", "state", "temperature"][: len(inputs)]
        config = PredictConfig(model, None, None, names, outputs, session_init=Constant())
        with OfflinePredictor(config) as predictor:
            return predictor(*inputs)

    whole, last = predict(3, np.int32([[7, 8, 9]]))
    _, state = predict(2, np.int32([[7, 8]]))
    rest, continued = predict(1, np.int32([[9]]), state)
    np.testing.assert_allclose(rest, whole, rtol=1e-5)
    np.testing.assert_allclose(continued, last, rtol=1e-5)
    cold, _ = predict(1, np.int32([[9]]), state, 0.5)
    np.testing.assert_allclose(cold, whole**2 / np.sum(whole**2), rtol=1e-4)


class Constant(JustCurrentSession):
    """Gives the variables numbers that depend on their names alone."""

    def _run_init(self, sess):
        for variable in tf.global_variables():
            numbers = np.random.RandomState(len(variable.op.name)).normal(size=variable.shape)
            variable.load(numbers, sess)


def test_a_segment_and_the_one_a_character_later():
    text = bytes(range(char_rnn.BATCH + 10))
    batches = [np.stack(batch) for batch in char_rnn.segments(text * 2, length=9, shuffle=True)]
    assert [batch.shape for batch in batches] == [(2, char_rnn.BATCH, 9)] * 2
    for input, following in batches:
        assert np.array_equal(input[:, 1:], following[:, :-1])
    ((input, following),) = char_rnn.segments(text, length=9, shuffle=False)
    assert np.array_equal(input.ravel(), np.arange(72))
    assert np.array_equal(following.ravel(), np.arange(1, 73))
