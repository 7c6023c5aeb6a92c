"""Tests of session initialisers: what is loaded, what is warned of, what is refused."""

import os
import subprocess

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import SessionUpdate, dump_chkpt_vars, get_checkpoint_path
from tensorpack.tfutils.checkpoint import CheckpointCorrupt, save_checkpoint_vars
from tensorpack.tfutils.sessinit import (
    ChainInit,
    DictRestore,
    JustCurrentSession,
    ParamRestore,
    SaverRestore,
    SaverRestoreRelaxed,
    SessionInit,
    SmartInit,
    TryResumeTraining,
    get_model_loader,
)
from tensorpack.utils import logger


@pytest.fixture
def prefix(tmp_path):
    """A checkpoint of a small trained model."""
    values = {
        "W": np.float32([1, 2]),
        "global_step": np.int64(7),
        "W/Adam": np.float32([9, 9]),
        "EMA/cost": np.float32([9, 9]),
        "old/b": np.float32(3),
    }
    save_checkpoint_vars(values, tmp_path / "model")
    return str(tmp_path / "model")


def test_restore_loads_what_both_have_and_warns_of_the_rest(prefix, session, log_lines):
    w = tf.get_variable("W", [2])
    new = tf.get_variable("new", initializer=4.0)
    tf.get_variable("new/Momentum", [])
    sess = session()
    SaverRestore(prefix).init(sess)
    assert sess.run(w).tolist() == [1, 2]
    assert sess.run(new) == 4
    assert log_lines == [
        ("info", f"Restoring checkpoint from {prefix} ..."),
        ("warn", "The following variables are in the graph, but not found in the checkpoint: new"),
        (
            "warn",
            "The following variables are in the checkpoint, but not found in the graph: "
            "global_step, old/b",
        ),
    ]


def test_restore_works_from_another_default_graph_on_a_finalised_one(prefix, session):
    w = tf.get_variable("W", [2])
    sess = session()
    tf.get_default_graph().finalize()
    with tf.Graph().as_default():
        SaverRestore(prefix).init(sess)
    assert sess.run(w).tolist() == [1, 2]


def test_restore_into_a_scope_and_without_what_is_ignored(prefix, session, log_lines):
    scoped = tf.get_variable("sub/W", [2])
    outside = tf.get_variable("W", initializer=[0.0, 0.0])
    step = tf.get_variable("sub/global_step", initializer=np.int64(0))
    sess = session()
    SaverRestore(prefix, prefix="sub", ignore=["sub/global_step:0"]).init(sess)
    assert sess.run(scoped).tolist() == [1, 2]
    assert sess.run(outside).tolist() == [0, 0]
    assert sess.run(step) == 0
    assert [text.rpartition(": ")[2] for level, text in log_lines if level == "warn"] == [
        "W",
        "old/b",
    ]


@pytest.mark.parametrize("name", ["nothing", "nothing.index", "nothing.npz"])
def test_missing_file_is_an_error_before_any_graph_is_built(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="nothing"):
        get_model_loader(str(tmp_path / name))


def test_shape_mismatch_names_the_variable_and_both_shapes(prefix, session):
    w = tf.get_variable("W", initializer=[[0.0, 0.0]])
    sess = session()
    with pytest.raises(ValueError, match=r"W has the shape \[1, 2\], the value for it \[2\]"):
        SaverRestore(prefix).init(sess)
    assert sess.run(w).tolist() == [[0, 0]]
    SaverRestoreRelaxed(prefix).init(sess)
    assert sess.run(w).tolist() == [[1, 2]]


def test_truncated_checkpoint_is_corrupt_and_sets_nothing(prefix, session):
    variables = [tf.get_variable("W", initializer=[0.0, 0.0]), tf.get_variable("old/b", [])]
    sess = session()
    before = [value.tolist() for value in sess.run(variables)]
    data = prefix + ".data-00000-of-00001"
    os.truncate(data, os.path.getsize(data) - 1)
    with pytest.raises(CheckpointCorrupt):
        SaverRestore(prefix).init(sess)
    assert [value.tolist() for value in sess.run(variables)] == before


def test_dict_restore_loads_and_warns(session, log_lines):
    w, b = tf.get_variable("W", [2]), tf.get_variable("b", initializer=1.0)
    sess = session()
    DictRestore({"W:0": [1.0, 2.0], "unknown": 3.0}).init(sess)
    assert sess.run(w).tolist() == [1, 2]
    assert sess.run(b) == 1
    assert log_lines == [
        ("info", "Params to restore: W"),
        ("warn", "The following variables are in the graph, but not found in the dict: b"),
        ("warn", "The following variables are in the dict, but not found in the graph: unknown"),
        ("info", "Restoring from dict ..."),
    ]


