"""An autoencoder of 2018 with an equalized learning rate.

Each weight is drawn with deviation 1 and multiplied where it is used, by a getter of variables.
"""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.gradproc import GlobalNormClip, ScaleGradient
from tensorpack.tfutils.summary import add_activation_summary, add_moving_summary, add_param_summary
from tensorpack.tfutils.varreplace import custom_getter_scope, remap_variables

SIZE, CODE = 12, 5


def equalized(getter, name, shape=None, *args, **kwargs):
    """Gives what He's initializer would give at first, of a variable with deviation 1."""
    if not name.endswith("/W"):
        return getter(name, shape, *args, **kwargs)
    kwargs["initializer"] = tf.random_normal_initializer()
    fan_in = float(np.prod(shape[:-1]))
    return tf.multiply(getter(name, shape, *args, **kwargs), np.sqrt(2 / fan_in), name="scaled")


def rounded(v):
    """Weights of the code in steps of 1/8, with the gradient of the weights themselves."""
    if v.op.name.endswith("code/W"):
        return v + tf.stop_gradient(tf.round(v * 8) / 8 - v)
    return v


class Model(ModelDesc):
    def inputs(self):
        return [tf.placeholder(tf.float32, (None, SIZE, SIZE), "image")]

    def encode(self, x):
        x = Conv2D("conv0", x, 8)
        x = Conv2D("conv1", MaxPooling("pool0", x, 2), 16)
        x = AvgPooling("pool1", x, pool_size=2)
        with remap_variables(rounded):
            return FullyConnected("code", x, CODE, activation=tf.identity)

    def decode(self, x):
        x = FullyConnected("fc", x, 3 * 3 * 16)
        x = tf.reshape(x, [-1, 3, 3, 16])
        x = FixedUnPooling("unpool0", x, 2, unpool_mat=np.ones((2, 2), dtype="float32"))
        x = FixedUnPooling("unpool1", Conv2D("conv0", x, 8), 2)
        return Conv2D("conv1", x, 1, activation=tf.sigmoid)

    def build_graph(self, image):
        with custom_getter_scope(equalized), argscope(
            Conv2D, kernel_size=3, activation=lambda x, name=None: PReLU("prelu", x)
        ), argscope(FullyConnected, activation=tf.nn.elu):
            with tf.variable_scope("encoder"):
                code = self.encode(tf.expand_dims(image, -1))
            code = tf.identity(code, "code")
            with tf.variable_scope("decoder"):
                again = self.decode(code)
        again = tf.squeeze(again, 3, name="again")
        add_activation_summary(code, types=["rms", "histogram"])
        error = tf.reduce_mean(tf.square(again - image), axis=[1, 2], name="error")
        cost = tf.reduce_mean(error, name="cost")
        tf.reduce_max(error, name="worst")
        add_moving_summary(cost)
        add_param_summary((".*/W", ["rms"]))
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=3e-3, trainable=False)
        opt = tf.train.AdamOptimizer(lr)
        procs = [GlobalNormClip(5.0), ScaleGradient([(".*/b", 2.0), (".*code/W", 0.5)])]
        return optimizer.apply_grad_processors(opt, procs)


def get_data(train):
    """Two soft spots in each image."""
    rng = np.random.RandomState(0 if train else 1)
    y, x = np.mgrid[:SIZE, :SIZE]
    images = []
    for _ in range(320 if train else 64):
        spots = rng.uniform(2, SIZE - 2, size=(2, 2))
        images.append(
            [sum(np.exp(-((y - a) ** 2 + (x - b) ** 2) / 3) for a, b in spots).clip(0, 1)]
        )
    ds = DataFromList(images, shuffle=train)
    return BatchData(ds, 32, remainder=not train)


def get_config(args):
    logger.auto_set_dir(action="k")
    return TrainConfig(
        model=Model(),
        data=QueueInput(get_data(True)),
        callbacks=[
            InferenceRunner(get_data(False), ScalarStats(["cost", "worst"])),
            ModelSaver(),
            MinSaver("validation_cost"),
            StatMonitorParamSetter("learning_rate", "validation_cost", lambda x: x * 0.5, 1e-4, 3),
        ],
        extra_callbacks=[
            MovingAverageSummary(),
            ProgressBar(["cost"]),
            MergeAllSummaries(),
            RunUpdateOps(),
        ],
        session_init=get_model_loader(args.load) if args.load else JustCurrentSession(),
        max_epoch=args.epochs,
    )


def predict(path):
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["image"],
            output_names=["code", "again"],
        )
    )
    ds = get_data(False)
    ds.reset_state()
    (images,) = next(ds.get_data())
    code, again = pred(images)
    print("prediction:", code.shape, np.square(again - images).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        launch_train_with_config(get_config(args), SimpleTrainer())
