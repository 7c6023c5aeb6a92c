"""Checkpoints as files: where one is, what is in it, and writing one.

A checkpoint is either TensorFlow's own, a pair of files `PREFIX.index` and `PREFIX.data-*`, or a
NumPy archive `NAME.npz`. Either holds named arrays. One that is damaged raises
`CheckpointCorrupt` and nothing else: TensorFlow itself reports a file that ends too early as
`OutOfRangeError`, which elsewhere means the end of the data.
"""

import os
import zipfile
import zlib
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

__all__ = [
    "CheckpointCorrupt",
    "CheckpointReader",
    "MANIFEST",
    "get_all_checkpoints",
    "get_checkpoint_path",
    "load_checkpoint_vars",
    "names_without_output",
    "save_checkpoint_vars",
]

MANIFEST = ".manifest.json"  # behind the prefix of a checkpoint that has one, see `manifest`
PathLike = Union[str, "os.PathLike[str]"]


class CheckpointCorrupt(RuntimeError):
    """A checkpoint is there, but cannot be read as a whole.

    Attributes:
      path: of the checkpoint.
      reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"The checkpoint {self.path} is damaged ({self.reason}). Load an earlier one."


def get_checkpoint_path(path: PathLike) -> str:
    """Returns the prefix of the checkpoint that a path means.

    Args:
      path: a prefix such as `train_log/run/model-5000`, its `.index` or `.data-00000-of-00001`
        file, the `checkpoint` file which names the latest one, or the directory that it is in.

    Raises:
      FileNotFoundError: there is no checkpoint.
      CheckpointCorrupt: the `checkpoint` file does not say which is the latest.
    """
    given = os.fspath(path)
    prefix = given
    if os.path.isdir(prefix):
        prefix = os.path.join(prefix, "checkpoint")
    if os.path.basename(prefix) == "checkpoint" and tf.io.gfile.exists(prefix):
        prefix = _latest(prefix)
    elif prefix.endswith(".index"):
        prefix = prefix[: -len(".index")]
    elif os.path.basename(prefix).rpartition(".")[2].startswith("data-"):
        prefix = prefix.rpartition(".")[0]
    # Until 2016 a checkpoint was one file, named as the prefix.
    if not (tf.io.gfile.exists(prefix + ".index") or tf.io.gfile.exists(prefix)):
        raise FileNotFoundError(
            f"There is no checkpoint {prefix!r}. Give a path such as train_log/run/model-5000 "
            "(without .index), or train_log/run/checkpoint for the latest one there."
        )
    if prefix != given:
        logger.info(f"{given} means the checkpoint {prefix}.")
    return prefix


def _latest(pointer: str) -> str:
    directory, name = os.path.split(pointer)
    try:
        state = tf.train.get_checkpoint_state(directory or ".", name)
    except ValueError as error:
        raise CheckpointCorrupt(pointer, "it does not name a checkpoint") from error
    if state is None or not state.model_checkpoint_path:
        raise CheckpointCorrupt(pointer, "it does not name a checkpoint")
    return state.model_checkpoint_path


def get_all_checkpoints(dir: PathLike, prefix: str = "model") -> List[Tuple[str, int]]:
    """Returns the checkpoints `{prefix}-{step}` in a directory, as (path, step), by step."""
    found = []
    for name in os.listdir(dir):
        stem, dot, suffix = name.rpartition(".")
        head, dash, step = stem.rpartition("-")
        if suffix == "index" and head == prefix and step.isdigit():
            found.append((os.path.join(os.fspath(dir), stem), int(step)))
    return sorted(found, key=lambda each: each[1])


class CheckpointReader:
    """Reads single arrays of one TensorFlow checkpoint.

    Args:
      path: whatever `get_checkpoint_path` takes.

    Raises:
      FileNotFoundError: there is no checkpoint.
      CheckpointCorrupt: its index cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = get_checkpoint_path(path)
        self._reader = self._try(tf.train.NewCheckpointReader, self.path)
        shapes = self._try(self._reader.get_variable_to_shape_map)
        # TensorFlow 2's own checkpoints of objects describe themselves in such an entry.
        self.names = sorted(name for name in shapes if name != "_CHECKPOINTABLE_OBJECT_GRAPH")

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a variable.

        Raises:
          KeyError: there is none of that name.
          CheckpointCorrupt: its bytes are missing or wrong.
        """
        if name not in self.names:
            raise KeyError(f"The checkpoint {self.path} has no variable {name!r}.")
        return self._try(self._reader.get_tensor, name)

    def _try(self, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except (tf.errors.PermissionDeniedError, tf.errors.ResourceExhaustedError):
            raise
        except (tf.errors.OpError, LookupError, RuntimeError, ValueError) as error:
            # Current TensorFlows raise IndexError for what was OutOfRangeError.
            raise CheckpointCorrupt(self.path, str(error)) from error


def load_checkpoint_vars(path: PathLike) -> Dict[str, np.ndarray]:
    """Returns all variables of a checkpoint, by name without `:0`.

    Args:
      path: of an `.npz` archive, or whatever `get_checkpoint_path` takes.

    Raises:
      FileNotFoundError: there is no checkpoint.
      CheckpointCorrupt: it cannot be read.
    """
    if os.fspath(path).endswith(".npz"):
        return _load_npz(os.fspath(path))
    reader = CheckpointReader(path)
    return {name: reader.read(name) for name in reader.names}


def _load_npz(path: str) -> Dict[str, np.ndarray]:
    try:
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not hasattr(archive, "files"):
                raise ValueError("it holds one array without a name")
            return {_without_output(name): archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise CheckpointCorrupt(path, str(error)) from error


def save_checkpoint_vars(dic: Dict[str, Any], path: PathLike) -> None:
    """Writes named arrays as a checkpoint.

    Args:
      dic: name of the variable, with or without `:0`, to its value.
      path: `NAME.npz` for an archive, anything else is the prefix of a TensorFlow checkpoint.

    Raises:
      TypeError: a value is no array of numbers, booleans or strings.
    """
    arrays = {_without_output(name): np.asarray(value) for name, value in dic.items()}
    for name, array in arrays.items():
        if array.dtype == object:
            raise TypeError(f"{name} cannot be saved: it is no array of one type, but objects.")
    target = os.fspath(path)
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if target.endswith(".npz"):
        _save_npz(arrays, target)
    else:
        if os.path.exists(target + MANIFEST):  # it described what is being replaced
            os.remove(target + MANIFEST)
        _save_bundle(arrays, target)


def _save_npz(arrays: Dict[str, np.ndarray], path: str) -> None:
    unfinished = f"{path}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


def _save_bundle(arrays: Dict[str, np.ndarray], prefix: str) -> None:
    with tf.Graph().as_default():
        inputs = [tf.placeholder(array.dtype, array.shape) for array in arrays.values()]
        save = tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=list(arrays),
            shape_and_slices=[""] * len(arrays),
            tensors=inputs,
        )
        with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
            session.run(save, dict(zip(inputs, arrays.values())))


def _without_output(name: str) -> str:
    return name[:-2] if name.endswith(":0") else name


def names_without_output(names: Optional[Iterable[str]]) -> List[str]:
    """Returns names of variables without `:0`."""
    return [_without_output(name) for name in names or ()]
