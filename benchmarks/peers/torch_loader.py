"""Datapoints from two workers of torch's DataLoader, as tensors, which it sends in shared memory.

.venv-peer-torch/bin/python benchmarks/peers/torch_loader.py --size large
"""

import sys

import torch
from _stream import PROCESSES, count_per_second, make_array, parse_args


class Endless(torch.utils.data.IterableDataset):
    """The same array again and again."""

    def __init__(self, size):
        super().__init__()
        self._size = size

    def __iter__(self):
        tensor = torch.from_numpy(make_array(self._size))
        while True:
            yield tensor


def main():
    """Measures and prints."""
    args = parse_args(__doc__.splitlines()[0])
    # With a batch size, workers copy once, into shared memory; without one, twice.
    loader = torch.utils.data.DataLoader(Endless(args.size), batch_size=1, num_workers=PROCESSES)
    rate = count_per_second((batch[0] for batch in loader), args.seconds)
    sys.stdout.write(f"datapoints/s: {rate:.1f}\n")


if __name__ == "__main__":
    main()
