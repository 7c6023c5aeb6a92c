"""`tensorpack export` writes the weights of a checkpoint, or a model that its code builds."""

import sys
import textwrap

import numpy as np
import pytest

from tests.conftest import HAS_TENSORFLOW

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
MODEL = textwrap.dedent(
    """
    from line_layers import FullyConnected
    from tensorpack import ModelDesc
    from tensorpack.compat import tfv1 as tf

    class Line(ModelDesc):
        def inputs(self):
            return [tf.TensorSpec([None, 2], tf.float32, "x")]

        def build_graph(self, x):
            tf.identity(FullyConnected("fc", x, 1), name="y")
    """
)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the folder of a model is put there
    arrays = {"fc/W": np.full((2, 1), 1.5), "fc/b": np.ones(1, "float32"), "more": np.zeros(2)}
    np.savez(str(tmp_path / "in.npz"), **arrays)
    return tmp_path / "in.npz"


def arrays_of(path):
    with np.load(str(path)) as archive:
        return {name: (archive[name].dtype.name, archive[name].tolist()) for name in archive}


@needs_tensorflow
def test_weights_of_the_newest_and_a_word_about_the_best(tensorpack, tmp_path):
    from tensorpack.tfutils.checkpoint import CheckpointStore, copy_checkpoint, save_checkpoint_vars

    log, out = tmp_path / "log [1]", tmp_path / "new" / "out.npz"
    store = CheckpointStore(str(log))
    for step in (3, 5):
        arrays = {"W": np.full(2, step), "W/Adam": np.ones(2), "global_step": np.int64(step)}
        store.save(step, lambda path, arrays=arrays: save_checkpoint_vars(arrays, path))
    copy_checkpoint(str(log / "model-3"), str(log / "min-e (1)"))
    done = tensorpack("export", log, out)
    assert done.code == 0, done.err
    assert done.out.startswith(f"1 variables of {log}/model-5 are in {out} (")
    assert done.out.endswith(f"\nThere is also the best, {log}/min-e (1).\n")
    assert arrays_of(out) == {"W": ("int64", [5, 5])}
    assert tensorpack("export", log / "min-e (1)", tmp_path / "best.npz").code == 0
    assert arrays_of(tmp_path / "best.npz") == {"W": ("int64", [3, 3])}


@pytest.mark.parametrize(
    "out, args, text",
    [
        ("in.npz", [], "in.npz exists. Remove it, or give another name."),
        ("x.pb", [], "needs the graph, which a checkpoint does not have"),
        ("x.npz", ["--model", "a.py"], "'a.py' is not path/to/file.py:NAME"),
    ],
)
def test_what_cannot_be(tensorpack, archive, tmp_path, out, args, text):
    if args and not HAS_TENSORFLOW:
        text = "This needs tensorflow"
    before = sorted(tmp_path.iterdir())
    done = tensorpack("export", archive, tmp_path / out, *args)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert text in done.err
    assert sorted(tmp_path.iterdir()) == before


@needs_tensorflow
def test_a_checkpoint_in_bfloat16(tensorpack, tmp_path):
    from tensorpack.compat import tfv1 as tf
    from tensorpack.tfutils.checkpoint import save_checkpoint_vars

    half = np.array([1.5, 2]).astype(tf.bfloat16.as_numpy_dtype)
    save_checkpoint_vars({"W": half}, tmp_path / "model-1")
    assert tensorpack("export", tmp_path, tmp_path / "w.npz").code == 0
    assert arrays_of(tmp_path / "w.npz") == {"W": ("float32", [1.5, 2])}


@needs_tensorflow
@pytest.mark.parametrize("out", ["line.pb", "serving"])
def test_a_model(tensorpack, archive, tmp_path, monkeypatch, out):
    from tensorpack.compat import tfv1 as tf

    monkeypatch.chdir(tmp_path)
    (tmp_path / "line_to_export.py").write_text(MODEL)
    (tmp_path / "line_layers.py").write_text("from tensorpack import FullyConnected")
    place = "line_to_export:Line" if out == "serving" else f"{tmp_path}/line_to_export.py:Line"
    args = ["export", archive, tmp_path / out, "--output", "y", "--model"]
    done = tensorpack(*args, place[:-1])
    assert done.code == 2 and done.err.endswith(f"no {place[:-1]}. Did you mean Line?\n")
    done = tensorpack(*args, place)
    assert done.code == 0, done.err
    assert f"The model {place} with the weights of {archive} is in" in done.out
    with tf.Graph().as_default(), tf.Session() as session:
        if out == "serving":
            tf.saved_model.load(session, ["serve"], str(tmp_path / out))
        else:
            graph_def = tf.GraphDef.FromString((tmp_path / out).read_bytes())
            tf.import_graph_def(graph_def, name="")
        assert session.run("y:0", {"x:0": [[1, 2]]}).tolist() == [[5.5]]
