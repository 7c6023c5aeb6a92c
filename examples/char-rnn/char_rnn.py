#!/usr/bin/env python
"""Trains an LSTM to write text like a given one, character by character, and lets it write.

    python char_rnn.py --corpus shakespeare.txt
    python char_rnn.py --sample --load train_log/char-rnn --start "To be" --temperature 0.8

Characters are bytes, so the text may be in any language, and a checkpoint needs no vocabulary.
Training segments are drawn at random, and each begins with a zero state: they need no order, and
the price is only that the first characters of a segment are predicted with little context.
"""

import argparse
import sys
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack import (
    BatchData,
    DataFlow,
    DataFromList,
    FullyConnected,
    GlobalNormClip,
    InferenceRunner,
    InitFrom,
    MapData,
    ModelDesc,
    ModelSaver,
    OfflinePredictor,
    PredictConfig,
    QueueInput,
    SaverRestore,
    ScalarStats,
    ScheduledHyperParamSetter,
    SimpleTrainer,
    TrainConfig,
    add_moving_summary,
    apply_grad_processors,
    create_scalar_summary,
    get_rng,
    launch_train_with_config,
    prepare_log_dir,
)
from tensorpack.compat import tfv1 as tf

SYMBOLS = 256  # values of a byte
BATCH = 64
HELD_OUT = 0.05  # share of the text, its end, that is for validation
LEARNING_RATES = [(0, 2e-3), (10, 1e-3), (20, 4e-4)]  # (epoch, value after it)
MAX_GRADIENT_NORM = 5.0  # of all gradients together


class LSTM:
    """A layer of an LSTM; its variables are `W` `[inputs + units, 4 * units]` and `b`.

    Reference: Gers et al., "Learning to forget", 2000, with the forget gates open at first.

    Args:
      name: of the variable scope.
      inputs: size of what the layer sees in each step.
      units: size of its output, and of its memory.
    """

    def __init__(self, name: str, inputs: int, units: int) -> None:
        with tf.variable_scope(name):
            self._W = tf.get_variable(
                "W", [inputs + units, 4 * units], initializer=tf.glorot_uniform_initializer()
            )
            self._b = tf.get_variable("b", [4 * units], initializer=tf.zeros_initializer())

    def __call__(
        self, x: tf.Tensor, memory: tf.Tensor, output: tf.Tensor
    ) -> Tuple[tf.Tensor, tf.Tensor]:
        """Takes the input `[B, inputs]`, and memory and output `[B, units]` of the step before;
        returns the new memory and output.
        """
        gates = tf.matmul(tf.concat([x, output], 1), self._W) + self._b
        write, forget, read, new = tf.split(gates, 4, axis=1)
        memory = tf.sigmoid(forget + 1.0) * memory + tf.sigmoid(write) * tf.tanh(new)
        return memory, tf.sigmoid(read) * tf.tanh(memory)


