import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.sessinit import InitFrom
from tensorpack.tfutils.varreplace import freeze_variables

SAVED = {
    "fc/W": np.full([2, 3], 7, np.float32),
    "fc/b": np.full([4], 7, np.float32),
    "bn/mean": np.full([3], 7, np.float32),
    "fc/W/Adam": np.full([2, 3], 7, np.float32),
    "learning_rate": np.float32(7),
    "global_step": np.int64(7),
    "elsewhere": np.float32(7),
}


@pytest.fixture(params=["model.npz", "model-7"])
def path(request, tmp_path):
    target = str(tmp_path / request.param)
    save_checkpoint_vars(SAVED, target)
    return target


def build():
    def zeros(name, shape, **options):
        tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **options)

    zeros("fc/W", [2, 3])
    zeros("fc/b", [3])
    zeros("fc/new", [])
    zeros("fc/W/Adam", [2, 3], trainable=False)
    zeros("learning_rate", [], trainable=False)
    model_keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
    zeros("bn/mean", [3], trainable=False, collections=model_keys)
    get_global_step_var()


def loaded(init):
    """Names of the variables that have the values of the file after `init`."""
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = len(tf.get_default_graph().get_operations())
        init.init(sess)
        assert len(tf.get_default_graph().get_operations()) == before
        values = {each.op.name: sess.run(each) for each in tf.global_variables()}
    assert all(np.unique(value).tolist() in ([0], [7]) for value in values.values())
    return sorted(name for name, value in values.items() if np.all(value == 7))


def test_weights_are_loaded_and_nothing_else(path):
    build()
    assert loaded(InitFrom(path)) == ["bn/mean", "fc/W"]


def test_more_or_fewer_on_request(path):
    build()
    init = InitFrom(path, also=["learning_rate:0"], ignore=["fc/W"])
    assert loaded(init) == ["bn/mean", "learning_rate"]


@pytest.mark.fault_row(23)
def test_frozen_weights_are_loaded(path):
    with freeze_variables(skip_collection=True):
        tf.get_variable("fc/W", [2, 3], initializer=tf.zeros_initializer())
    assert loaded(InitFrom(path)) == ["fc/W"]


def test_the_table_says_what_and_why(path, capsys):
    build()
    loaded(InitFrom(path, ignore=["bn/mean"]))
    lines = capsys.readouterr().out.splitlines()
    table = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if "  " in line}
    assert table["fc/W"] == "2 x 3 loaded"
    assert table["fc/b"] == "3 kept: [4] in the file"
    assert table["fc/new"] == "scalar kept: not in the file"
    assert table["fc/W/Adam"] == "2 x 3 kept: not a weight"
    assert table["global_step"] == "scalar kept: not a weight"
    assert table["bn/mean"] == "3 kept: ignored"
    assert table["elsewhere"] == "scalar only in the file"


def test_the_file_of_another_model_is_an_error(path):
    tf.get_variable("other", [])
    with tf.Session() as sess, pytest.raises(ValueError, match="No weight of this model is in"):
        InitFrom(path).init(sess)


def test_an_unknown_name_is_an_error(path):
    build()
    with tf.Session() as sess, pytest.raises(ValueError, match="has no variable fc/V"):
        InitFrom(path, also=["fc/V"]).init(sess)
