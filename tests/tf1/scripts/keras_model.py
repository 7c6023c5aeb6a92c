"""Trains a model of Keras, whose modules it names as scripts of 2016-2019 do."""

import keras
import keras.backend as K
import numpy as np
import tensorflow as tf
from keras.backend.tensorflow_backend import set_session
from keras.engine.topology import Layer
from keras.layers import Activation, Flatten
from keras.layers.convolutional import Conv2D
from keras.layers.core import Dense
from keras.models import Sequential
from keras.optimizers import SGD
from keras.preprocessing.image import ImageDataGenerator
from keras.utils import np_utils
from tensorflow import keras as of_tensorflow
from tensorflow.keras.layers import Dense as TensorFlowDense

assert keras.layers.Dense is Dense is tf.keras.layers.Dense is TensorFlowDense
assert of_tensorflow.layers.Dense is Dense and keras.__version__.startswith("2.")


class Twice(Layer):
    """A layer of a script's own."""

    def call(self, inputs):
        return 2 * inputs


tf.set_random_seed(0)  # else all four filters may begin with no output above 0
set_session(tf.Session())
model = Sequential(
    [
        Conv2D(4, (3, 3), activation="relu", input_shape=(8, 8, 1)),
        Flatten(),
        Twice(),
        Dense(2),
        Activation("softmax"),
    ]
)
model.compile(optimizer=SGD(lr=0.05), loss="categorical_crossentropy", metrics=["accuracy"])
labels = np.arange(64) % 2
images = np.ones((64, 8, 8, 1), "float32") * labels.reshape(-1, 1, 1, 1)
flow = ImageDataGenerator().flow(images, np_utils.to_categorical(labels), batch_size=16)
model.fit_generator(flow, steps_per_epoch=4, epochs=10, verbose=0)
assert model.evaluate(images, np_utils.to_categorical(labels), verbose=0)[1] == 1.0
assert isinstance(model.output, tf.Tensor) and K.get_session().run(
    model.output, {model.input: images[:2]}
).shape == (2, 2)

for statement in "import keras.no_such", "from keras.layers import NoSuch":
    try:
        exec(statement)
    except ImportError as error:
        assert "o_such" in str(error) or "NoSuch" in str(error)
    else:
        raise AssertionError(statement)
