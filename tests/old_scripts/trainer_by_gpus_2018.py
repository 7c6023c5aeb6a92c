"""A script of 2018 that chooses its trainer by what it finds, and looks at all with callbacks."""

import argparse
import os

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.gpu import change_gpu, get_nr_gpu


class Model(ModelDesc):
    def __init__(self, width):
        super(Model, self).__init__()
        self.width = width

    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, 4), "x"),
            tf.placeholder(tf.float32, (None,), "y"),
        ]

    def build_graph(self, x, y):
        net = x
        for i in range(2):
            net = FullyConnected("fc{}".format(i), net, self.width, activation=tf.nn.relu)
            net = Dropout(net, rate=0.1)
        found = tf.squeeze(FullyConnected("out", net, 1), 1, name="found")
        cost = tf.reduce_mean(tf.abs(found - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
        opt = tf.train.AdamOptimizer(lr)
        return optimizer.AccumGradOptimizer(opt, 2)


def get_data(count):
    rng = np.random.RandomState(count)
    x = rng.normal(size=(count, 4)).astype("float32")
    ds = DataFromList([[each, each[0] - each[3]] for each in x], shuffle=count > 100)
    return BatchData(ds, 16)


def get_trainer():
    gpus = get_nr_gpu()
    if gpus <= 1:
        return QueueInputTrainer() if os.environ.get("OLD") else SimpleTrainer()
    return SyncMultiGPUTrainerReplicated(gpus)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", help="comma separated list of GPU(s) to use.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
    if args.predict:
        with change_gpu(None):
            pred = OfflinePredictor(
                PredictConfig(
                    model=Model(16),
                    session_init=get_model_loader(args.load),
                    input_names=["x"],
                    output_names=["found"],
                )
            )
        print("prediction:", pred(np.eye(4, dtype="float32"))[0].round(1))
    else:
        name = "trainer_by_gpus_2018" + ("-more" if args.load else "")
        logger.set_logger_dir(os.path.join("train_log", name), action="d")
        config = TrainConfig(
            model=Model(16),
            dataflow=get_data(320),
            callbacks=[
                ModelSaver(
                    var_collections=tf.GraphKeys.GLOBAL_VARIABLES, keep_checkpoint_every_n_hours=1
                ),
                MinSaver("validation_cost"),
                InferenceRunner(get_data(64), ScalarStats("cost")),
                TensorPrinter(["cost:0"]) if args.epochs > 9 else ProgressBar(names=["cost"]),
                EnableCallbackIf(
                    PeriodicTrigger(DumpTensors(["x:0"]), every_k_epochs=2), lambda self: True
                ),
                HumanHyperParamSetter("learning_rate"),
                StartProcOrThread([]),
                PeakMemoryTracker() if get_nr_gpu() else CallbackFactory(trigger=lambda self: None),
            ],
            extra_callbacks=[MovingAverageSummary(), MergeAllSummaries(period=10), RunUpdateOps()],
            monitors=[TFEventWriter(), JSONWriter(), ScalarPrinter(enable_epoch=True)],
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, get_trainer())
