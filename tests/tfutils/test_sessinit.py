"""Tests of session initialisers: what is loaded, what is warned of, what is refused."""

import os
import re
import subprocess

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import SessionUpdate, dump_chkpt_vars, get_checkpoint_path
from tensorpack.tfutils.checkpoint import (
    CheckpointCorrupt,
    load_checkpoint_vars,
    save_checkpoint_vars,
)
from tensorpack.tfutils.sessinit import (
    ChainInit,
    CheckpointReaderAdapter,
    DictRestore,
    ExactRestore,
    InitFrom,
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
from tests.dataflow.old_bytes import pickle_of_python_2


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


def problems(text):
    """What a table of mismatches says, by name: the problem, behind both types where it has two."""
    rows = [re.split("  +", line) for line in text.splitlines() if "]  " in line]
    return {name: " ".join(rest[-1:] if len(rest) < 3 else rest) for name, *rest in rows}


def test_restore_loads_what_both_have_and_shows_the_rest_in_a_table(prefix, session, log_lines):
    w = tf.get_variable("W", [2])
    new = tf.get_variable("new", initializer=4.0)
    tf.get_variable("new/Momentum", [], trainable=False)
    sess = session()
    tf.get_default_graph().finalize()
    init = SaverRestore(prefix)
    with tf.Graph().as_default():
        init.init(sess)
    assert sess.run(w).tolist() == [1, 2] and sess.run(new) == 4
    (_, first), (level, table) = log_lines
    assert first == f"Restoring checkpoint from {prefix} ..."
    assert level == "warn"
    assert table.startswith(f"The following variables are not loaded from {prefix}:")
    assert problems(table) == {"global_step": "extra", "new": "missing", "old/b": "extra"}
    assert table.endswith("and 3 that only training uses")
    assert init.missing == {"new", "new/Momentum"}


def test_moments_of_a_batch_normalisation_are_never_hidden(session, log_lines):
    tf.get_variable("c/bn/mean/EMA", [])
    keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
    tf.get_variable("d/Adam", [], collections=keys)
    tf.get_variable("W", [])
    DictRestore({"W": 1.0, "e/bn/variance/EMA": 1.0}).init(session())
    assert problems(log_lines[-1][1]) == {
        "c/bn/mean/EMA": "missing",
        "d/Adam": "missing",
        "e/bn/variance/EMA": "extra",
    }


def test_averages_that_tensorpack_0_x_saved_as_scalars_are_left_out(session):
    tf.get_variable("EMA/cost", [2], trainable=False)
    w = tf.get_variable("W", [])
    sess = session()
    init = SmartInit({"W": 3.0, "EMA/cost": 1.0, "EMA/cost/biased": 1.0})
    init.init(sess)
    assert sess.run(w) == 3 and init.missing == {"EMA/cost"}


def test_what_only_training_uses_is_nothing_to_begin_with(prefix, session):
    for name in "W/Adam", "EMA/cost":
        tf.get_variable(name, [2], trainable=False)
    tf.get_variable("another", [])
    sess = session()
    with pytest.raises(ValueError, match="No variable of this graph is in .*another model"):
        SmartInit(prefix).init(sess)
    DictRestore({"EMA/cost": np.ones(2)}).init(sess)  # there is nothing else in it


@pytest.mark.parametrize(
    "name, hint",
    [("other", "[^=]*$"), ("sub/W", r"SaverRestore\(path, prefix='sub'\)"), ("global_step", "")],
)
def test_loading_nothing_is_an_error(prefix, session, name, hint):
    v = tf.get_variable(name, initializer=np.int64(3), trainable=False)
    tf.get_variable("another", [])
    sess = session()
    for init in [SaverRestore(prefix), SmartInit([prefix]), DictRestore({})]:
        expected = hint if isinstance(init, SaverRestore) else ""
        with pytest.raises(ValueError, match="No variable of this graph is in .*" + expected):
            init.init(sess)
    assert sess.run(v) == 3


def test_strings_keep_the_nuls_at_their_end(session, tmp_path):
    values = {"one": b"ab\0\0", "two": [b"c\0", b"d"]}
    one, two = (tf.Variable(each, name=name) for name, each in sorted(values.items()))
    sess = session()
    path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    empty = [one.assign(b""), two.assign([b"", b""])]
    for init in SaverRestore(path), ExactRestore(path), DictRestore(values):
        sess.run(empty)
        init.init(sess)
        found = sess.run([one, two])
        assert (found[0], found[1].tolist()) == (values["one"], values["two"])
    for wrong in 3.0, np.ones([]):
        with pytest.raises(ValueError, match="to str changes|only str and bytes"):
            DictRestore({"one": wrong}).init(sess)


def test_restore_into_a_scope_and_without_what_is_ignored(prefix, session, log_lines):
    scoped = tf.get_variable("sub/W", [2])
    outside = tf.get_variable("W", initializer=[0.0, 0.0])
    step = tf.get_variable("sub/global_step", initializer=np.int64(0))
    sess = session()
    SaverRestore(prefix, prefix="sub", ignore=["sub/global_step:0"]).init(sess)
    assert sess.run(scoped).tolist() == [1, 2]
    assert sess.run(outside).tolist() == [0, 0]
    assert sess.run(step) == 0
    assert problems(log_lines[-1][1]) == {"W": "missing", "sub/old/b": "extra"}


def test_dict_restore_refuses_or_leaves_out_what_does_not_fit(session, log_lines):
    w, n = tf.get_variable("W", initializer=[0.0, 0.0]), tf.get_variable("n", initializer=0)
    sess = session()
    values = {"W": np.float32([1, 2, 3]), "n": 5}
    with pytest.raises(
        ValueError, match=r"W has the shape \[2\], the value for it \[3\].* leave out the rest"
    ) as raised:
        DictRestore(values).init(sess)
    expected = {"W": "float32 [2] float32 [3] does not fit"}
    assert problems(str(raised.value)) == expected
    assert sess.run(n) == 0
    DictRestore(values, ignore_mismatch=True).init(sess)
    assert sess.run(w).tolist() == [0, 0]
    assert sess.run(n) == 5
    assert problems(log_lines[-1][1]) == expected
    row = tf.get_variable("row", initializer=[[0.0, 0.0]])
    sess = session()
    with pytest.raises(ValueError, match="ignore_mismatch=True, SmartInit and DictRestore reshape"):
        DictRestore({"row": [1.0, 2.0]}).init(sess)
    DictRestore({"row": [1.0, 2.0]}, ignore_mismatch=True).init(sess)
    assert sess.run(row).tolist() == [[1, 2]]


def test_a_chain_misses_what_none_of_its_parts_has(session):
    for name in "a", "b", "c":
        tf.get_variable(name, [])
    sess = session()
    first, second = DictRestore({"a": 1.0}), DictRestore({"b": 1.0})
    for parts, missing in [
        ([first, JustCurrentSession(), second], {"c"}),
        ([first, SessionInit()], set()),  # it does not say what it sets
        ([], set()),
    ]:
        chain = ChainInit(parts)
        chain.init(sess)
        assert chain.missing == missing


def test_smart_init_finds_the_right_one(prefix, tmp_path, session):
    assert get_model_loader is SmartInit
    assert type(SmartInit(None)) is type(SmartInit("")) is JustCurrentSession
    assert type(SmartInit(os.fsencode(prefix))) is SaverRestore
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


def test_a_dictionary_of_arrays_in_an_npy_file(tmp_path, session):
    """Weights as scripts of 2017 kept them, also those that Python 2 pickled."""
    first, second = str(tmp_path / "a.npy"), str(tmp_path / "b.npy")
    np.save(first, {"W:0": np.float32([5, 6]), "b": 3.0})
    w, b = tf.get_variable("W", [2]), tf.get_variable("b", [])
    sess = session()
    for loader in get_model_loader(first), InitFrom(first, also=["b"]):
        SessionUpdate(sess, [w, b]).update({"W": [0.0, 0.0], "b": 0.0})
        loader.init(sess)
        assert sess.run([w, b])[0].tolist() == [5, 6] and sess.run(b) == 3
    pickled = pickle_of_python_2(np.array({"W": np.float32([7, 8])}, object))
    with open(second, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|O", "fortran_order": False, "shape": ()}
        )
        file.write(pickled)
    SmartInit(second).init(sess)
    assert sess.run(w).tolist() == [7, 8]
    assert list(load_checkpoint_vars(second)) == ["W"]
    for wrong in np.zeros(3), {"W": {"nested": np.zeros(2)}}, {1: np.zeros(2)}:
        np.save(first, wrong, allow_pickle=True)
        with pytest.raises(CheckpointCorrupt, match="an array by its name|dictionary of arrays"):
            SmartInit(first)


def test_smart_init_runs_no_pickles(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harmed"),)

    np.save(str(tmp_path / "dict.npy"), np.array({"W": Harm()}), allow_pickle=True)
    with pytest.raises(CheckpointCorrupt, match=r"dict\.npy.* a pickle that needs \w+\.mkdir"):
        SmartInit(str(tmp_path / "dict.npy"))
    assert not (tmp_path / "harmed").exists()


def test_weights_of_other_libraries_come_with_a_remedy(tmp_path, session):
    (tmp_path / "saved").mkdir()
    for name in "model.h5", "model.keras", "saved/saved_model.pb":
        (tmp_path / name).write_bytes(b"something")
    for name in "model.h5", "model.keras":
        with pytest.raises(ValueError, match="a file of Keras. Load it with Keras, and give"):
            SmartInit(str(tmp_path / name))
    with pytest.raises(ValueError, match=r"saved is a SavedModel: its weights are .*/variables\.$"):
        SmartInit(str(tmp_path / "saved"))
    v = tf.get_variable("v", [], use_resource=True)
    sess = session()
    with sess:
        sess.run(v.initializer)
        path = tf.train.Checkpoint(v=v).save(str(tmp_path / "objects"), session=sess)
        with pytest.raises(
            ValueError, match="checkpoint of objects .* give SmartInit a dictionary"
        ):
            SmartInit(path).init(sess)


def test_a_reader_with_names_of_tensors(prefix):
    reader = CheckpointReaderAdapter(tf.train.NewCheckpointReader(prefix))
    assert reader.get_variable_to_shape_map()["W:0"] == [2]
    assert reader.has_tensor("W:0") and not reader.has_tensor("W")
    assert [reader.get_tensor(name).tolist() for name in ("W", "W:0")] == [[1, 2]] * 2


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