def test_dict_restore_refuses_or_ignores_a_wrong_shape_and_takes_a_dict(session):
    w = tf.get_variable("W", initializer=[0.0, 0.0])
    sess = session()
    with pytest.raises(ValueError, match=r"W has the shape \[2\], the value for it \[3\]"):
        DictRestore({"W": [1.0, 2.0, 3.0]}).init(sess)
    DictRestore({"W": [1.0, 2.0, 3.0]}, ignore_mismatch=True).init(sess)
    assert sess.run(w).tolist() == [0, 0]
    with pytest.raises(TypeError, match="dict of arrays"):
        DictRestore("model.npz")


def test_chain_applies_all_and_sets_up_every_graph_first(session):
    tape = []

    class Recorder(SessionInit):
        def __init__(self, name):
            self.name = name

        def _setup_graph(self):
            tape.append("graph " + self.name)

        def _run_init(self, sess):
            tape.append("run " + self.name)

    w = tf.get_variable("W", [])
    sess = session()
    ChainInit(
        [Recorder("a"), DictRestore({"W": 1.0}), DictRestore({"W": 2.0}), Recorder("b")]
    ).init(sess)
    assert sess.run(w) == 2
    assert tape == ["graph a", "graph b", "run a", "run b"]


def test_smart_init_finds_the_right_one(prefix, tmp_path, session):
    assert get_model_loader is SmartInit
    assert type(SmartInit(None)) is type(SmartInit("")) is JustCurrentSession
    assert type(SmartInit(prefix)) is SaverRestore
    assert type(SmartInit(prefix, ignore_mismatch=True)) is SaverRestoreRelaxed
    assert type(SmartInit({"W": 1})) is DictRestore
    own = JustCurrentSession()
    assert SmartInit(own) is own
    np.savez(str(tmp_path / "params.npz"), **{"W:0": np.float32([5, 6])})
    w, b = tf.get_variable("W", [2]), tf.get_variable("old/b", [])
    sess = session()
    SmartInit([prefix, str(tmp_path / "params.npz")]).init(sess)
    assert sess.run(w).tolist() == [5, 6]
    assert sess.run(b) == 3


def test_smart_init_refuses_the_rest_with_advice_and_without_running_pickles(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harmed"),)

    with pytest.raises(ValueError, match="a path, a dict or a list"):
        SmartInit(3)
    np.save(str(tmp_path / "dict.npy"), np.array({"W": Harm()}), allow_pickle=True)
    with pytest.raises(ValueError, match=r"dict\.npz with np\.savez"):
        SmartInit(str(tmp_path / "dict.npy"))
    assert not (tmp_path / "harmed").exists()


def test_keywords_and_names_of_2017(prefix, session):
    w = tf.get_variable("W", [2])
    sess = session()
    get_model_loader(filename=prefix).init(sess)
    assert sess.run(w).tolist() == [1, 2]
    for loader in DictRestore(param_dict={"W": [3.0, 4.0]}), ParamRestore({"W": [3.0, 4.0]}):
        SessionUpdate(sess, [w]).update({"W": [0.0, 0.0]})
        loader.init(sess)
        assert sess.run(w).tolist() == [3, 4]
    assert dump_chkpt_vars(model_path=prefix)["global_step"] == 7
    assert get_checkpoint_path(model_path=prefix + ".index") == prefix


def test_resume_takes_the_log_directory(prefix, tmp_path, monkeypatch):
    monkeypatch.setattr(logger, "get_logger_dir", lambda: None)
    assert type(TryResumeTraining()) is JustCurrentSession
    monkeypatch.setattr(logger, "get_logger_dir", lambda: str(tmp_path))
    assert type(TryResumeTraining()) is JustCurrentSession
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model"\n')
    assert TryResumeTraining().path == prefix
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(CheckpointCorrupt):
        TryResumeTraining()


WRITE = """
import sys
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    tf.get_variable("conv/W", initializer=[[1.5, -2.0]])
    tf.get_variable("global_step", initializer=tf.constant(7, tf.int64), trainable=False)
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, sys.argv[1])
"""


@pytest.mark.slow
def test_checkpoint_of_another_tensorflow_loads(tmp_path, session):
    python = os.environ.get("TENSORPACK_OTHER_PYTHON")
    if not python:
        pytest.skip("TENSORPACK_OTHER_PYTHON names no Python with another TensorFlow")
    path = str(tmp_path / "model")
    subprocess.run([python, "-c", WRITE, path], check=True, timeout=120)
    w, step = tf.get_variable("conv/W", [1, 2]), tf.get_variable("global_step", [], tf.int64)
    sess = session()
    SaverRestore(path).init(sess)
    assert sess.run(w).tolist() == [[1.5, -2.0]]
    assert sess.run(step) == 7
