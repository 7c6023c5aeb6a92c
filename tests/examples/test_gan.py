"""DCGAN by the command line, and the losses and trainers of GANs."""

import os

import cv2
import DCGAN
import numpy as np
import pytest
from GAN import GANModelDesc, GANTrainer, SeparateGANTrainer

from tensorpack import QueueInput
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList, MapData
from tests.examples.small_dqn import read_stats
from tests.helpers import CallbackSpy
from tests.tiers import first_fast

SIZE = ["--size", "8", "--filters", "2", "--z-dim", "3"]


def train(log_dir, *flags):
    small = ["--fake", "--batch-size", "4", "--steps-per-epoch", "10", "--logdir", log_dir]
    with tf.Graph().as_default():
        DCGAN.main([*small, *SIZE, *flags])


@pytest.mark.slow
def test_it_trains_goes_on_and_draws(log_dir, tmp_path):
    train(log_dir, "--max-epoch", "1")
    train(log_dir, "--max-epoch", "2", "--resume", "auto")
    stats = read_stats(log_dir)
    assert [(epoch["epoch_num"], epoch["global_step"]) for epoch in stats] == [(1, 10), (2, 20)]
    for epoch in stats:
        assert 0 < epoch["GAN_loss/g_loss"] < 5 and 0 < epoch["GAN_loss/d_loss"] < 5
        assert 0 <= epoch["GAN_loss/accuracy_real"] <= 1
    path = str(tmp_path / "drawn.png")
    DCGAN.main(["--sample", "--load", log_dir, "--out", path, *SIZE])
    grid = 8 * 8 + 7 * 2
    for drawn in [path, os.path.join(log_dir, "samples-002.png")]:
        assert cv2.imread(drawn).shape == (grid, grid, 3)


class Record(CallbackSpy):
    """Notes after each step which network it has changed."""

    def _before_train(self):
        self.seen, self.steps = self._weights(), []

    def _trigger_step(self):
        before, self.seen = self.seen, self._weights()
        self.steps.append([name for name in "gd" if self.seen[name] != before[name]])

    def _weights(self):
        model = self.trainer.model
        variables = self.trainer.sess.run({"g": model.g_vars, "d": model.d_vars})
        return {name: [value.tolist() for value in values] for name, values in variables.items()}


class Shift(GANModelDesc):
    """Moves numbers by one weight, and tells them from the data by another."""

    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "real")]

    def build_graph(self, real):
        with tf.variable_scope("gen"):
            fake = tf.sin(7 * real) + tf.get_variable("shift", initializer=0.5)
        with tf.variable_scope("discrim"):
            slope = tf.get_variable("slope", initializer=0.3)
        self.build_losses(slope * real, slope * fake)
        self.collect_variables()

    def optimizer(self):
        return tf.train.AdamOptimizer(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", first_fast([GANTrainer, SeparateGANTrainer]))
def test_towers_train_as_one_with_all_of_their_batches(kind):
    def weights(towers):
        numbers = DataFromList([[number] for number in range(24)], shuffle=False)
        batches = BatchData(MapData(numbers, lambda dp: [np.float32(np.cos(dp[0]))]), 6 // towers)
        with tf.Graph().as_default():
            trainer = kind(QueueInput(batches), Shift(), num_gpu=towers)
            record = Record()
            trainer.train(callbacks=[record], steps_per_epoch=2, max_epoch=1)
        return [record.seen["g"], record.seen["d"]]

    np.testing.assert_allclose(weights(3), weights(1), rtol=1e-5)


def steps_of(kind, **periods):
    images = QueueInput(BatchData(DCGAN.discs(8, count=16), 4))
    trainer = kind(images, DCGAN.Model(8, z_dim=3, filters=2), **periods)
    record = Record()
    trainer.train(callbacks=[record], steps_per_epoch=4, max_epoch=1)
    assert trainer.global_step == 4
    return ["".join(names) for names in record.steps]


def test_each_network_is_updated_when_it_is_due():
    assert steps_of(GANTrainer) == ["gd"] * 4
    with tf.Graph().as_default():
        assert steps_of(SeparateGANTrainer, g_period=2) == ["d", "gd", "d", "gd"]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="d_period=2, g_period=3"):
        steps_of(SeparateGANTrainer, d_period=2, g_period=3)


def test_the_losses_are_cross_entropies():
    model = GANModelDesc()
    model.build_losses(tf.constant([[np.log(3.0)], [0.0]]), tf.constant([[0.0], [np.log(3.0)]]))
    with tf.Session() as sess:
        d_loss, g_loss = sess.run([model.d_loss, model.g_loss])
    # It takes real data for real by 3/4 and by 1/2, and generated data by 1/2 and by 3/4.
    np.testing.assert_allclose(d_loss, -np.mean(np.log([3 / 4, 1 / 2, 1 / 2, 1 / 4])), rtol=1e-5)
    np.testing.assert_allclose(g_loss, -np.mean(np.log([1 / 2, 3 / 4])), rtol=1e-5)


def test_photos_are_cut_to_the_middle(tmp_path):
    image = np.zeros([20, 40, 3], np.uint8)
    image[:, 10:30] = [10, 20, 30]
    image[6:14, 16:24] = [40, 50, 60]
    (tmp_path / "more").mkdir()
    cv2.imwrite(str(tmp_path / "more" / "wide.PNG"), image)
    (tmp_path / "notes.txt").write_text("no image")
    ((square,),) = DCGAN.photos(str(tmp_path), 8)
    assert square.shape == (8, 8, 3)
    assert square[0, 0].tolist() == [30, 20, 10] and square[4, 4].tolist() == [60, 50, 40]
    ((middle,),) = DCGAN.photos(str(tmp_path), 8, crop=8)
    assert np.all(middle == [60, 50, 40])
    with pytest.raises(FileNotFoundError, match="has no files that end with .jpg"):
        DCGAN.photos(str(tmp_path / "none"), 8)
