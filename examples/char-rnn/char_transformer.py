#!/usr/bin/env python
"""Trains a small transformer to write text like a given one, character by character.

    python char_transformer.py                       # on the language reference of Python
    python char_transformer.py --corpus shakespeare.txt --logdir train_log/shakespeare
    python char_transformer.py --sample --load train_log/char-transformer --start "The class "

Without a corpus it learns the help texts of Python. `bigram_cost` is what counts of pairs of
characters reach on the held-out text: with a lower `validation_cost` it has learned more than they.

Reference: Vaswani et al., "Attention is all you need", arXiv:1706.03762; normalized as in GPT-2.
"""

import argparse
import sys
from pydoc_data.topics import topics
from typing import List, Optional, Sequence

import numpy as np
from char_rnn import BATCH, HELD_OUT, MAX_GRADIENT_NORM, SYMBOLS, read, segments

import tensorpack as tp
from tensorpack.compat import tfv1 as tf

LEARNING_RATES = [(0, 2e-3), (5, 1e-3), (8, 3e-4)]  # (epoch, value after it)


class Model(tp.ModelDesc):
    """Predicts each next character of a segment from those before it.

    Tensors by name: `probability`, float32 `[B, SYMBOLS]`, of the character after the segment;
    `temperature`, a scalar that may be fed, 1 by default; `cost`, in nats per character.

    Args:
      length: most characters in a segment.
      layers: number of blocks, each with as many attentions as `heads`.
      units: size of the vector of a character; a multiple of `heads`.
    """

    def __init__(self, length: int, layers: int, units: int, heads: int) -> None:
        if units % heads:
            raise ValueError(f"units must be a multiple of heads={heads}, got {units}.")
        self._length, self._layers, self._units, self._heads = length, layers, units, heads

    def inputs(self) -> "List[tf.TensorSpec]":
        return [
            tf.TensorSpec([None, None], tf.int32, "input"),
            tf.TensorSpec([None, None], tf.int32, "nextinput"),
        ]

    def build_graph(self, input: "tf.Tensor", nextinput: "tf.Tensor") -> "tf.Tensor":
        batch, length = tf.unstack(tf.shape(input))
        small = tf.random_normal_initializer(stddev=0.02)
        embedding = tf.get_variable("embedding", [SYMBOLS, self._units], initializer=small)
        position = tf.get_variable("position", [self._length, self._units], initializer=small)
        x = tf.nn.embedding_lookup(embedding, input) + position[:length]
        x = tf.reshape(x, [-1, self._units])  # layers take one row for each character
        with tp.argscope(tp.FullyConnected, kernel_initializer=small):
            for i in range(self._layers):
                with tf.variable_scope(f"block{i}"):
                    x += self._attention(tp.LayerNorm("ln0", x), batch, length)
                    hidden = tp.FullyConnected("fc0", tp.LayerNorm("ln1", x), 4 * self._units)
                    x += tp.FullyConnected("fc1", tf.nn.relu(hidden), self._units)
            logits = tp.FullyConnected("softmax", tp.LayerNorm("ln", x), SYMBOLS)
        logits = tf.reshape(logits, [batch, length, SYMBOLS])
        temperature = tf.constant(1.0, name="temperature")
        tf.nn.softmax(logits[:, -1] / temperature, name="probability")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=nextinput)
        cost = tf.reduce_mean(losses, name="cost")
        tp.add_moving_summary(cost)
        return cost

    def _attention(self, x: "tf.Tensor", batch: "tf.Tensor", length: "tf.Tensor") -> "tf.Tensor":
        """Returns what each row of `x`, `[B * length, units]`, takes from those before it."""
        size = self._units // self._heads
        qkv = tp.FullyConnected("qkv", x, 3 * self._units)
        qkv = tf.reshape(qkv, [batch, length, 3, self._heads, size])
        query, key, value = tf.unstack(tf.transpose(qkv, [2, 0, 3, 1, 4]))
        scores = tf.matmul(query, key, transpose_b=True) / size**0.5
        seen = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
        weights = tf.nn.softmax(scores - 1e9 * (1 - seen))
        found = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tp.FullyConnected("out", tf.reshape(found, [-1, self._units]), self._units)

    def optimizer(self) -> "tf.train.Optimizer":
        rate = tf.get_variable("learning_rate", initializer=LEARNING_RATES[0][1], trainable=False)
        tp.create_scalar_summary("learning_rate", rate)
        return tp.apply_grad_processors(
            tf.train.AdamOptimizer(rate), [tp.GlobalNormClip(MAX_GRADIENT_NORM)]
        )


