"""Checkpoints with TensorFlow's variables: save, find, restore, and read arrays.

A checkpoint is either TensorFlow's own, a pair of files `PREFIX.index` and `PREFIX.data-*`, or a
NumPy archive `NAME.npz`. Both hold named arrays. A damaged one raises `CheckpointCorrupt` and
nothing else: TensorFlow itself reports a file that ends too early as `OutOfRangeError`, which
elsewhere means the end of the data.
"""

import errno
import os
import tempfile
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean_file
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.atomic import open_atomic
from tensorpack.utils.checkpoints import store
from tensorpack.utils.checkpoints.files import (  # noqa: F401  (for those who import them here)
    END_OF_FILE,
    INDEX,
    MANIFEST,
    CheckpointCorrupt,
    names_with_prefix,
    verify,
)
from tensorpack.utils.checkpoints.find import (  # noqa: F401
    RestorePoint,
    find_restore_point,
    newest_valid,
    pointed_to,
    read_restore_point,
)
from tensorpack.utils.checkpoints.store import copy_checkpoint  # noqa: F401
from tensorpack.utils.checkpoints.variables import by_name, without_output
from tensorpack.utils.packing.npz import NAMED_ARRAYS, read_npz, write_npz

PathLike = Union[str, "os.PathLike[str]"]


class CheckpointStore(store.CheckpointStore):
    """Writes the checkpoints of a run, see `utils.checkpoints.CheckpointStore`."""

    def describe(self, prefix: str) -> Dict[str, Any]:
        try:
            variables = CheckpointReader(prefix).variables
        except CheckpointCorrupt as error:  # the disk has not kept what it was given
            reason = f"what was written cannot be read: {error.reason}"
            raise OSError(errno.EIO, reason) from error
        return {"tensorflow": tf.__version__, "variables": variables}


def restore_point_at(path: str, next_directory: Optional[str] = None) -> RestorePoint:
    """Returns the state at a path.

    Args:
      path: as in `get_checkpoint_path`; or a directory, for the newest whole state in it.
      next_directory: where the next state will be saved; by default beside this one.

    Raises:
      FileNotFoundError: there is none.
      CheckpointCorrupt: it is damaged.
      UnsupportedState: it was saved by another version of this library.
    """
    if not os.path.isdir(path):
        return read_restore_point(get_checkpoint_path(path), next_directory)
    point = find_restore_point(path, next_directory)
    if point is None:
        raise FileNotFoundError(f"There is no checkpoint in {path}: nothing can be resumed.")
    return point


@accepts_old_keywords(model_path="path")
def get_checkpoint_path(path: PathLike) -> str:
    """Returns the prefix of the checkpoint at a path.

    Args:
      path: a prefix such as `train_log/run/model-5000`, one of its files, such as its `.index`, the
        `checkpoint` file which names the latest one, or the directory that it is in.

    Raises:
      FileNotFoundError: there is no checkpoint.
      ValueError: it is a SavedModel or a file of Keras.
      CheckpointCorrupt: the `checkpoint` file names no checkpoint beside it.
    """
    path = prefix = os.fsdecode(path)
    if os.path.isfile(os.path.join(prefix, "saved_model.pb")):
        raise ValueError(f"{path} is a SavedModel: its weights are {prefix}/variables/variables.")
    if os.path.isdir(prefix):
        prefix = os.path.join(prefix, "checkpoint")
    if os.path.basename(prefix) == "checkpoint" and tf.io.gfile.exists(os.fsencode(prefix)):
        listed = pointed_to(os.path.dirname(prefix) or ".")
        if not listed:
            raise CheckpointCorrupt(prefix, "it names no checkpoint beside it")
        prefix = listed[-1]
    elif not tf.io.gfile.exists(os.fsencode(prefix + INDEX)):
        prefix = END_OF_FILE.sub("", prefix)
    # Until 2016 a checkpoint was one file, named as the prefix.
    if not any(tf.io.gfile.exists(os.fsencode(prefix + end)) for end in (INDEX, "")):
        raise FileNotFoundError(
            f"There is no checkpoint {prefix!r}.{did_you_mean_file(prefix, '.index')} Give a path "
            "such as train_log/run/model-5000 (without .index), or train_log/run/checkpoint for "
            "the latest one there."
        )
    if prefix.endswith((".h5", ".hdf5", ".keras")):
        raise ValueError(
            f"{path} is a file of Keras. Load it with Keras, and give the arrays as a dictionary, "
            "by the names of the variables in this graph: SmartInit({'conv0/W': array, ...})."
        )
    if prefix != path:
        logger.info(f"{path} means the checkpoint {prefix}.")
    return prefix


