"""Well-known datasets as dataflows; their files are read where they lie, in their published format.

Each dataset has a folder below $TENSORPACK_DATASET. Nothing is downloaded unless a dataset is given
`download=True`.
"""

from .bsds500 import BSDS500
from .caltech101 import Caltech101Silhouettes
from .cifar import Cifar10, Cifar100, CifarBase
from .ilsvrc import ILSVRC12, ILSVRC12Files, ILSVRCMeta
from .mnist import FashionMnist, Mnist
from .places import Places365Standard
from .svhn import SVHNDigit
from .tiny_imagenet import TinyImageNet
from .visualqa import VisualQA

__all__ = [
    "BSDS500",
    "Caltech101Silhouettes",
    "Cifar10",
    "Cifar100",
    "CifarBase",
    "FashionMnist",
    "ILSVRC12",
    "ILSVRC12Files",
    "ILSVRCMeta",
    "Mnist",
    "Places365Standard",
    "SVHNDigit",
    "TinyImageNet",
    "VisualQA",
]
