"""Models of Keras in tensorpack's trainers, on TensorFlow 1.15 and with tf-keras on 2."""

from functools import partial

import numpy as np
import pytest

from tensorpack.callbacks import InferenceRunner, ModelSaver, ScalarStats, TrainingMonitor
from tensorpack.callbacks.hooks import CallbackToHook
from tensorpack.compat import is_tfv2, load_keras
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList, RepeatedData
from tensorpack.input_source import QueueInput
from tensorpack.predict import OfflinePredictor, PredictConfig
from tensorpack.tfutils import SmartInit
from tensorpack.tfutils.tower import TowerFunc
from tensorpack.train import (
    SimpleTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)

if is_tfv2():
    pytest.importorskip("tf_keras")

from tensorpack.contrib.keras import KerasModel, KerasPhaseCallback, setup_keras_trainer

keras = load_keras()
layers, backend = keras.layers, keras.backend
IMAGES = tf.TensorSpec([None, 3], tf.float32, "image")
LABELS = tf.TensorSpec([None, 2], tf.float32, "label")


def data(batch=4, passes=-1):
    rng = np.random.RandomState(0)
    points = [[rng.rand(3).astype("f"), np.eye(2, dtype="f")[i % 2]] for i in range(16)]
    return RepeatedData(BatchData(DataFromList(points, shuffle=False), batch), passes)


class Phase(layers.Layer):
    """Is 1 in training and 5 in inference, as `K.in_train_phase` has it."""

    def call(self, inputs):
        return backend.in_train_phase(tf.ones_like(inputs), 5 * tf.ones_like(inputs))


def dense(units, **kwargs):
    return layers.Dense(units, kernel_initializer="ones", **kwargs)


def softmax_model(image):
    inputs = layers.Input(tensor=image)
    hidden = dense(4, kernel_regularizer=keras.regularizers.l2(0.5))(inputs)
    return keras.Model(inputs, dense(2, activation="softmax")(hidden))


class Look(TrainingMonitor):
    """Keeps the newest scalars of a run, and its variables at the begin and after each epoch."""

    def __init__(self):
        self.scalars, self.after = {}, []

    def process_scalar(self, name, val):
        self.scalars[name] = val

    def _before_train(self):
        self.first = self.values()

    def _after_epoch(self):
        self.after.append(self.values())

    @property
    def last(self):
        return self.after[-1]

    def values(self):
        variables = [v for v in tf.global_variables() if "EMA" not in v.op.name]
        return {v.op.name: value for v, value in zip(variables, self.trainer.sess.run(variables))}


def fit(model, validation=None, epochs=1, **kwargs):
    look = Look()
    model.fit(validation, steps_per_epoch=4, max_epoch=epochs, monitors=[look], **kwargs)
    return look


def sgd(rate=0.1):
    return tf.train.GradientDescentOptimizer(rate)


def softmax_cost(values, image, label):
    """The mean cross-entropy of softmax_model, and its gradient with respect to the last bias."""
    hidden = image.dot(values["dense/kernel"]) + values["dense/bias"]
    logits = hidden.dot(values["dense_1/kernel"]) + values["dense_1/bias"]
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return -np.log((p * label).sum(1)).mean(), (p - label).mean(0)


def test_a_tower_calls_the_model_in_its_phase():
    def get_model(image):
        return keras.Sequential(
            [
                layers.InputLayer(input_tensor=image),
                layers.BatchNormalization(momentum=0.5),
                layers.Dropout(0.999),
                Phase(),
                dense(2, activity_regularizer=keras.regularizers.l1(1.0)),
            ]
        )

    def third(label, output):
        return output / 3

    model = KerasModel(get_model, [IMAGES], [LABELS], QueueInput(data()), SimpleTrainer())
    model.compile(sgd(0.0), "mse", [third, "accuracy", "mse"])
    look = fit(model, data(passes=1))
    assert look.scalars["third"] == 1 and look.scalars["validation_third"] == 5
    # Both outputs are 3; each example adds their sum.
    assert look.scalars["total_loss"] == pytest.approx(look.scalars["mse"] + 6)
    assert look.scalars["mse_1"] == look.scalars["mse"] == pytest.approx((9 + 4) / 2)
    assert look.scalars["validation_accuracy"] == 0.5
    mean = 0
    for image, _ in data(passes=1):
        mean = 0.5 * mean + 0.5 * image.mean(0)
    np.testing.assert_allclose(look.last["batch_normalization/moving_mean"], mean, rtol=1e-5)


