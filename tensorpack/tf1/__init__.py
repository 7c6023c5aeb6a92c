"""The program `python -m tensorpack.tf1`, which runs scripts for TensorFlow 1; nothing imports it.

`__main__` runs the script. The package `tensorflow` in `FOLDER`, which comes before the installed
one on `sys.path`, calls `_interface.install` when it is imported; likewise `keras`. So TensorFlow
is loaded when the script asks for it, and processes that `multiprocessing` starts, which take over
`sys.path`, get the same interface. `ABSENT` comes last and stands for what is not installed.
"""

from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent / "_path")
ABSENT = str(Path(__file__).resolve().parent / "_absent")
