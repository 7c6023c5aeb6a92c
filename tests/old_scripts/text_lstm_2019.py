"""A language model of 2019 over words: static_rnn, embeddings, a state that the graph keeps.

The batches follow each other in a text, so the state of one is the start of the next.
"""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import DataFlow
from tensorpack.tfutils import optimizer, summary
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.gradproc import GlobalNormClip

BATCH, STEPS, WORDS, HIDDEN = 8, 5, 20, 24


def make_text(length, seed):
    """Each word decides the next one, but for some."""
    rng = np.random.RandomState(seed)
    text = np.zeros(length, dtype="int64")
    for k in range(1, length):
        text[k] = (text[k - 1] * 7 + 3) % WORDS if rng.rand() < 0.8 else rng.randint(WORDS)
    return text


class Sequences(DataFlow):
    """Row k of all batches together is part k of the text."""

    def __init__(self, text):
        parts = len(text) // BATCH
        self._rows = text[: parts * BATCH].reshape(BATCH, parts)

    def __len__(self):
        return (self._rows.shape[1] - 1) // STEPS

    def __iter__(self):
        for k in range(len(self)):
            rows = self._rows[:, k * STEPS : (k + 1) * STEPS + 1]
            yield {"words": rows[:, :-1], "following": rows[:, 1:]}


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec((None, STEPS), tf.int64, "words"),
            tf.TensorSpec((None, STEPS), tf.int64, "following"),
        ]

    def initial_state(self, cell, batch):
        """Variables in training, zeros otherwise."""
        if not self.training:
            return cell.zero_state(batch, tf.float32), None
        kept = [
            tf.get_variable(
                name,
                [BATCH, HIDDEN],
                initializer=tf.zeros_initializer(),
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )
            for name in ("c", "h")
        ]
        self.forget = tf.group(*[v.initializer for v in kept], name="forget")
        return tf.nn.rnn_cell.LSTMStateTuple(*kept), kept

    def build_graph(self, words, following):
        uniform = tf.random_uniform_initializer(-0.1, 0.1)
        with tf.variable_scope("lm", initializer=uniform):
            table = tf.get_variable("table", [WORDS, HIDDEN])
            embedded = Dropout(tf.nn.embedding_lookup(table, words), rate=0.1)
            cell = tf.nn.rnn_cell.LSTMCell(HIDDEN, name="lstm")
            state, kept = self.initial_state(cell, tf.shape(words)[0])
            outputs, last = tf.nn.static_rnn(cell, tf.unstack(embedded, axis=1), state)
        updates = [] if kept is None else [tf.assign(v, new) for v, new in zip(kept, last)]
        with tf.control_dependencies(updates):
            output = tf.reshape(tf.stack(outputs, axis=1), [-1, HIDDEN])
        logits = tf.matmul(output, table, transpose_b=True)
        logits = tf.add(logits, tf.get_variable("b", [WORDS], initializer=tf.zeros_initializer()))
        tf.reshape(tf.argmax(logits, 1), tf.shape(words), name="guess")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(following, [-1]), logits=logits
        )
        cost = tf.reduce_mean(losses, name="cost")
        summary.add_moving_summary(cost, decay=0.9)
        return cost

    def optimizer(self):
        rate = tf.train.exponential_decay(1.0, get_global_step_var(), 200, 0.7)
        tf.summary.scalar("rate", rate)
        opt = tf.train.GradientDescentOptimizer(rate)
        return optimizer.apply_grad_processors(opt, [gradproc.CheckGradient(), GlobalNormClip(5)])


class Perplexity(Inferencer):
    def _get_fetches(self):
        return ["cost"]

    def _before_inference(self):
        self.costs = []

    def _on_fetches(self, results):
        self.costs.append(results[0])

    def _after_inference(self):
        return {"val_perplexity": np.exp(np.mean(self.costs))}


class Forget(Callback):
    """The text begins again in each epoch."""

    def __init__(self, model):
        self.model = model

    def _before_epoch(self):
        self.model.forget.run()


def get_config(args):
    model = Model()
    train = Sequences(make_text(2000, 0))
    return TrainConfig(
        model=model,
        data=FeedInput(train),
        callbacks=[
            ModelSaver(),
            Forget(model),
            InferenceRunner(Sequences(make_text(400, 1)), [Perplexity()]),
            ThroughputTracker(samples_per_step=BATCH * STEPS),
            EstimatedTimeLeft(),
            SimpleMovingAverage(["cost"], window_size=10),
        ],
        session_init=SmartInit(args.load),
        steps_per_epoch=len(train),
        max_epoch=args.epochs,
    )


def predict(path):
    predictor = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=SmartInit(path),
            input_names=["words"],
            output_names=["guess"],
        )
    )
    words = make_text(STEPS, 2)
    print("prediction:", words, predictor(words[np.newaxis])[0][0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir()
        launch_train_with_config(get_config(args), SimpleTrainer())
