"""The scripts that classify images learn something in twenty steps, and continue a run."""

import cifar10_resnet
import mnist_2017
import mnist_convnet
import mnist_data
import mnist_tfnn
import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tests.contracts.dataflow import assert_same
from tests.dataflow.dataset.published import random_images, write_mnist
from tests.examples.small_dqn import read_stats

# script -> the scalars of the cost and of the error in validation, and more flags
SCRIPTS = {
    mnist_convnet: ("cost", "validation_error", []),
    mnist_tfnn: ("cost", "validation_error", []),
    mnist_2017: ("total_cost", "val_error", []),
    cifar10_resnet: ("cross_entropy", "validation_error", ["--depth", "8", "--processes", "1"]),
}


LONGER = [pytest.mark.slow, pytest.mark.one_row]
NIGHTLY = [*LONGER, pytest.mark.nightly]
MARKS = {mnist_convnet: [], mnist_tfnn: NIGHTLY, cifar10_resnet: NIGHTLY}
CASES = [
    pytest.param(script, marks=MARKS.get(script, LONGER), id=script.__name__) for script in SCRIPTS
]


@pytest.mark.parametrize("script", CASES)
def test_twenty_steps_on_fake_data_and_ten_more(script, log_dir):
    cost, error, flags = SCRIPTS[script]
    flags = ["--fake", "--logdir", log_dir, "--batch-size", "32", "--steps-per-epoch", "10", *flags]
    script.main([*flags, "--max-epoch", "2"])
    first, second = read_stats(log_dir)
    assert second[cost] < first[cost]
    assert 0 <= second[error] <= 1
    with tf.Graph().as_default():
        script.main([*flags, "--max-epoch", "3", "--resume", "auto"])
    stats = read_stats(log_dir)
    assert [epoch["global_step"] for epoch in stats] == [10, 20, 30]
    assert stats[:2] == [first, second] and stats[2][cost] < first[cost]
    assert stats[2][error] < 0.8  # that of a guess is 0.9


def test_mnist_is_read_as_published(tmp_path):
    images, labels = random_images(40, 28, 28), np.arange(40, dtype=np.uint8) % 10
    write_mnist(tmp_path, images, labels)
    write_mnist(tmp_path, images[:5], labels[:5], "test")
    args = mnist_data.parse("x.py", "", ["--data", str(tmp_path), "--batch-size", "10"])
    train, test = mnist_data.get_data(args)
    assert len(train) == 4
    assert_same(list(test), [[images[:5] / np.float32(255), labels[:5].astype(np.int32)]])
