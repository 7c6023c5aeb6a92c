"""Well-known datasets as dataflows; their files are read where they lie, in their published format.

Each dataset has a folder below $TENSORPACK_DATASET. Nothing is downloaded unless a dataset is given
`download=True`.
"""

from .cifar import Cifar10, Cifar100, CifarBase
from .mnist import FashionMnist, Mnist

__all__ = ["Cifar10", "Cifar100", "CifarBase", "FashionMnist", "Mnist"]
