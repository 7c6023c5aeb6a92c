"""Compares an export with its model, in a process that loads nothing of this package."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf

from .fed_input import FedInput
from .inference import Inference

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_run_exported.py")
_SCRIPT_SECONDS = 300  # to load TensorFlow and the model, and to run it once
_TOLERANCE = 1e-3  # of the largest number of an output: TFLite has kernels of its own


def compare_export(model: Inference, check_inputs: Sequence[Any], how: Dict[str, Any]) -> None:
    """Loads an export in a new Python process, and compares what it computes with the model.

    Args:
      how: `kind`, `path` and so on, see `_run_exported.py`; `inputs` and `outputs` are by default
        the names of the tensors.
    """
    names = {
        "inputs": [each.name for each in model.inputs],
        "outputs": [each.name for each in model.outputs],
    }
    arrays = [
        np.asarray(value)  # strings of NumPy, which an archive can hold
        if each.dtype == tf.string
        else FedInput(repr(each.name), each.dtype, each.shape).feed(value, "check_inputs")
        for value, each in zip(check_inputs, model.inputs)
    ]
    expected = model.sess.run(model.outputs, dict(zip(model.inputs, arrays)))
    computed = _run_exported(arrays, {**names, **how})
    for tensor, ours, theirs in zip(model.outputs, expected, computed):
        if not _are_close(np.asarray(ours), theirs):
            raise RuntimeError(
                f"The export computes another {tensor.name} than the model: {_extract(theirs)}, "
                f"not {_extract(ours)}. Nothing is written."
            )


def _run_exported(arrays: Sequence[np.ndarray], how: Dict[str, Any]) -> List[np.ndarray]:
    """Returns what an export computes in a process of its own, on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        fed, computed = os.path.join(folder, "fed.npz"), os.path.join(folder, "computed.npz")
        np.savez(fed, *arrays)
        spec = json.dumps({**how, "fed": fed, "computed": computed})
        with open(_SCRIPT, "rb") as script:
            done = subprocess.run(
                [sys.executable, "-", spec],
                stdin=script,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
                timeout=_SCRIPT_SECONDS,
            )
        if done.returncode:
            said = done.stdout.decode(errors="replace")[-2000:]
            raise RuntimeError(f"The export cannot be loaded. Nothing is written.\n{said}")
        with np.load(computed) as archive:
            return [archive[f"arr_{index}"] for index in range(len(archive.files))]


def _are_close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if ours.shape != theirs.shape:
        return False
    if not np.issubdtype(ours.dtype, np.inexact):
        return np.array_equal(ours.astype("S") if ours.dtype == object else ours, theirs)
    largest = float(np.max(np.abs(ours[np.isfinite(ours)]), initial=0))
    return np.allclose(ours, theirs, rtol=0, atol=_TOLERANCE * largest, equal_nan=True)


def _extract(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=8, edgeitems=2).replace("\n", "")
