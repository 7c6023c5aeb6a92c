"""Turns a missing optional dependency into an error at use, naming the package to install."""

import importlib
from types import ModuleType
from typing import Optional

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
