"""Real scripts for TensorFlow 1 run, on TensorFlow 1.15 and on TensorFlow 2."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorpack.compat import is_tfv2
from tensorpack.tf1 import FOLDER
from tensorpack.utils.optional import missing
from tests.checks import ROOT
from tests.harness import Zygote
from tests.tf1.run_script import run_script

SCRIPTS = Path(__file__).parent / "scripts"

only_tf2 = pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 is left as it is")
needs_extra = pytest.mark.skipif(
    is_tfv2() and not all(map(importlib.util.find_spec, ["tf_keras", "tf_slim"])),
    reason="needs the extra tf1-scripts",
)


@pytest.fixture(scope="module")
def zygote():
    """The process whose copies run scripts, with TensorFlow as `tensorpack.tf1` gives it."""
    with Zygote(PYTHONPATH=os.pathsep.join([FOLDER, str(ROOT)])) as process:
        yield process


@pytest.mark.slow
def test_a_script_for_queues():
    done = run_script(SCRIPTS / "queues.py")
    assert done.returncode == 0
    assert "cpu_feature_guard" not in done.stdout and "xla/service" not in done.stdout


@pytest.mark.one_row
@needs_extra
@pytest.mark.slow
def test_a_script_for_slim():
    done = run_script(SCRIPTS / "slim_net.py")
    assert done.returncode == 0
    assert not is_tfv2() or "Please use `tf.keras" not in done.stdout


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, flags, code",
    [
        ("sessions", "", 0),
        ("flags", "--steps=7 --name run --fast rest", 7),  # the exit code is that of main
        *(
            pytest.param(name, "", 0, marks=needs_extra)
            for name in ("cells", "framework", "keras_model")
        ),
    ],
)
def test_a_script(name, flags, code, zygote, tmp_path):
    environ = {"TF_USE_LEGACY_KERAS": "1"}  # as the zygote's, when it had loaded TensorFlow
    child = zygote.run(tmp_path, SCRIPTS / f"{name}.py", *flags.split(), env=environ)
    assert child.end(timeout=180) == code, child.output


@pytest.mark.one_row
@pytest.mark.slow
def test_processes_have_the_same_interface():
    done = run_script(SCRIPTS / "processes.py", "spawn", "forkserver")
    assert done.returncode == 0


@needs_extra
@pytest.mark.slow
def test_a_trainer_of_tensorpack(tmp_path):
    done = run_script(SCRIPTS / "trainer.py", tmp_path / "log")
    assert done.returncode == 0 and "cost:" in done.stdout


NAMES = """
import importlib, sys
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as v1
from tensorflow import *
from tensorflow.python.ops import nn_ops
import tensorflow.train, tensorflow.python.ops.array_ops
from tensorflow.train import Saver

assert tf is sys.modules["tensorflow"] and tf.__name__ == "tensorflow"
assert tf.compat.v1 is v1 and tf.Session is v1.Session is Session and Saver is tf.train.Saver
assert tf.train is sys.modules["tensorflow.train"] and tensorflow.train is v1.train
assert tensorflow.python.ops.nn_ops is nn_ops
assert tf.compat.v2.function is tf.function and not hasattr(tf.compat.v2, "Session")
assert tf.__version__ == v1.__version__ and "site-packages/tensorflow/" in tf.__file__
assert importlib.util.find_spec("tensorflow.no_such_module") is None
assert not hasattr(tf, "estimator") and not hasattr(tf, "no_such_name")
assert {"Session", "train", "placeholder"} <= set(dir(tf))
assert (np.int, np.float, np.object, np.NaN != np.NaN) == (int, float, object, True)
assert type(np.asscalar(np.float32(2))) is float
"""


@only_tf2
@pytest.mark.slow
def test_names_are_those_of_version_1(tmp_path):
    (tmp_path / "names.py").write_text(NAMES)
    assert run_script(tmp_path / "names.py").returncode == 0


WITHOUT_EXTRA = """
import sys
sys.modules[sys.argv[1]] = None  # as if it were not installed
import tensorflow as tf

def error_of(statement):
    try:
        exec(statement)
    except ImportError as error:
        return str(error)

version = ".".join(tf.__version__.split(".")[:2])
line = {"tf_keras": f"--no-deps 'tf-keras=={version}.*'", "tf_slim": "tf-slim"}[sys.argv[1]]
for statement in sys.argv[2:]:
    error = error_of(statement)
    assert error and "pip install " + line in error, (statement, error)
"""
KERAS = [
    "tf.layers.dense(1, 2)",
    "tf.nn.rnn_cell.LSTMCell(3)",
    "tf.keras.layers",
    "from tensorflow.keras.layers import Dense",
    "import keras",
    "from keras.layers import Dense",
    "tf.contrib.slim.batch_norm",
]
SLIM = [
    "import tensorflow.contrib.slim",
    "from tensorflow.contrib import slim",
    "tf.contrib.slim",
]


@pytest.mark.one_row
@only_tf2
@pytest.mark.slow
@pytest.mark.parametrize(
    "package, statements",
    [
        ("tf_keras", KERAS),
        pytest.param("tf_slim", SLIM, marks=[needs_extra, pytest.mark.nightly]),
    ],
)
def test_a_missing_package_gives_its_install_line(package, statements, tmp_path):
    (tmp_path / "script.py").write_text(WITHOUT_EXTRA)
    assert run_script(tmp_path / "script.py", package, *statements).returncode == 0


def test_without_tensorflow_the_error_says_what_to_install(tmp_path):
    (tmp_path / "script.py").write_text("import tensorflow\n")
    # -S leaves site-packages out.
    command = [sys.executable, "-S", "-m", "tensorpack.tf1", str(tmp_path / "script.py")]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, cwd=str(ROOT))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {missing('tensorflow')}"