def test_a_target_without_the_dimension_of_the_output():
    def get_model(image):
        return keras.Sequential([layers.InputLayer(input_tensor=image), dense(1, use_bias=False)])

    def dimensions(target, output):  # a function of one's own is given both as they are
        return tf.constant(float(target.shape.ndims))

    points = [[np.float32([i, 0, 1]), np.float32(i + 1)] for i in range(4)]
    flow = QueueInput(BatchData(DataFromList(points, shuffle=False), 4))
    targets = tf.TensorSpec([None], tf.float32, "y")
    model = KerasModel(get_model, [IMAGES], [targets], flow, SimpleTrainer())
    model.compile(sgd(0.0), "mse", [dimensions, "accuracy"])
    look = fit(model)
    assert look.scalars["total_loss"] == pytest.approx(0, abs=1e-6)
    assert look.scalars["dimensions"] == 1


@pytest.mark.parametrize("phase", [True, False])
def test_a_callback_feeds_the_phase_of_a_graph_of_ones_own(phase):
    which = tf.cond(backend.learning_phase(), lambda: "training", lambda: "inference")
    hook = CallbackToHook(KerasPhaseCallback(isTrain=phase))
    with tf.train.SingularMonitoredSession([hook]) as sess:
        assert sess.run(which) == (b"training" if phase else b"inference")
        assert sess.raw_session().run(which) == b"inference"


