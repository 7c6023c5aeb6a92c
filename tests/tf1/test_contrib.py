"""`tf.contrib` on TensorFlow 2: what is gone raises an error that names a replacement."""

import json
import re

import pytest

from tensorpack.compat import is_tfv2
from tensorpack.tf1._contrib import _package
from tensorpack.tf1._replaced import _REPLACEMENTS
from tests.tf1.run_script import run_script

# Statements -> the type of their error, and words of its message.
GONE = {
    "tf.contrib.seq2seq": ("AttributeError", "tf.contrib.seq2seq: use a cell of tf.nn.rnn_cell"),
    "from tensorflow.contrib.seq2seq import Helper": ("ModuleNotFoundError", "tf.while_loop"),
    "tf.contrib.training.HParams(a=1)": ("AttributeError", "use argparse.Namespace or"),
    "tf.contrib.learn.Estimator": ("AttributeError", "no tf.contrib.learn: use tensorpack's"),
    "from tensorflow.contrib.layers import real_valued_column": ("ModuleNotFoundError", "feature"),
    "from tensorflow.contrib.layers.python.layers import no_such": ("ModuleNotFoundError", "use"),
    "tf.contrib.ffmpeg": ("AttributeError", "no tf.contrib.ffmpeg: there is no replacement"),
    "tf.estimator.Estimator": ("AttributeError", "TrainConfig and launch_train_with_config"),
    "import tensorflow.estimator": ("ModuleNotFoundError", "TrainConfig"),
    "from tensorflow.examples.tutorials.mnist import input_data": (
        "ModuleNotFoundError",
        "use tf.keras.datasets, such as",
    ),
    "from tensorflow.no_such import a": ("ModuleNotFoundError", "No module named 'tensorflow.no_"),
    "tf.no_such": ("AttributeError", "module 'tensorflow' has no attribute 'no_such'"),
}
ADVISED = sorted(set(re.findall(r"\btf(?:\.\w+)+", " ".join(_REPLACEMENTS.values()))))
PROBE = """
import json, sys
import tensorflow as tf

errors = {}
for statement in json.loads(sys.argv[1]):
    try:
        exec(statement)
    except Exception as error:
        errors[statement] = [type(error).__name__, str(error)]
with open(sys.argv[2], "w") as file:
    json.dump(errors, file)
"""


@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has all of it")
@pytest.mark.slow
def test_what_is_gone_raises_an_error_that_names_a_replacement(tmp_path):
    pytest.importorskip("tf_slim")
    script, results = tmp_path / "probe.py", tmp_path / "errors.json"
    script.write_text(PROBE)
    assert run_script(script, json.dumps([*GONE, *ADVISED]), results).returncode == 0
    errors = json.loads(results.read_text())
    assert errors.keys() == GONE.keys()
    for statement, (kind, words) in GONE.items():
        assert errors.get(statement, ["none", ""])[0] == kind, statement
        assert words in errors[statement][1], statement


@pytest.mark.parametrize(
    "module, package",
    [
        ("tensorflow.contrib", ""),
        ("tensorflow.contrib.layers.python.layers.utils", "layers.utils"),
        ("tensorflow.contrib.slim.python.slim.nets.vgg", "slim.nets.vgg"),
    ],
)
def test_private_modules_lie_in_the_public_package(module, package):
    assert _package(module) == package
