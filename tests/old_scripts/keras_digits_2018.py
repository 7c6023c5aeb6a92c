"""A convolutional net of Keras, made by a function and trained by KerasModel."""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tensorpack import *
from tensorpack.contrib.keras import KerasModel
from tensorpack.dataflow import BatchData, DataFromList, MapData

KL = keras.layers
CLASSES = 4


def make_data(count, seed):
    """Images of 12 x 12 with a bright quarter, and which one it is, one-hot."""
    rng = np.random.RandomState(seed)
    points = []
    for number in range(count):
        label = number % CLASSES
        image = rng.uniform(0, 0.5, size=(12, 12, 1)).astype("float32")
        row, column = divmod(label, 2)
        image[6 * row : 6 * row + 6, 6 * column : 6 * column + 6] += 0.5
        points.append([image, label])
    return DataFromList(points)


def get_data(name):
    ds = make_data(200 if name == "train" else 40, name == "test")
    ds = MapData(ds, lambda dp: [dp[0] - 0.5, np.eye(CLASSES, dtype="float32")[dp[1]]])
    return BatchData(ds, 20, remainder=name == "test")


def get_model(*inputs):
    image = KL.Input(tensor=inputs[0])
    x = image
    for width in (8, 16):
        x = KL.Conv2D(width, 3, padding="same", kernel_regularizer=keras.regularizers.l2(1e-4))(x)
        x = KL.BatchNormalization()(x)
        x = KL.MaxPooling2D()(KL.Activation("relu")(x))
    x = KL.Dropout(0.2)(KL.Flatten()(x))
    x = KL.Dense(CLASSES, activation="softmax", name="probabilities")(x)
    return keras.models.Model(inputs=image, outputs=x)


IMAGES = [tf.TensorSpec([None, 12, 12, 1], tf.float32, "images")]
LABELS = [tf.TensorSpec([None, CLASSES], tf.float32, "labels")]


def train(args):
    logger.auto_set_dir()
    model = KerasModel(get_model, IMAGES, LABELS, QueueInput(get_data("train")))
    model.compile(
        optimizer=tf.train.AdamOptimizer(3e-3),
        loss="categorical_crossentropy",
        metrics=["categorical_accuracy"],
    )
    model.fit(
        validation_data=get_data("test"),
        steps_per_epoch=10,
        max_epoch=args.epochs,
        session_init=get_model_loader(args.load) if args.load else None,
        callbacks=[ModelSaver(), MaxSaver("validation_categorical_accuracy")],
    )


def predict(path):
    def tower(images):
        return tf.identity(get_model(images)(images, training=False), name="prediction")

    config = PredictConfig(
        tower_func=TowerFunc(tower, IMAGES),
        session_init=get_model_loader(path),
        input_names=["images"],
        output_names=["prediction"],
    )
    images = np.stack([dp[0] for dp in make_data(8, seed=3)]) - 0.5
    print("prediction:", OfflinePredictor(config)(images)[0].argmax(axis=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load", help="a checkpoint")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    predict(args.load) if args.predict else train(args)
