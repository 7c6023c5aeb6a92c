"""Datapoints from workers of torch's DataLoader.

.venv-peer-torch/bin/python benchmarks/peers/torch_loader.py --kind large --processes 2
"""

import itertools

import torch
from _clock import parse_args, per_second, print_rate
from _stream import BATCH, check, datapoint_of, decode, first, length, pictures, same


class Endless(torch.utils.data.IterableDataset):
    """What a function makes of elements, again and again."""

    def __init__(self, function, elements):
        super().__init__()
        self._function, self._elements = function, elements

    def __iter__(self):
        return map(self._function, itertools.cycle(self._elements))


def stream(kind, workers):
    """What the consumer looks at."""
    if kind == "jpegs":
        dataset = Endless(lambda jpeg: [torch.from_numpy(decode(jpeg))], pictures())
        options = {"batch_size": BATCH}
    elif kind in ("small", "large"):
        # With a batch size, workers copy once, into shared memory; without one, twice.
        dataset = Endless(same, [[torch.from_numpy(array) for array in datapoint_of(kind)]])
        options = {"batch_size": 1}
    else:
        # Arrays go through a pipe; as tensors, each in shared memory, they take five times as long.
        dataset = Endless(same, [datapoint_of(kind)])
        options = {"batch_size": None, "collate_fn": same}
    return map(first, torch.utils.data.DataLoader(dataset, num_workers=workers, **options))


def main():
    """Measures and prints."""
    args = parse_args(__doc__, kind="large", processes=2, seconds=3.0)
    elements = stream(args.kind, args.processes)
    print_rate("datapoints", per_second(elements, args.seconds, length(args.kind), check))


if __name__ == "__main__":
    main()