def is_pattern(path: PathLike) -> bool:
    """Returns whether TensorFlow may take a path for a pattern, which that path does not match."""
    return any(character in os.fsdecode(path) for character in "[\\")


class CheckpointReader:
    """Reads single arrays of one TensorFlow checkpoint.

    Args:
      path: as in `get_checkpoint_path`.

    Raises:
      CheckpointCorrupt: its index cannot be read.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = get_checkpoint_path(path)
        self._reader: Any = None
        with self._open() as reader:
            shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        # TensorFlow 2's own checkpoints of objects describe themselves in such an entry.
        self.names = sorted(shapes.keys() - {"_CHECKPOINTABLE_OBJECT_GRAPH"})
        #: The dtype and the shape of each variable, by name.
        self.variables: Dict[str, Dict[str, Any]] = {
            name: {"dtype": types[name].name, "shape": list(shapes[name])} for name in self.names
        }

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a variable.

        Raises:
          CheckpointCorrupt: its bytes are missing or wrong.
        """
        if name not in self.names:
            raise KeyError(f"The checkpoint {self.path} has no variable {name!r}.")
        with self._open() as reader:
            return reader.get_tensor(name)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Gives TensorFlow's reader of a checkpoint, and raises its errors as one."""
        try:
            if not is_pattern(self.path):
                if self._reader is None:
                    self._reader = tf.train.NewCheckpointReader(os.fsencode(self.path))
                yield self._reader
                return
            # TensorFlow reads it through links whose names are no pattern.
            with tempfile.TemporaryDirectory(prefix="tensorpack-") as folder:
                if is_pattern(folder):
                    raise OSError(errno.EINVAL, "Set TMPDIR to a path without [ or \\", folder)
                link = os.path.join(folder, "model")
                for path in names_with_prefix(self.path):
                    os.symlink(os.path.abspath(path), link + path[len(self.path) :])
                yield tf.train.NewCheckpointReader(link)
        except (tf.errors.PermissionDeniedError, tf.errors.ResourceExhaustedError):
            raise
        except (tf.errors.OpError, LookupError, RuntimeError, ValueError) as error:
            # Current TensorFlows raise IndexError for what was OutOfRangeError.
            raise CheckpointCorrupt(self.path, str(error)) from error


@accepts_old_keywords(model_path="path")
def load_checkpoint_vars(path: PathLike) -> Dict[str, np.ndarray]:
    """Returns all variables of a checkpoint, by name without `:0`.

    Args:
      path: of an `.npz` archive, of an `.npy` file with a dictionary of arrays, or a path as in
        `get_checkpoint_path`.

    Raises:
      FileNotFoundError: there is no checkpoint.
      CheckpointCorrupt: it cannot be read.
    """
    path = os.fsdecode(path)
    if not path.endswith(NAMED_ARRAYS):
        reader = CheckpointReader(path)
        return {name: reader.read(name) for name in reader.names}
    try:
        return by_name(read_npz(path))
    except ValueError as error:
        raise CheckpointCorrupt(path, str(error)) from error


def save_checkpoint_vars(dic: Dict[str, Any], path: PathLike) -> None:
    """Writes named arrays as a checkpoint.

    Args:
      dic: name of the variable, with or without `:0`, to its value.
      path: `NAME.npz` for an archive, anything else is the prefix of a TensorFlow checkpoint.
    """
    target = os.fsdecode(path)
    arrays = {name: np.asarray(value) for name, value in by_name(dic).items()}
    for name, array in arrays.items():
        is_text = all(isinstance(item, (bytes, str)) for item in array.flat)  # asks one number
        if array.dtype == object and (target.endswith(".npz") or not is_text):
            raise TypeError(f"{name} cannot be saved: it is an array of objects, not of one type.")
    if target.endswith(".npy"):
        raise ValueError(f"{target}: several arrays in an .npy file are a pickle. Write .npz.")
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if target.endswith(".npz"):
        with open_atomic(target) as file:
            write_npz(file, arrays)
    else:
        if os.path.lexists(target + MANIFEST):  # it described the files that are being replaced
            os.remove(target + MANIFEST)
        _save_bundle(arrays, target)


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


def names_without_output(names: Optional[Iterable[str]]) -> List[str]:
    """Returns names of variables without `:0`."""
    return [without_output(name) for name in names or ()]
