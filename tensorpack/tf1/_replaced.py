"""Names of TensorFlow 1 that are gone from TensorFlow 2, and what to use instead."""

_CELL = "a cell of tf.nn.rnn_cell with tf.nn.dynamic_rnn"
_COPY = (
    "there is no replacement; its source, to copy from, is in "
    "https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib"
)
_DATASETS = "tf.keras.datasets, such as tf.keras.datasets.mnist.load_data(),"
_FILES = "tf.train.load_checkpoint or tf.train.NewCheckpointReader"
_IMAGES = "tf.image, or OpenCV in a dataflow"
_TRAIN = "tensorpack's TrainConfig and launch_train_with_config, or tf.train.MonitoredSession"

# A name or the beginning of one -> what to use. The longest that fits counts.
_REPLACEMENTS = {
    "tf.contrib": "",
    "tf.contrib.cudnn_rnn": _CELL,
    "tf.contrib.data": "tf.data.experimental",
    "tf.contrib.distributions": "tf.distributions, or tensorflow_probability.distributions",
    "tf.contrib.eager": "the same name in tf or tf.compat.v2",
    "tf.contrib.estimator": _TRAIN,
    "tf.contrib.framework.nest": "tf.nest",
    "tf.contrib.image": _IMAGES,
    "tf.contrib.layers": "tf.layers, tf.nn, or for columns tf.feature_column",
    "tf.contrib.learn": _TRAIN,
    "tf.contrib.learn.datasets": _DATASETS,
    "tf.contrib.lookup": "tf.lookup",
    "tf.contrib.nccl": "tf.distribute",
    "tf.contrib.predictor": "tensorpack's OfflinePredictor, or tf.saved_model.load",
    "tf.contrib.rnn": _CELL,
    "tf.contrib.seq2seq": f"{_CELL}, or tf.while_loop",
    "tf.contrib.legacy_seq2seq": _CELL,
    "tf.contrib.staging": "tensorpack's StagingInput, or tf.data.Dataset.prefetch",
    "tf.contrib.stateless": "tf.random.stateless_normal and the like",
    "tf.contrib.summary": "tf.summary, or tf.compat.v2.summary",
    "tf.contrib.tensorboard": "the modules of the package tensorboard",
    "tf.contrib.training.HParams": "argparse.Namespace or types.SimpleNamespace",
    "tf.contrib.training": "tf.train, or tf.data",
    "tf.estimator": _TRAIN,
    "tf.examples": _DATASETS,
    "tf.python.estimator": _TRAIN,
    "tf.pywrap_tensorflow": _FILES,
}


def is_gone(name: str) -> bool:
    """Returns whether a name, such as "tf.contrib.seq2seq", is or lies in one that is gone."""
    return bool(_longest(name))


def advice(name: str) -> str:
    """Returns the message of an error about a name that TensorFlow 2 does not have."""
    prefix = _longest(name)
    if not prefix:
        return f"module 'tensorflow' has no attribute {name[3:]!r}"
    use = _REPLACEMENTS[prefix]
    return f"TensorFlow 2 has no {name}: " + (f"use {use} instead" if use else _COPY) + "."


def _longest(name: str) -> str:
    fits = [prefix for prefix in _REPLACEMENTS if name == prefix or name.startswith(prefix + ".")]
    return max(fits, key=len, default="")
