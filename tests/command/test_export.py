"""`tensorpack export` writes the weights of a checkpoint, or a model that its code builds."""

import json
import re
import sys
import textwrap

import numpy as np
import pytest

from tests.conftest import HAS_TENSORFLOW

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
MODEL = textwrap.dedent(
    """
    from tensorpack import FullyConnected, ModelDesc
    from tensorpack.compat import tfv1 as tf

    class Line(ModelDesc):
        def inputs(self):
            return [tf.TensorSpec([None, 2], tf.float32, "x")]

        def build_graph(self, x):
            tf.identity(FullyConnected("fc", x, 1), name="y")

    class Wide(Line):
        def __init__(self, size):
            pass

    number = 3
    """
)


@pytest.fixture
def archive(tmp_path):
    arrays = {
        "fc/W": np.full((2, 1), 1.5),
        "fc/b": np.ones(1, "float32"),
        "fc/W/Adam": np.zeros(2),
        "global_step": np.int64(7),
    }
    np.savez(str(tmp_path / "in.npz"), **arrays)
    return tmp_path / "in.npz"


def arrays_of(path):
    with np.load(str(path)) as archive:
        return {name: (archive[name].dtype.name, archive[name].tolist()) for name in archive}


def test_weights(tensorpack, archive, tmp_path):
    done = tensorpack("export", archive, tmp_path / "out.npz", "--dtype", "float16")
    assert (done.code, done.err) == (0, "")
    assert arrays_of(tmp_path / "out.npz") == {
        "fc/W": ("float16", [[1.5], [1.5]]),
        "fc/b": ("float16", [1]),
    }
    assert done.out.startswith(f"2 variables of {archive} are in {tmp_path}/out.npz (")


def test_all_and_select(tensorpack, archive, tmp_path):
    assert tensorpack("export", archive, tmp_path / "a" / "out.npz", "--all").code == 0
    assert arrays_of(tmp_path / "a" / "out.npz") == arrays_of(archive)
    assert tensorpack("export", archive, tmp_path / "b.npz", "--select", "b$").code == 0
    assert list(arrays_of(tmp_path / "b.npz")) == ["fc/b"]


@pytest.mark.parametrize(
    "out, args, text",
    [
        ("in.npz", [], "in.npz exists. --force replaces it."),
        (".", ["--force", "--model", "a:b", "--output", "y"], "exists. Remove it first."),
        ("x.h5", [], "has the suffix '.h5'. Give NAME.npz"),
        ("x.pb", [], "needs the graph, which a checkpoint does not have"),
        ("x.npz", ["--output", "y"], "--input and --output go with --model"),
        ("x.npz", ["--model", "a:b"], "--model needs --output"),
        ("x.pb", ["--model", "a:b", "--dtype", "float16"], "are for weights alone"),
        ("x.pb", ["--model", "ab", "--output", "y"], "'ab' is not path/to/file.py:NAME"),
        ("x.npz", ["--select", "fc/Q"], "No weight of"),
        ("x.npz", ["--select", "("], "is no regular expression"),
    ],
)
def test_what_cannot_be(tensorpack, archive, tmp_path, out, args, text):
    before = sorted(tmp_path.iterdir())
    done = tensorpack("export", archive, tmp_path / out, *args)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert text in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_force_goes_through_a_link(tensorpack, archive, tmp_path):
    (tmp_path / "file.npz").write_bytes(b"")
    (tmp_path / "link.npz").symlink_to("file.npz")
    assert tensorpack("export", archive, tmp_path / "link.npz", "--force").code == 0
    assert (tmp_path / "link.npz").is_symlink() and len(arrays_of(tmp_path / "file.npz")) == 2


def test_values_that_do_not_fit(tensorpack, tmp_path):
    np.savez(str(tmp_path / "a.npz"), W=np.array([1e6, np.inf]))
    done = tensorpack("export", tmp_path / "a.npz", tmp_path / "b.npz", "--dtype", "float16")
    assert done.code == 2 and "W has values too large for float16" in done.err
    assert tensorpack("export", tmp_path / "a.npz", tmp_path / "b.npz").code == 0


@needs_tensorflow
def test_the_newest_of_a_directory_and_a_word_about_the_best(tensorpack, tmp_path):
    from tensorpack.tfutils.checkpoint import CheckpointStore, save_checkpoint_vars

    log = tmp_path / "log"
    CheckpointStore(str(log)).save(5, lambda path: save_checkpoint_vars({"W": np.ones(2)}, path))
    best = ["min-e (e 0.25 at step 3)"]
    (log / "run.json").write_text(json.dumps({"attempts": [{}, {"best": best}]}))
    done = tensorpack("export", log, tmp_path / "out.npz")
    assert done.code == 0, done.err
    assert done.out.startswith(f"1 variables of {log}/model-5 are in ")
    assert done.out.endswith(f"{log} also has the best, min-e (e 0.25 at step 3): --best.\n")
    for i, other in enumerate(["[]", '{"attempts": []}', '{"attempts": [{"best": 3}]}']):
        (log / "run.json").write_text(other)
        assert tensorpack("export", log, tmp_path / f"{i}.npz").out.count("\n") == 1


