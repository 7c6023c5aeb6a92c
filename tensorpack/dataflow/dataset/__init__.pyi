"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .bsds500 import BSDS500 as BSDS500
from .caltech101 import Caltech101Silhouettes as Caltech101Silhouettes
from .cifar import Cifar10 as Cifar10
from .cifar import Cifar100 as Cifar100
from .cifar import CifarBase as CifarBase
from .ilsvrc import ILSVRC12 as ILSVRC12
from .ilsvrc import ILSVRC12Files as ILSVRC12Files
from .ilsvrc import ILSVRCMeta as ILSVRCMeta
from .mnist import FashionMnist as FashionMnist
from .mnist import Mnist as Mnist
from .places import Places365Standard as Places365Standard
from .svhn import SVHNDigit as SVHNDigit
from .tiny_imagenet import TinyImageNet as TinyImageNet
from .visualqa import VisualQA as VisualQA

__all__: List[str]
