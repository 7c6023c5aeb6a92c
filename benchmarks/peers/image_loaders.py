"""Batches of augmented photographs from torchvision, albumentations or grain.

.venv-peer-images/bin/python benchmarks/peers/image_loaders.py --library grain --folder FOLDER

torchvision decodes into tensors, for its second generation of transforms; it and albumentations
are run by torch's DataLoader. grain has no augmentors, so it gets the bare calls of OpenCV.
"""

from pathlib import Path

import _images
import cv2
from _clock import parse_args, per_second, print_rate


def torchvision():
    """A function from a path to a tensor."""
    import torch
    from torchvision import io
    from torchvision.transforms import v2

    augment = v2.Compose(
        [
            v2.RandomResizedCrop(_images.SIZE),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(_images.JITTER, _images.JITTER, _images.JITTER),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(_images.MEAN, _images.STD),
        ]
    )
    return lambda path: augment(io.decode_image(io.read_file(path), io.ImageReadMode.RGB))


def albumentations():
    """A function from a path to a tensor."""
    import albumentations as A
    from albumentations.pytorch import ToTensorV2

    augment = A.Compose(
        [
            A.RandomResizedCrop((_images.SIZE, _images.SIZE)),
            A.HorizontalFlip(p=0.5),
            A.ColorJitter(_images.JITTER, _images.JITTER, _images.JITTER, hue=(0, 0), p=1.0),
            A.Normalize(_images.MEAN, _images.STD),
            ToTensorV2(),
        ]
    )

    def load(path):
        image = cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        return augment(image=image)["image"]

    return load


def by_data_loader(load, paths, processes):
    """Batches from torch's DataLoader, in random order."""
    import torch

    class Photographs(torch.utils.data.IterableDataset):
        """The photographs, over and over."""

        def __iter__(self):
            while True:
                yield from (load(paths[index]) for index in torch.randperm(len(paths)))

    return torch.utils.data.DataLoader(
        Photographs(),
        batch_size=_images.BATCH,
        num_workers=processes,
        worker_init_fn=lambda _: cv2.setNumThreads(0),
    )


def by_grain(paths, processes):
    """Batches from grain, in random order."""
    import grain

    images = grain.MapDataset.source(paths).shuffle(seed=0).repeat()
    batches = images.random_map(_images.bare_training, seed=0).batch(_images.BATCH)
    # Its fastest settings on two cores; with one thread it makes 350 images/s in one process.
    batches = batches.to_iter_dataset(grain.ReadOptions(num_threads=2))
    return batches.mp_prefetch(grain.MultiprocessingOptions(processes, per_worker_buffer_size=2))


def main():
    """Measures and prints."""
    args = parse_args(__doc__, library="grain", folder=".", processes=2, seconds=5.0)
    cv2.setNumThreads(0)
    paths = sorted(str(path) for path in Path(args.folder).glob("*.JPEG"))
    if args.library == "grain":
        batches = by_grain(paths, args.processes)
    else:
        load = {"torchvision": torchvision, "albumentations": albumentations}[args.library]()
        batches = by_data_loader(load, paths, args.processes)
    print_rate(
        "images", per_second(batches, args.seconds, _images.BATCH, _images.check, _images.WARM_UP)
    )


if __name__ == "__main__":
    main()