@needs_tensorflow
def test_the_best_of_a_directory(tensorpack, tmp_path):
    from tensorpack.tfutils.checkpoint import CheckpointStore, copy_checkpoint, save_checkpoint_vars

    log = tmp_path / "log"
    store = CheckpointStore(str(log))
    for step in (3, 5):
        store.save(
            step, lambda path, step=step: save_checkpoint_vars({"W": np.full(2, step)}, path)
        )
    copy_checkpoint(str(log / "model-3"), str(log / "min-e (1)"))
    best = ["min-e (1) (e 0.25 at step 3)"]
    (log / "run.json").write_text(json.dumps({"attempts": [{"best": best}]}))
    done = tensorpack("export", "--best", log, tmp_path / "out.npz")
    assert done.code == 0 and done.out.count("\n") == 1, done.err
    assert np.load(tmp_path / "out.npz")["W"].tolist() == [3, 3]
    (log / "run.json").write_text(json.dumps({"attempts": [{"best": best}, {"process": 1}]}))
    done = tensorpack("export", log, tmp_path / "newest.npz")  # of a run that has been killed
    assert done.out.endswith(f"{log} also has the best, min-e (1) (so far): --best.\n")
    assert tensorpack("export", "--best", log, tmp_path / "killed.npz").code == 0
    assert np.load(tmp_path / "killed.npz")["W"].tolist() == [3, 3]
    for names, said in [([], "has none: leave --best out"), (best * 2, "give one of .*min-e")]:
        (log / "run.json").write_text(json.dumps({"attempts": [{"best": names}]}))
        done = tensorpack("export", "--best", log, tmp_path / "other.npz")
        assert done.code == 2 and re.search(said, done.err)


@needs_tensorflow
def test_a_checkpoint_in_bfloat16(tensorpack, tmp_path):
    from tensorpack.compat import tfv1 as tf
    from tensorpack.tfutils.checkpoint import save_checkpoint_vars

    half = np.array([1.5, 2]).astype(tf.bfloat16.as_numpy_dtype)
    save_checkpoint_vars({"W": half}, tmp_path / "model-1")
    assert tensorpack("export", tmp_path, tmp_path / "w.npz").code == 0
    assert arrays_of(tmp_path / "w.npz") == {"W": ("float32", [1.5, 2])}


@needs_tensorflow
@pytest.mark.parametrize("out", ["line.pb", "line.npz", "serving"])
def test_a_model(tensorpack, archive, tmp_path, out):
    from tensorpack.compat import tfv1 as tf

    (tmp_path / "line_to_export.py").write_text(MODEL)
    place = f"{tmp_path}/line_to_export.py:Line"
    done = tensorpack("export", archive, tmp_path / out, "--model", place, "--output", "y")
    assert done.code == 0, done.err
    assert f"The model {place} with the weights of {archive} is in" in done.out
    if out == "line.npz":
        assert list(arrays_of(tmp_path / out)) == ["fc/W", "fc/b"]
        return
    with tf.Graph().as_default(), tf.Session() as session:
        if out == "serving":
            tf.saved_model.load(session, ["serve"], str(tmp_path / out))
        else:
            graph_def = tf.GraphDef.FromString((tmp_path / out).read_bytes())
            tf.import_graph_def(graph_def, name="")
        assert session.run("y:0", {"x:0": [[1, 2]]}).tolist() == [[5.5]]


@needs_tensorflow
@pytest.mark.parametrize(
    "name, text",
    [
        ("Lin", "there is no 'Lin'. Did you mean Line?"),
        ("Wide", "cannot be called without arguments"),
        ("number", "is int, not a ModelDesc"),
    ],
)
def test_a_name_that_is_no_model(tensorpack, archive, tmp_path, name, text):
    (tmp_path / "line_to_export.py").write_text(MODEL)
    place = f"{tmp_path}/line_to_export.py:{name}"
    done = tensorpack("export", archive, tmp_path / "x.pb", "--model", place, "--output", "y")
    assert (done.code, done.out) == (2, "")
    assert text in done.err


@needs_tensorflow
def test_a_place_that_is_no_module(tensorpack, archive, tmp_path):
    before = list(sys.path)
    (tmp_path / "json.py").touch()
    (tmp_path / "fails.py").write_text("raise ZeroDivisionError('of mine')")
    for source, text in [
        ("n.py", "There is no file n.py (seen from"),
        ("no_such.part", "There is no module no_such.part (seen from"),
        (f"{tmp_path}/json.py", "'json', which is the name of another one"),
        (f"{tmp_path}/fails.py", "ZeroDivisionError: of mine"),
    ]:
        done = tensorpack(
            "export", archive, tmp_path / "x.pb", "--model", f"{source}:x", "--output", "y"
        )
        assert done.code == 2 and text in done.err, done.err
    assert sys.path == before and "fails" not in sys.modules
