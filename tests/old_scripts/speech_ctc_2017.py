"""Speech of 2017: features of any length, batches of like lengths, sparse labels, CTC."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow.base import ProxyDataFlow, RNGDataFlow
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.gradproc import GlobalNormClip, SummaryGradient
from tensorpack.utils.utils import get_rng

FEATURES, PHONES, BATCH = 6, 5, 8


class Utterances(RNGDataFlow):
    """Each phone is a few noisy frames of a vector of its own."""

    def __init__(self, count, shuffle=True):
        self.count, self.shuffle = count, shuffle

    def size(self):
        return self.count

    def get_data(self):
        rng = self.rng if self.shuffle else np.random.RandomState(1)
        sounds = np.random.RandomState(0).randn(PHONES, FEATURES)
        for _ in range(self.count):
            label = rng.randint(PHONES, size=rng.randint(1, 5))
            frames = np.repeat(label, rng.randint(3, 7, size=len(label)))
            yield [sounds[frames] + rng.randn(len(frames), FEATURES) * 0.2, label]


class Buckets(ProxyDataFlow):
    """Batches of utterances of like lengths, padded; labels as indices, values and shape."""

    def __init__(self, ds, edges):
        super(Buckets, self).__init__(ds)
        self.edges = edges

    def size(self):
        return self.ds.size() // BATCH

    def get_data(self):
        waiting = [[] for _ in range(len(self.edges) + 1)]
        ready = 0
        while ready < self.size():
            for dp in self.ds.get_data():
                bucket = waiting[np.searchsorted(self.edges, len(dp[0]))]
                bucket.append(dp)
                if len(bucket) == BATCH:
                    yield self.pad(bucket)
                    del bucket[:]
                    ready += 1
                    if ready == self.size():
                        return

    def pad(self, dps):
        lengths = np.array([len(feature) for feature, _ in dps], dtype="int32")
        padded = np.zeros((len(dps), lengths.max(), FEATURES), dtype="float32")
        for row, (feature, _) in zip(padded, dps):
            row[: len(feature)] = feature
        where = [(b, k) for b, (_, label) in enumerate(dps) for k in range(len(label))]
        values = np.concatenate([label for _, label in dps])
        shape = [len(dps), max(len(label) for _, label in dps)]
        return [padded, np.asarray(where), values.astype("int32"), np.asarray(shape), lengths]


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, [None, None, FEATURES], "feature"),
            InputDesc(tf.int64, None, "label_indices"),
            InputDesc(tf.int32, None, "label_values"),
            InputDesc(tf.int64, None, "label_shape"),
            InputDesc(tf.int32, [None], "lengths"),
        ]

    def _build_graph(self, inputs):
        feature, indices, values, shape, lengths = inputs
        label = tf.SparseTensor(indices, values, shape)
        with tf.variable_scope("rnn"):
            cell = tf.contrib.rnn.BasicRNNCell
            both, _ = tf.nn.bidirectional_dynamic_rnn(
                cell(24), cell(24), feature, sequence_length=lengths, dtype=tf.float32
            )
            hidden = tf.concat(both, 2)
        frames = tf.reshape(hidden, [-1, 48])
        frames = BatchNorm("bn", frames, decay=0.9)
        logits = FullyConnected("fc", frames, PHONES + 1, nl=tf.identity)
        logits = tf.reshape(logits, [tf.shape(feature)[0], -1, PHONES + 1], name="logits")
        by_time = tf.transpose(logits, [1, 0, 2])
        losses = tf.nn.ctc_loss(labels=label, inputs=by_time, sequence_length=lengths)
        self.cost = tf.reduce_mean(losses, name="cost")

        if get_current_tower_context().is_training:
            paths, _ = tf.nn.ctc_greedy_decoder(by_time, lengths)
        else:
            paths, _ = tf.nn.ctc_beam_search_decoder(by_time, lengths, beam_width=4)
        found = tf.to_int32(paths[0])
        tf.sparse_tensor_to_dense(found, default_value=-1, name="found")
        distance = tf.edit_distance(found, label, normalize=True)
        rate = tf.reduce_mean(distance, name="error_rate")
        summary.add_moving_summary(self.cost, rate)

    def _get_optimizer(self):
        lr = symbf.get_scalar_var("learning_rate", 1e-2, summary=True)
        opt = tf.train.MomentumOptimizer(lr, 0.9)
        return optimizer.apply_grad_processors(opt, [GlobalNormClip(2), SummaryGradient()])


def get_data(train):
    if train:
        return PrefetchData(Buckets(Utterances(320), [8, 14]), 10, 1)
    return Buckets(Utterances(80, shuffle=False), [10])


def get_config(args):
    logger.auto_set_dir()
    train = get_data(True)
    return TrainConfig(
        model=Model(),
        dataflow=train,
        callbacks=[
            ModelSaver(keep_recent=3),
            StatMonitorParamSetter("learning_rate", "validation_error_rate", lambda x: x / 2, 0, 5),
            InferenceRunner(get_data(False), ScalarStats(["error_rate", "cost"])),
            MinSaver("validation_error_rate", filename="best"),
        ],
        session_init=SaverRestoreRelaxed(args.load) if args.load else None,
        max_epoch=args.epochs,
    )


def recognise(path):
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=SaverRestore(path),
            input_names=["feature", "lengths"],
            output_names=["found"],
        )
    )
    ds = get_data(False)
    ds.reset_state()
    for feature, _, _, _, lengths in ds.get_data():
        print("prediction:", pred([feature, lengths])[0][0])
        break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        recognise(args.load)
    else:
        QueueInputTrainer(get_config(args)).train()