def test_towers_share_the_model_and_train_as_one_with_both_batches():
    trainer = SyncMultiGPUTrainerParameterServer([0, 1])
    names_of_2018 = {"inputs_desc": [IMAGES], "targets_desc": [LABELS]}
    model = KerasModel(softmax_model, input=data(batch=8), trainer=trainer, **names_of_2018)
    model.compile(sgd(), "categorical_crossentropy", ["categorical_accuracy"])
    look = Look()
    model.fit(data(passes=1), steps_per_epoch=1, max_epoch=2, monitors=[look])
    images, labels = zip(*data(batch=8, passes=1))
    _, gradient = softmax_cost(look.first, np.concatenate(images), np.concatenate(labels))
    np.testing.assert_allclose(look.after[0]["dense_1/bias"], -0.1 * gradient, atol=1e-6)
    cost, _ = softmax_cost(look.last, np.concatenate(images), np.concatenate(labels))
    assert look.scalars["validation_categorical_crossentropy"] == pytest.approx(cost, rel=1e-5)
    # l2(0.5) of a kernel of ones, [3, 4], in the tower that is trained only.
    assert look.scalars["regularize_cost"] == 6
    assert look.scalars["validation_total_loss"] == pytest.approx(cost, rel=1e-5)
    assert {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"} < set(look.last)
    assert len(look.last) == 5  # and the step


def test_several_outputs_with_weights_and_layers_that_are_frozen():
    def get_model(image, mask):
        inputs = [layers.Input(tensor=image), layers.Input(tensor=mask)]
        fixed = dense(2, trainable=False)
        masked = layers.Multiply()([fixed(inputs[0]), inputs[1]])
        return keras.Model(inputs, [dense(2)(masked), dense(1)(masked)])

    flow = DataFromList(
        [[np.ones((1, 3), "f"), np.ones((1, 2), "f"), np.zeros((1, 2), "f"), np.ones((1, 1), "f")]]
    )
    specs = [IMAGES, tf.TensorSpec([None, 2], tf.float32, "mask"), LABELS]
    specs.append(tf.TensorSpec([None, 1], tf.float32, "size"))
    trainer = SimpleTrainer()
    scalars = setup_keras_trainer(
        trainer,
        get_model,
        specs[:2],
        specs[2:],
        QueueInput(RepeatedData(flow, -1)),
        sgd(0.01),
        ["mse", "mae"],
        ["mae", None],
        loss_weights=[0.5, 2],
    )
    assert scalars == ["mse", "mae", "mae_1", "total_loss"]
    look, runner = Look(), InferenceRunner(flow, ScalarStats(scalars))
    trainer.train_with_defaults(callbacks=[runner], monitors=[look], steps_per_epoch=1, max_epoch=2)
    # Before the first step the hidden units are 3 and the outputs 6.
    values = [look.scalars[name] for name in scalars]
    assert values == [36, 5, 6, 0.5 * 36 + 2 * 5]
    assert (look.last["dense/kernel"] == 1).all()
    assert look.after[0]["dense_2/bias"] == pytest.approx(-2 * 0.01)
    assert look.scalars["validation_mae"] < 6


def test_a_resumed_run_continues_and_a_predictor_has_its_weights(log_dir):
    def run(epochs, *callbacks, **kwargs):
        with tf.Graph().as_default():
            model = KerasModel(softmax_model, [IMAGES], [LABELS], data(), SimpleTrainer())
            model.compile(tf.train.AdamOptimizer(0.1), "categorical_crossentropy")
            return fit(model, epochs=epochs, callbacks=list(callbacks), **kwargs).last

    whole = run(2)
    run(1, ModelSaver())
    resumed = run(2, ModelSaver(), resume="must")
    assert set(resumed) == set(whole)
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], name)

    def build(image):
        tf.identity(softmax_model(image).output, name="output")

    with tf.Graph().as_default():
        config = PredictConfig(
            tower_func=TowerFunc(build, [IMAGES]),
            session_init=SmartInit(log_dir),
            input_names=["image"],
            output_names=["output"],
        )
        image, label = next(iter(data()))
        (output,) = OfflinePredictor(config)(image)
    cost, _ = softmax_cost(resumed, image, label)
    assert -np.log((output * label).sum(1)).mean() == pytest.approx(cost, rel=1e-4)


@pytest.mark.parametrize(
    "change, error, says",
    [
        (
            {"optimizer": "adam"},
            TypeError,
            r"must be an Optimizer of tf.train \(AdamOptimizer\), got str",
        ),
        ({"loss": ["mse", "mae"]}, ValueError, "1 outputs, 1 targets, 2 losses"),
        ({"metrics": [keras.metrics.Mean()]}, TypeError, "has a state: give a function"),
        (
            {"get_model": lambda image: image},
            TypeError,
            "Model of .*keras, got .* Keras 3 has no graphs",
        ),
        (
            {"trainer": partial(SyncMultiGPUTrainerReplicated, [0, 1])},
            ValueError,
            "use SyncMultiGPUTrainerParameterServer",
        ),
    ],
)
def test_errors_name_what_to_change(change, error, says):
    arguments = {
        "trainer": SimpleTrainer,
        "get_model": softmax_model,
        "input": QueueInput(data()),
        "optimizer": sgd(),
        "loss": "mse",
        "metrics": None,
        **change,
    }
    arguments["trainer"] = arguments["trainer"]()  # in the graph of this test
    with pytest.raises(error, match=says):
        setup_keras_trainer(inputs_desc=[IMAGES], targets_desc=[LABELS], **arguments)


def test_a_model_is_compiled_before_it_is_trained():
    model = KerasModel(softmax_model, [IMAGES], [LABELS], data(), SimpleTrainer())
    with pytest.raises(RuntimeError, match=r"Call compile\(\) before fit\(\)"):
        model.fit(steps_per_epoch=1)
    with pytest.raises(TypeError, match="needs an input_signature, a target_signature and"):
        KerasModel(softmax_model, [IMAGES], input=data())
