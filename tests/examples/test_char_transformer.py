"""The transformer on characters: what a character sees, training, resuming and writing."""

import char_transformer
import numpy as np
import pytest

from tensorpack import OfflinePredictor, PredictConfig
from tensorpack.compat import tfv1 as tf
from tests.examples.small_dqn import read_stats
from tests.examples.test_char_rnn import Constant

SMALL = ["--layers", "1", "--units", "32", "--heads", "2", "--length", "8"]


@pytest.mark.one_row
@pytest.mark.slow
def test_it_learns_more_than_pairs_goes_on_and_writes(log_dir, tmp_path, capsys):
    corpus = tmp_path / "text.txt"
    corpus.write_text("aaab" * 500)  # after an "a", pairs leave the choice between two
    flags = ["--corpus", str(corpus), "--logdir", log_dir, "--steps-per-epoch", "60", *SMALL]
    flags += ["--start", "aaab", "--chars", "8"]
    with tf.Graph().as_default():
        char_transformer.main([*flags, "--max-epoch", "1"])
    with tf.Graph().as_default():
        char_transformer.main([*flags, "--max-epoch", "2", "--resume", "auto"])
    first, second = read_stats(log_dir)
    assert (first["global_step"], second["global_step"]) == (60, 120)
    assert 0 < second["validation_cost"] < 0.3 < second["bigram_cost"] < 0.6
    capsys.readouterr()
    char_transformer.main(["--sample", "--load", log_dir, *flags, "--temperature", "0.1"])
    assert capsys.readouterr().out.endswith("aaab" * 3 + "\n")


def test_a_character_is_predicted_from_those_before_it_alone():
    model = char_transformer.Model(length=5, layers=2, units=8, heads=2)
    text = np.random.RandomState(0).randint(256, size=[1, 6])
    names = ["input", "nextinput"]
    config = PredictConfig(
        model, None, None, names, ["probability", "cost"], session_init=Constant()
    )
    with OfflinePredictor(config) as predict:
        cut = [predict(text[:, :end], text[:, 1 : end + 1]) for end in range(1, 6)]
    likely = [probability[0, text[0, end]] for end, (probability, _) in enumerate(cut, 1)]
    assert np.std(likely) > 0
    np.testing.assert_allclose(cut[-1][1], -np.mean(np.log(likely)), rtol=1e-4)