class Model(ModelDesc):
    """Predicts each next character of a segment.

    Tensors by name: `state`, float32 `[layers, 2, B, units]`, the memories and outputs before the
    segment, which are zeros unless a predictor feeds them; `last_state`, those after it;
    `probability`, float32 `[B, SYMBOLS]`, of the character after the segment; `temperature`, a
    scalar that may be fed, 1 by default; `cost`, the mean cross-entropy in nats per character.

    Args:
      length: characters in a segment.
      layers: number of LSTM layers.
      units: size of each of them.
    """

    def __init__(self, length: int, layers: int, units: int) -> None:
        self._length, self._layers, self._units = length, layers, units

    def inputs(self) -> List[tf.TensorSpec]:
        return [
            tf.TensorSpec([None, self._length], tf.int32, "input"),
            tf.TensorSpec([None, self._length], tf.int32, "nextinput"),
        ]

    def build_graph(self, input: tf.Tensor, nextinput: tf.Tensor) -> tf.Tensor:
        shape = [self._layers, 2, tf.shape(input)[0], self._units]
        state = tf.zeros(shape, name="state")
        logits, last_state = self._unroll(input, state)
        tf.identity(last_state, name="last_state")
        temperature = tf.constant(1.0, name="temperature")
        tf.nn.softmax(logits[:, -1] / temperature, name="probability")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=nextinput)
        cost = tf.reduce_mean(losses, name="cost")
        add_moving_summary(cost)
        return cost

    def _unroll(self, input: tf.Tensor, state: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
        """Returns the logits, `[B, length, SYMBOLS]`, and the last state."""
        units = self._units
        embedding = tf.get_variable("embedding", [SYMBOLS, units])
        layers = [LSTM(f"lstm{i}", units, units) for i in range(self._layers)]
        states = [tuple(tf.unstack(each)) for each in tf.unstack(state)]
        outputs = []
        for character in tf.unstack(input, axis=1):
            x = tf.nn.embedding_lookup(embedding, character)
            for i, layer in enumerate(layers):
                states[i] = layer(x, *states[i])
                x = states[i][1]
            outputs.append(x)
        flat = tf.reshape(tf.stack(outputs, axis=1), [-1, units])
        logits = FullyConnected("softmax", flat, SYMBOLS)
        return tf.reshape(logits, [-1, self._length, SYMBOLS]), tf.stack(states)

    def optimizer(self) -> tf.train.Optimizer:
        rate = tf.get_variable(
            "learning_rate",
            [],
            initializer=tf.constant_initializer(LEARNING_RATES[0][1]),
            trainable=False,
        )
        create_scalar_summary("learning_rate", rate)
        return apply_grad_processors(
            tf.train.AdamOptimizer(rate), [GlobalNormClip(MAX_GRADIENT_NORM)]
        )


def sums(count: int = 20000) -> bytes:
    """Returns text to try the script on: lines such as `17 + 5 = 22`."""
    pairs = np.random.RandomState(0).randint(100, size=(count, 2)).tolist()
    return "".join(f"{a} + {b} = {a + b}\n" for a, b in pairs).encode()


def read(path: str) -> bytes:
    """Returns what is in a file."""
    with open(path, "rb") as file:
        return file.read()


def segments(text: bytes, length: int, shuffle: bool) -> DataFlow:
    """Returns a flow of `[input, nextinput]`, int32 `[BATCH, length]` each.

    Args:
      text: where the segments come from.
      length: of a segment.
      shuffle: whether they begin anywhere, in random order; otherwise they follow one another.
    """
    array = np.frombuffer(text, np.uint8).astype(np.int32)
    starts = range(0, len(array) - length, 1 if shuffle else length)

    def segment(start: int) -> List[np.ndarray]:
        return [array[start : start + length], array[start + 1 : start + length + 1]]

    flow = MapData(DataFromList(starts, shuffle=shuffle), segment)
    return BatchData(flow, BATCH, remainder=not shuffle)


def train(args: argparse.Namespace) -> None:
    """Trains until the last epoch; each one sees about as many characters as the text has."""
    text = sums() if args.fake else read(args.corpus)
    end = int(len(text) * (1 - HELD_OUT))
    if min(end - BATCH, len(text) - end) <= args.length:
        needed = int(args.length / HELD_OUT) + BATCH
        raise ValueError(f"The text has {len(text)} bytes, but at least {needed} are needed.")
    resume = prepare_log_dir(args.logdir, args.resume)
    config = TrainConfig(
        data=QueueInput(segments(text[:end], args.length, shuffle=True)),
        model=Model(args.length, args.layers, args.units),
        callbacks=[
            ModelSaver(),
            InferenceRunner(segments(text[end:], args.length, shuffle=False), ScalarStats("cost")),
            ScheduledHyperParamSetter("learning_rate", LEARNING_RATES),
        ],
        session_init=InitFrom(args.load) if args.load else None,
        steps_per_epoch=args.steps_per_epoch or max(end // (BATCH * args.length), 1),
        max_epoch=args.max_epoch,
        resume=resume,
    )
    launch_train_with_config(config, SimpleTrainer())


def sample(args: argparse.Namespace, rng: Optional[np.random.RandomState] = None) -> str:
    """Returns `args.start`, and the `args.chars` characters that the model puts after it."""
    rng = rng or get_rng()
    config = PredictConfig(
        model=Model(1, args.layers, args.units),
        session_init=SaverRestore(args.load),
        input_names=["input", "state", "temperature"],
        output_names=["probability", "last_state"],
    )
    text = list(args.start.encode())
    state: Any = np.zeros([args.layers, 2, 1, args.units], np.float32)
    with OfflinePredictor(config) as predict:
        for i in range(len(text) + args.chars - 1):
            probability, state = predict([[text[i]]], state, args.temperature)
            if i == len(text) - 1:  # all that there is has been read
                likely = np.float64(probability[0])
                text.append(int(rng.choice(SYMBOLS, p=likely / likely.sum())))
    return bytes(text).decode(errors="replace")


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--corpus", metavar="FILE", help="the text to learn")
    add("--fake", action="store_true", help="learn generated text instead: sums of two numbers")
    add("--load", metavar="MODEL", help="a checkpoint or log directory to take the weights from")
    add(
        "--sample",
        action="store_true",
        help="write text with the model of --load; needs its --layers and --units",
    )
    add("--start", default="The ", help="what that text begins with (default: 'The ')")
    add("--chars", type=int, default=500, help="how many characters to write (default: 500)")
    add("--temperature", type=float, default=1.0, help="less than 1: more likely characters")
    add("--layers", type=int, default=2, help="layers of the model (default: 2)")
    add("--units", type=int, default=256, help="size of a layer (default: 256)")
    add("--length", type=int, default=50, help="characters in a segment (default: 50)")
    add("--steps-per-epoch", type=int, help="default: as many as the text has batches")
    add("--max-epoch", type=int, default=30, help="the last epoch (default: 30)")
    add("--logdir", default="train_log/char-rnn", help="default: train_log/char-rnn")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    args = parser.parse_args(argv)
    if args.sample:
        if not (args.load and args.start and args.temperature > 0):
            parser.error("--sample needs --load MODEL, some text to --start, a --temperature > 0")
    elif (args.corpus is None) != args.fake:
        parser.error("give either --corpus FILE or --fake")
    return args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does what the command line says."""
    args = parse(argv)
    if args.sample:
        sys.stdout.write(sample(args) + "\n")
    else:
        train(args)


if __name__ == "__main__":
    main()
