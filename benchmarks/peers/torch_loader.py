"""Datapoints from workers of torch's DataLoader, as tensors, which it sends in shared memory.

.venv-peer-torch/bin/python benchmarks/peers/torch_loader.py --kind large --processes 2
"""

import torch
from _clock import parse_args, per_second, print_rate
from _stream import BATCH, check, decode, each_of, endless, pictures


class Endless(torch.utils.data.IterableDataset):
    """The same datapoints again and again, as tensors."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def __iter__(self):
        tensors = {}
        for datapoint in endless(self._kind):
            if id(datapoint) not in tensors:
                tensors[id(datapoint)] = [torch.from_numpy(array) for array in datapoint]
            yield tensors[id(datapoint)]


class Pictures(torch.utils.data.Dataset):
    """Pictures to be decoded, over and over."""

    def __init__(self):
        self._jpegs = pictures()

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        return torch.from_numpy(decode(self._jpegs[index % len(self._jpegs)]))


def stream(args):
    """What the consumer looks at."""
    workers = {"num_workers": args.processes}
    if args.kind == "jpegs":
        # by its own sampler it would first make a list of 10**9 numbers
        order = (index for index in range(10**9))
        return torch.utils.data.DataLoader(Pictures(), batch_size=BATCH, sampler=order, **workers)
    if args.kind == "ragged":  # what cannot be put into one tensor goes as it is
        loader = torch.utils.data.DataLoader(Endless(args.kind), batch_size=None, **workers)
        return (picture for picture, _ in loader)
    # With a batch size, workers copy once, into shared memory; without one, twice.
    loader = torch.utils.data.DataLoader(Endless(args.kind), batch_size=1, **workers)
    return (batch[0][0] for batch in loader)


def main():
    """Measures and prints."""
    args = parse_args(__doc__, kind="large", processes=2, seconds=3.0)
    rate = per_second(stream(args), args.seconds, each_of(args.kind), check)
    print_rate("datapoints", rate)


if __name__ == "__main__":
    main()
