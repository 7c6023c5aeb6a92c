"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .cifar import Cifar10 as Cifar10
from .cifar import Cifar100 as Cifar100
from .cifar import CifarBase as CifarBase
from .folders import Places365Standard as Places365Standard
from .folders import TinyImageNet as TinyImageNet
from .ilsvrc import ILSVRC12 as ILSVRC12
from .ilsvrc import ILSVRC12Files as ILSVRC12Files
from .ilsvrc import ILSVRCMeta as ILSVRCMeta
from .matlab import BSDS500 as BSDS500
from .matlab import Caltech101Silhouettes as Caltech101Silhouettes
from .matlab import SVHNDigit as SVHNDigit
from .mnist import FashionMnist as FashionMnist
from .mnist import Mnist as Mnist
from .visualqa import VisualQA as VisualQA

__all__: List[str]
