"""Stands before TensorFlow on `sys.path` and puts the version 1 interface in its own place.

`python -m tensorpack.tf1` adds the folder above to `sys.path`. Processes that `multiprocessing`
starts take `sys.path` over, and with it this package.
"""

from tensorpack.tf1._interface import install

if __name__ == "tensorflow":
    install()
