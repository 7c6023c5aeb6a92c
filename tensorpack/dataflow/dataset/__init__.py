"""Well-known datasets as dataflows; their files are read where they lie, in their published format.

Each takes the name of a part, such as "train"; `dir` or `data_dir`, the folder of its files, by
default one below $TENSORPACK_DATASET; `shuffle`, whether each pass has its own order, or None for
"train" only; and `download`, whether to download missing files. Nothing is downloaded otherwise.
A module is loaded when one of its names is first used.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "cifar": "Cifar10 Cifar100 CifarBase",
    "folders": "Places365Standard TinyImageNet",
    "ilsvrc": "ILSVRC12 ILSVRC12Files ILSVRCMeta",
    "matlab": "BSDS500 Caltech101Silhouettes SVHNDigit",
    "mnist": "FashionMnist Mnist",
    "visualqa": "VisualQA",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
