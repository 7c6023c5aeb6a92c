"""Turns a missing optional dependency into an error at use, naming the package to install."""

import importlib
from types import ModuleType
from typing import Any, Optional

# Modules whose package has another name.
_PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "google_crc32c": "google-crc32c",
    "pynvml": "nvidia-ml-py",
    "sklearn": "scikit-learn",
    "zmq": "pyzmq",
}


def require(module: str, package: Optional[str] = None) -> ModuleType:
    """Imports and returns an optional module, such as "matplotlib.pyplot", where it is used.

    The error names the package for `pip install`, by default the known one of the module.
    """
    root = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (root, module):
            raise
        install = package or _PACKAGES.get(root, root)
        raise ImportError(
            f"This needs {module}, which is not installed: pip install {install}", name=error.name
        ) from error


class Lazy:
    """A module that is required when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as `__wrapped__`, which tools ask every object for
            raise AttributeError(name)
        module = require(self.__name__)
        self.__dict__ = vars(module)  # from now on, without this method
        return getattr(module, name)


cv2: Any = Lazy("cv2")
