"""A confusion matrix counts each example once, and its pictures are where reports find them."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    ConfusionMatrix,
    DataParallelInferenceRunner,
    InferenceRunner,
    MonitorBase,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList
from tensorpack.report import write_report
from tensorpack.train import SimpleTrainer, launch_train_with_config
from tests import helpers
from tests.callbacks.driver import MiniTrainer, log_directory
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel

pytest.importorskip("cv2")

TestConfusionMatrix = contract_of(lambda: ConfusionMatrix("predicted", "y"))

SCORES = np.float32([[3, 1, 0], [0, 2, 5], [1, 0, 0], [0, 9, 1]])
LABELS = np.int32([0, 1, 2, 1])


def validate(matrix, *datapoints):
    """Gives values of fetches to a matrix; returns its scalars, and the pictures by name."""
    pictures = {}
    monitor = MonitorBase()
    monitor.process_image = pictures.__setitem__
    trainer = MiniTrainer([matrix], [monitor])
    trainer.callbacks.setup_graph(trainer)
    matrix.before_inference()
    for results in datapoints:
        matrix.on_fetches(list(results))
    return matrix.after_inference(), pictures


@pytest.fixture
def directory(tmp_path):
    with log_directory(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("values", [SCORES, SCORES.argmax(axis=1)], ids=["scores", "classes"])
def test_counts_and_scalars(values):
    matrix = ConfusionMatrix("logits", "label", ["cat", "dog", "emu"])
    scalars, pictures = validate(matrix, (values[:3], LABELS[:3]), (values[3:], LABELS[3:]))
    assert matrix.counts == {(0, 0): 1, (1, 2): 1, (2, 0): 1, (1, 1): 1}
    assert scalars == {
        "validation_accuracy": 0.5,
        "validation_balanced_accuracy": 0.5,
        "validation_accuracy/cat": 1.0,
        "validation_accuracy/dog": 0.5,
        "validation_accuracy/emu": 0.0,
    }
    assert list(pictures) == ["validation_confusion"]
    assert validate(matrix, (values[:1], LABELS[:1]))[0]["validation_accuracy"] == 1  # forgotten


def test_the_worst_mistakes_are_drawn_first(directory):
    images = np.full((4, 5, 8, 3), 90, np.uint8)
    images[1], images[2] = (200, 0, 0), (0, 0, 200)  # with margins of 3 and 1
    for most in 24, 1:
        matrix = ConfusionMatrix("logits", image="image", most_mistakes=most, prefix="test")
        _, pictures = validate(matrix, (SCORES, LABELS, images))
        (picture,) = pictures["test_mistakes"]
        assert picture[64, 64].tolist() == [200, 0, 0]
        assert picture.shape[1] == (128 + 6 + 128 if most > 1 else 128)
    assert picture.dtype == np.uint8
    names = ["test_confusion.png", "test_mistakes.png"]
    assert sorted(path.name for path in directory.iterdir()) == names
    validate(matrix, (SCORES[:1], LABELS[:1], images[:1]))  # replaces them: there are no mistakes
    assert sorted(path.name for path in directory.iterdir()) == names


@pytest.mark.parametrize("shape", [(3, 400, 3), (7, 7, 1), (300, 2, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_images_of_any_size_and_scale(shape, dtype):
    image = np.zeros((1, *shape), dtype)
    image[0, 0] = 250
    mistake = SCORES[1:2], LABELS[1:2], image
    (picture,) = validate(ConfusionMatrix("logits", image="i"), mistake)[1]["validation_mistakes"]
    assert picture.min() == 0 and picture.max() == 255


def test_pictures_that_cannot_be_compressed_are_small_enough_for_a_report(directory):
    images = np.random.RandomState(0).randint(0, 256, (24, 112, 112, 3), np.uint8)
    validate(ConfusionMatrix("p", image="i"), (np.ones(24, int), np.zeros(24, int), images))
    assert (directory / "validation_mistakes.png").stat().st_size < 1 << 20


@pytest.mark.parametrize("count", [1, 11, 1000])
def test_any_number_of_classes(count):
    labels = np.arange(count)
    scalars, pictures = validate(ConfusionMatrix("p"), (labels, labels), (labels[::-1], labels))
    assert scalars["validation_accuracy"] == pytest.approx(0.5 + 0.5 * (count % 2) / count)
    assert len(scalars) == (2 if count > 10 else 2 + count)
    assert pictures["validation_confusion"].shape[1] < 1500


def test_without_examples_there_is_nothing():
    empty = np.zeros([0, 3], np.float32), np.zeros([0], np.int32)
    assert validate(ConfusionMatrix("logits")) == ({}, {})
    assert validate(ConfusionMatrix("logits"), empty) == ({}, {})


def test_nan_is_the_worst_mistake():
    scores = np.float32([[0, 9], [0, np.nan], [0, 8]])
    images = np.stack([np.full((4, 4, 3), value, np.uint8) for value in (10, 20, 30)])
    matrix = ConfusionMatrix("logits", image="i")
    _, pictures = validate(matrix, (scores, np.zeros(3, int), images))
    assert pictures["validation_mistakes"][0][64, 64, 0] == 20


@pytest.mark.parametrize(
    "results, says",
    [
        ((SCORES, LABELS + 1), "'label' has classes from 1 to 3, of 3 classes"),
        ((SCORES, -LABELS), "'label' has classes from -2 to 0"),
        (
            (SCORES[:, :, np.newaxis], LABELS),
            r"scores \[batch, classes\], but 'logits' has float32",
        ),
        ((SCORES, LABELS[:3]), r"'logits' has int64 \[4\], for labels of shape \[3\]"),
        ((SCORES, LABELS.astype("float32")), "'label' has float32"),
        (
            (SCORES, LABELS, np.zeros((4, 5, 6))),
            r"images must be .* but one has the shape \[5, 6\]",
        ),
    ],
)
def test_what_it_does_not_take(results, says):
    names = {"image": "image"} if len(results) == 3 else {}
    with pytest.raises(ValueError, match=says):
        validate(ConfusionMatrix("logits", classes=["a", "b", "c"], **names), results)


class Classifier(TinyModel):
    """Its three classes are given by the first pixel; every fifth is wrong."""

    def inputs(self):
        return [
            tf.TensorSpec([None, 4, 4, 1], tf.uint8, "image"),
            tf.TensorSpec([None], tf.int32, "label"),
        ]

    def build_graph(self, image, label):
        tf.cast(image[:, 0, 0, 0], tf.int32, name="predicted")
        return tf.get_variable("weight", [], initializer=tf.ones_initializer()) * 1.0


@pytest.mark.parametrize("towers", [1, 2])
def test_all_towers_and_a_smaller_last_batch_count(tmp_path, towers):
    data = [[np.full([4, 4, 1], i % 3, np.uint8), 0 if i % 5 == 0 else i % 3] for i in range(23)]
    flow = BatchData(DataFromList(data, shuffle=False), 4, remainder=True)
    matrix = ConfusionMatrix("predicted", "label", ["a", "b", "c"], image="image")
    devices = [["/cpu:0", -1]] if towers == 2 else []
    runner = DataParallelInferenceRunner if towers == 2 else InferenceRunner
    with log_directory(tmp_path):
        config = helpers.config(
            model=Classifier(), dataflow=flow, callbacks=[runner(flow, matrix, *devices)]
        )
        launch_train_with_config(config, SimpleTrainer())
    assert sum(matrix.counts.values()) == 23
    assert matrix.counts[0, 1] + matrix.counts[0, 2] == 3
    page = write_report(str(tmp_path))
    with open(page, encoding="utf-8") as file:
        assert file.read().count("data:image/png;base64") >= 2
