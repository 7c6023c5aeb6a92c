"""Turns a missing optional dependency into an error at use, naming the package to install."""

import importlib
import sys
from types import ModuleType
from typing import Any, Optional

# As in pyproject.toml.
TENSORFLOW, TENSORFLOW_GPU = "'tensorflow>=2.16'", "'tensorflow[and-cuda]>=2.16'"
if sys.version_info < (3, 8):
    TENSORFLOW = "'tensorflow==1.15.5' 'numpy<1.19' 'protobuf<3.21'"
    TENSORFLOW_GPU = TENSORFLOW.replace("tensorflow", "tensorflow-gpu")
# Modules whose package has another name, or is needed in some version.
_PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "google_crc32c": "google-crc32c",
    "pynvml": "nvidia-ml-py",
    "sklearn": "scikit-learn",
    "tensorflow": f"{TENSORFLOW}, or for a GPU: {TENSORFLOW_GPU}",
    "zmq": "pyzmq",
}


def require(module: str, package: Optional[str] = None) -> ModuleType:
    """Imports and returns an optional module, such as "matplotlib.pyplot", where it is used.

    The error names the package for `pip install`, by default the known one of the module.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        raise missing(str(error.name), package) from error


def missing(module: str, package: Optional[str] = None) -> ModuleNotFoundError:
    """Returns the error of `require` about a module, or a part of one that is too old."""
    root, _, part = module.partition(".")
    lacks = f"the installed {root} lacks" if part else "is not installed"
    install = package or _PACKAGES.get(root, root)
    text = f"This needs {module}, which {lacks}: pip install {install}"
    return ModuleNotFoundError(text, name=module)


def msgpack_codec() -> Any:
    """Returns the classes of msgpack itself, also where `msgpack_numpy.patch()` has put others."""
    require("msgpack")
    try:
        return require("msgpack._cmsgpack")
    except ModuleNotFoundError:  # it was installed without a compiler
        return require("msgpack.fallback")


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
