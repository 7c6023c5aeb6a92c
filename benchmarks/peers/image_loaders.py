"""Batches of augmented photographs from torchvision, albumentations or grain.

.venv-peer-images/bin/python benchmarks/peers/image_loaders.py --library grain --folder FOLDER

torchvision reads with PIL, as its `ImageFolder` does, or with its own decoder into tensors; both
and albumentations are run by torch's DataLoader. grain has no augmentors, so it gets the bare
calls of OpenCV.
"""

from pathlib import Path

import _images
import cv2
from _clock import parse_args, per_second, print_rate


def torchvision_steps(transforms, kind, *last):
    """The augmentors, of either generation of its transforms."""
    steps = [transforms.Resize(_images.SHORTEST), transforms.CenterCrop(_images.SIZE)]
    if kind == "training":
        steps = [
            transforms.RandomResizedCrop(_images.SIZE),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(_images.JITTER, _images.JITTER, _images.JITTER),
        ]
    return transforms.Compose([*steps, *last, transforms.Normalize(_images.MEAN, _images.STD)])


def torchvision_pil(kind):
    """A function from a path to a tensor, through PIL."""
    from PIL import Image
    from torchvision import transforms

    both = torchvision_steps(transforms, kind, transforms.ToTensor())

    def load(path):
        with open(path, "rb") as file:
            return both(Image.open(file).convert("RGB"))

    return load


def torchvision_tensors(kind):
    """A function from a path to a tensor, through the second generation of its transforms."""
    import torch
    from torchvision import io
    from torchvision.transforms import v2

    both = torchvision_steps(v2, kind, v2.ToDtype(torch.float32, scale=True))
    return lambda path: both(io.decode_image(io.read_file(path), io.ImageReadMode.RGB))


def albumentations(kind):
    """A function from a path to a tensor, through albumentations."""
    import albumentations as A
    from albumentations.pytorch import ToTensorV2

    steps = [A.SmallestMaxSize(_images.SHORTEST), A.CenterCrop(_images.SIZE, _images.SIZE)]
    if kind == "training":
        steps = [
            A.RandomResizedCrop((_images.SIZE, _images.SIZE)),
            A.HorizontalFlip(p=0.5),
            A.ColorJitter(_images.JITTER, _images.JITTER, _images.JITTER, hue=(0, 0), p=1.0),
        ]
    both = A.Compose([*steps, A.Normalize(_images.MEAN, _images.STD), ToTensorV2()])

    def load(path):
        image = cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        return both(image=image)["image"]

    return load


LOADERS = {
    "torchvision": torchvision_pil,
    "torchvision-tensors": torchvision_tensors,
    "albumentations": albumentations,
}


def by_data_loader(load, paths, processes):
    """Batches from torch's DataLoader, in random order."""
    import torch

    class Photographs(torch.utils.data.Dataset):
        """The photographs, over and over."""

        def __len__(self):
            return 10**9

        def __getitem__(self, index):
            return load(paths[index])

    def order():
        while True:
            yield from torch.randperm(len(paths)).tolist()

    return torch.utils.data.DataLoader(
        Photographs(),
        batch_size=_images.BATCH,
        sampler=order(),
        num_workers=processes,
        worker_init_fn=lambda _: cv2.setNumThreads(0),
    )


def by_grain(kind, paths, processes):
    """Batches from grain, in random order."""
    import grain

    found = grain.MapDataset.source(paths).shuffle(seed=0).repeat()
    if kind == "training":
        found = found.random_map(_images.bare_training, seed=0)
    else:
        found = found.map(lambda path: _images.bare_inference(path, None))
    # Its fastest settings on two cores; with one thread it makes 350 images/s in one process.
    found = found.batch(_images.BATCH).to_iter_dataset(grain.ReadOptions(num_threads=2))
    return found.mp_prefetch(grain.MultiprocessingOptions(processes, per_worker_buffer_size=2))


def main():
    """Measures and prints."""
    flags = {"library": "grain", "kind": "training", "folder": "."}
    args = parse_args(__doc__, **flags, processes=2, seconds=5.0)
    cv2.setNumThreads(0)
    paths = sorted(str(path) for path in Path(args.folder).glob("*.JPEG"))
    if args.library == "grain":
        batches = by_grain(args.kind, paths, args.processes)
    else:
        batches = by_data_loader(LOADERS[args.library](args.kind), paths, args.processes)
    print_rate(
        "images", per_second(batches, args.seconds, _images.BATCH, _images.check, _images.WARM_UP)
    )


if __name__ == "__main__":
    main()
