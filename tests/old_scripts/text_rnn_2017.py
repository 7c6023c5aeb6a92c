"""A net of 2017 that writes text by characters: cells of tf.contrib.rnn, the state is fed."""

import argparse

import numpy as np
import six
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.gradproc import GlobalNormClip
from tensorpack.utils.lut import LookUpTable

rnn = tf.contrib.rnn
STEPS, HIDDEN, BATCH = 12, 32, 16
TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen jugs. " * 6
CHARS = LookUpTable(sorted(set(TEXT)))


class Pieces(RNGDataFlow):
    """Pieces of the text, as numbers, and the same one character on."""

    def size(self):
        return 480

    def get_data(self):
        numbers = np.array([CHARS.get_idx(c) for c in TEXT], dtype="int32")
        for start in self.rng.randint(len(numbers) - STEPS, size=self.size()):
            piece = numbers[start : start + STEPS + 1]
            yield [piece[:-1], piece[1:]]


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.int32, (None, None), "input"),
            InputDesc(tf.int32, (None, None), "nextinput"),
        ]

    def _build_graph(self, inputs):
        given, following = inputs
        cells = [rnn.GRUCell(HIDDEN), rnn.BasicLSTMCell(HIDDEN, forget_bias=0.0)]
        if get_current_tower_context().is_training:
            cells = [rnn.DropoutWrapper(cell, output_keep_prob=0.9) for cell in cells]
        cell = rnn.MultiRNNCell(cells)
        zero = cell.zero_state(tf.shape(given)[0], tf.float32)
        flat = tf.contrib.framework.nest.flatten(zero)
        fed = [
            tf.placeholder_with_default(each, (None, HIDDEN), name="initial_%d" % k)
            for k, each in enumerate(flat)
        ]
        initial = tf.contrib.framework.nest.pack_sequence_as(zero, fed)

        table = tf.get_variable("embedding", [CHARS.size(), HIDDEN])
        embedded = tf.nn.embedding_lookup(table, given)
        outputs, last = tf.nn.dynamic_rnn(cell, embedded, initial_state=initial, scope="rnn")
        for k, each in enumerate(tf.contrib.framework.nest.flatten(last)):
            tf.identity(each, name="last_%d" % k)
        logits = FullyConnected(
            "fc", tf.reshape(outputs, [-1, HIDDEN]), CHARS.size(), nl=tf.identity
        )
        tf.nn.softmax(logits / symbf.get_scalar_var("temperature", 1.0), name="prob")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=logits, labels=symbf.flatten(following)
        )
        self.cost = tf.reduce_mean(losses, name="cost")
        symbf.prediction_incorrect(logits, symbf.flatten(following), topk=3, name="wrong-top3")
        summary.add_moving_summary(self.cost, tf.exp(self.cost, name="perplexity"))
        summary.add_param_summary((".*/W", ["histogram"]), ("embedding", ["rms"]))

    def _get_optimizer(self):
        lr = symbf.get_scalar_var("learning_rate", 5e-3, summary=True)
        return optimizer.apply_grad_processors(tf.train.AdamOptimizer(lr), [GlobalNormClip(5)])


def write(path, start, length):
    states = range(3)
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=SaverRestore(path),
            input_names=["input"] + ["initial_%d" % k for k in states],
            output_names=["prob"] + ["last_%d" % k for k in states],
        )
    )
    state = [np.zeros((1, HIDDEN), dtype="float32") for _ in states]
    written = start
    for c in start[:-1]:
        state = pred([[[CHARS.get_idx(c)]]] + state)[1:]
    for _ in range(length):
        result = pred([[[CHARS.get_idx(written[-1])]]] + state)
        prob, state = result[0][0], result[1:]
        written += CHARS.get_obj(int(np.random.choice(CHARS.size(), p=prob / prob.sum())))
    print("prediction:", written)


def get_config(load, epochs):
    logger.auto_set_dir()
    ds = BatchData(Pieces(), BATCH)
    return TrainConfig(
        model=Model(),
        data=QueueInput(ds, tf.FIFOQueue(20, [tf.int32] * 2)),
        callbacks=[
            ModelSaver(),
            ScheduledHyperParamSetter("learning_rate", [(25, 2e-4)]),
            InferenceRunner(
                FixedSizeData(BatchData(Pieces(), BATCH), 5),
                [ScalarStats("cost"), ClassificationError("wrong-top3", "val_top3")],
            ),
            HumanHyperParamSetter("learning_rate"),
        ],
        session_init=get_model_loader(load) if load else None,
        max_epoch=epochs,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--start", default="the ")
    args = parser.parse_args()
    if args.predict:
        write(args.load, six.text_type(args.start), 20)
    else:
        config = get_config(args.load, args.epochs)
        SimpleTrainer(config).train()
