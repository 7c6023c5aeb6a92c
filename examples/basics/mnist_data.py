"""What the MNIST scripts of this folder share: their command line and their digits."""

import argparse
import os
from typing import List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.dataflow import BatchData, DataFlow, DataFromList, dataset

__all__ = ["fake_digits", "get_data", "parse"]


def parse(script: str, doc: str, argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses a command line; `script` is the `__file__` of the program, and `doc` its docstring."""
    name = os.path.splitext(os.path.basename(script))[0]
    parser = argparse.ArgumentParser(prog=f"{name}.py", description=doc.split("\n")[0])
    add = parser.add_argument
    add("--fake", action="store_true", help="train on small generated images: nothing is needed")
    add("--download", action="store_true", help="download MNIST (11 MB) where it is missing")
    add("--data", metavar="DIR", help="its folder (default: $TENSORPACK_DATASET/mnist_data)")
    add("--batch-size", type=int, default=64, metavar="N", help="images in a batch (default: 64)")
    add("--steps-per-epoch", type=int, metavar="N", help="default: all images once")
    add("--max-epoch", type=int, default=20, metavar="N", help="epochs to train for (default: 20)")
    add("--logdir", default=os.path.join("train_log", name), metavar="DIR", help="log directory")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    return parser.parse_args(argv)


def get_data(args: argparse.Namespace) -> Tuple[DataFlow, DataFlow]:
    """Returns training and test set, in batches of float32 `[N, 28, 28]` and int32 `[N]`."""
    if args.fake:
        train, test = fake_digits(1280, seed=1), fake_digits(250, seed=2)
    else:
        where = {"dir": args.data, "download": args.download}
        train = dataset.Mnist("train", **where)
        test = dataset.Mnist("test", shuffle=False, **where)
    # The last batch of a test set may be smaller: every image counts once.
    return BatchData(train, args.batch_size), BatchData(test, 256, remainder=True)


def fake_digits(count: int, seed: int) -> DataFromList:
    """Returns a flow like `Mnist` whose ten classes are ten patterns of squares under noise."""
    squares = np.random.RandomState(0).randint(2, size=(10, 7, 7))
    patterns = np.kron(squares, np.ones((1, 4, 4)))
    rng = np.random.RandomState(seed)
    digits: List[list] = []
    for label in rng.randint(10, size=count).tolist():
        image = (patterns[label] + 3 * rng.uniform(size=(28, 28))) / 4
        digits.append([image.astype(np.float32), label])
    return DataFromList(digits)