def count_cost(train: bytes, test: bytes, before: int) -> float:
    """Returns the cross-entropy of `test`, in nats per character, by counts of `train`.

    Args:
      train: where the characters are counted; each count begins with 1 / SYMBOLS.
      test: what is predicted.
      before: how many characters the next one is predicted from: 0 or 1.
    """

    def pairs(text: bytes) -> np.ndarray:
        array = np.frombuffer(text, np.uint8).astype(np.int64)
        return (array[:-1] if before else 0) * SYMBOLS + array[1:]

    counts = np.bincount(pairs(train), minlength=SYMBOLS**2).reshape(SYMBOLS, SYMBOLS)
    smooth = counts + 1 / SYMBOLS
    share = smooth / smooth.sum(axis=1, keepdims=True)
    return float(-np.log(share.reshape(-1)[pairs(test)]).mean())


class LogBigrams(tp.Callback):
    """Logs each epoch, beside the validation, what pairs of characters reach on the same text."""

    def __init__(self, train: bytes, test: bytes) -> None:
        unigram, self._bigram = (count_cost(train, test, before) for before in (0, 1))
        tp.logger.info(f"Counts of characters: {unigram:.3f}, of pairs: {self._bigram:.3f} nats.")

    def _trigger_epoch(self) -> None:
        self.trainer.monitors.put_scalar("bigram_cost", self._bigram)


def train(args: argparse.Namespace) -> None:
    """Trains until the last epoch."""
    text = read(args.corpus) if args.corpus else "\n".join(topics.values()).encode()
    end, needed = int(len(text) * (1 - HELD_OUT)), 25 * args.length + 2 * BATCH
    if len(text) < needed:
        raise ValueError(f"The text has {len(text)} bytes, but at least {needed} are needed.")
    held_out = segments(text[end:], args.length, shuffle=False)
    config = tp.TrainConfig(
        model=Model(args.length, args.layers, args.units, args.heads),
        data=tp.QueueInput(segments(text[:end], args.length, shuffle=True)),
        callbacks=[
            tp.ModelSaver(),
            tp.InferenceRunner(held_out, tp.ScalarStats("cost")),
            LogBigrams(text[:end], text[end:]),
            tp.ScheduledHyperParamSetter("learning_rate", LEARNING_RATES),
        ],
        steps_per_epoch=args.steps_per_epoch,
        max_epoch=args.max_epoch,
        session_init=tp.InitFrom(args.load) if args.load else None,
        resume=tp.prepare_log_dir(args.logdir, args.resume),
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


def sample(args: argparse.Namespace) -> str:
    """Returns `args.start`, and the `args.chars` characters that the model puts after it."""
    config = tp.PredictConfig(
        model=Model(args.length, args.layers, args.units, args.heads),
        session_init=tp.SaverRestore(args.load),
        input_names=["input", "temperature"],
        output_names=["probability"],
    )
    rng, text = tp.get_rng(), list(args.start.encode())
    with tp.OfflinePredictor(config) as predict:
        for _ in range(args.chars):
            (probability,) = predict([text[-args.length :]], args.temperature)
            likely = np.float64(probability[0])
            text.append(int(rng.choice(SYMBOLS, p=likely / likely.sum())))
    return bytes(text).decode(errors="replace")


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--corpus", metavar="FILE", help="the text to learn (default: the help texts of Python)")
    add("--sample", action="store_true", help="write text with the model of --load")
    add("--load", metavar="MODEL", help="a checkpoint or log directory to take the weights from")
    add("--start", default="The ", help="what that text begins with (default: 'The ')")
    add("--chars", type=int, default=400, help="how many characters to write (default: 400)")
    add("--temperature", type=float, default=0.8, help="less: likelier characters (default: 0.8)")
    add("--layers", type=int, default=2, help="blocks of the model (default: 2)")
    add("--units", type=int, default=128, help="size of a character's vector (default: 128)")
    add("--heads", type=int, default=4, help="attentions of a block (default: 4)")
    add("--length", type=int, default=64, help="characters that the model sees (default: 64)")
    add("--steps-per-epoch", type=int, default=100, help="default: 100")
    add("--max-epoch", type=int, default=10, help="the last epoch (default: 10)")
    add("--logdir", default="train_log/char-transformer", help="of checkpoints and curves")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    args = parser.parse_args(argv)
    if (args.sample and not args.load) or not (args.start and args.temperature > 0):
        parser.error("it needs some text to --start, a --temperature > 0, to --sample --load MODEL")
    return args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Trains unless it only has to write, and writes some text."""
    args = parse(argv)
    if not args.sample:
        train(args)
        args.load = tp.logger.get_logger_dir()  # another one than args.logdir, if that was in use
    with tf.Graph().as_default():
        sys.stdout.write(sample(args) + "\n")


if __name__ == "__main__":
    main()
