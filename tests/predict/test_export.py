"""Exports compute what the model computes."""

import os

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import BatchNorm, FullyConnected
from tensorpack.predict import OfflinePredictor, PredictConfig
from tensorpack.predict.export import ModelExport, ModelExporter
from tensorpack.tfutils.checkpoint import load_checkpoint_vars, save_checkpoint_vars
from tensorpack.tfutils.sessinit import DictRestore, SmartInit

BATCH = np.float32([[1, 2, 3, 4], [0, -1, 0.5, 0], [5, 0, 0, -5]])
WEIGHTS = {
    "fc/W": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
    "fc/b": np.float32([0.5, -0.5, 0.25]),
    "bn/beta": np.float32([1, 2, 3]),
    "bn/gamma": np.float32([3, 2, 1]),
    "bn/mean/EMA": np.float32([0.1, 0.2, 0.3]),
    "bn/variance/EMA": np.float32([1, 4, 9]),
}


class Classifier(ModelDesc):
    """Two outputs and, beside what they need, a label and a variable."""

    def inputs(self):
        return [tf.TensorSpec([None, 4], tf.float32, "x"), tf.TensorSpec([None], tf.int32, "y")]

    def build_graph(self, x, y):
        hidden = BatchNorm("bn", FullyConnected("fc", x, 3))
        hidden = tf.identity(hidden, "hidden")
        with tf.device("/device:GPU:7"):  # for the CPU by soft placement, which an export has not
            tf.nn.softmax(hidden, name="prob")
        tf.identity(tf.get_variable("unused", []) + tf.cast(y, tf.float32), "label")
        tf.reduce_max(tf.check_numerics(hidden, "a check"), axis=1, name="scores/max")


def classifier(inputs=("x",), outputs=("prob", "scores/max"), **options):
    options = {"session_init": DictRestore(WEIGHTS), **options}
    return PredictConfig(
        model=Classifier(), input_names=list(inputs), output_names=list(outputs), **options
    )


def tower(function, shape=(None, 4), **options):
    """The config of a model without weights whose output is `out`."""
    signature = [tf.TensorSpec(shape, tf.float32, "x")]
    return PredictConfig(
        tower_func=function, input_signature=signature, output_names=["out"], **options
    )


def expected(config, *arrays):
    with OfflinePredictor(config) as predictor:
        return predictor(*arrays)


def run_frozen(path, feed, fetches):
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return graph_def, sess.run(fetches, feed)


def assert_alike(values, others):
    for value, other in zip(values, others):
        np.testing.assert_allclose(value, other, rtol=1e-5)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_frozen_graph_computes_the_outputs_under_their_names(tmp_path, optimize):
    ModelExporter(classifier()).export_compact(tmp_path / "m.pb", optimize=optimize)
    fetches = ["prob:0", "scores/max:0"]
    graph_def, values = run_frozen(tmp_path / "m.pb", {"x:0": BATCH}, fetches)
    assert_alike(values, expected(classifier(), BATCH))
    ops = {node.op for node in graph_def.node}
    assert ("CheckNumerics" in ops) != optimize
    assert not ops & {"VariableV2", "VarHandleOp", "RestoreV2"}
    assert {node.device for node in graph_def.node} == {""}
    assert os.listdir(str(tmp_path)) == ["m.pb"]


def test_inputs_that_are_no_placeholders_become_some_and_unused_ones_stay(tmp_path):
    config = classifier(["hidden", "y"], ["prob"], session_init=None)
    ModelExporter(config).export_compact(tmp_path / "m.pb")
    hidden = np.float32([[1, 2, 3]])
    feed = {"hidden:0": hidden, "y:0": [7]}
    graph_def, values = run_frozen(tmp_path / "m.pb", feed, ["prob:0"])
    assert_alike(values, expected(classifier(["hidden"], ["prob"], session_init=None), hidden))
    ops = sorted((node.name, node.op) for node in graph_def.node)
    assert ops == [("hidden", "Placeholder"), ("prob", "Softmax"), ("y", "Placeholder")]


def run_saved_model(path, tags, name):
    with tf.Graph().as_default(), tf.Session() as sess:
        meta = tf.saved_model.load(sess, tags, str(path))
        assert meta.meta_info_def.stripped_default_attrs
        signature = meta.signature_def[name]
        feed = {signature.inputs["x"].name: BATCH}
        return sess.run({key: tensor.name for key, tensor in signature.outputs.items()}, feed)


@pytest.mark.parametrize("name", ["prediction_pipeline", "serving_default"])
def test_a_saved_model_has_a_signature_of_both_names(tmp_path, name):
    ModelExporter(classifier()).export_serving(tmp_path / "new" / "1")
    values = run_saved_model(tmp_path / "new" / "1", ["serve"], name)
    assert sorted(values) == ["prob", "scores/max"]
    assert_alike([values["prob"], values["scores/max"]], expected(classifier(), BATCH))
    assert os.listdir(str(tmp_path / "new")) == ["1"]


def test_a_saved_model_initialises_tables_and_local_variables(tmp_path):
    def build(x):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer([1, 2], [10.0, 20.0], tf.int64, tf.float32), -1.0
        )
        local = tf.get_variable("local", initializer=0.5, collections=["local_variables"])
        tf.add(table.lookup(tf.cast(x, tf.int64)), local, name="out")

    ModelExporter(tower(build)).export_serving(tmp_path / "m", tags="mine", signature_name="s")
    values = run_saved_model(tmp_path / "m", ["mine"], "s")
    assert values["out"][0].tolist() == [10.5, 20.5, -0.5, -0.5]
    with pytest.raises(ValueError, match="is a HashTableV2.* Only a SavedModel"):
        ModelExporter(tower(build)).export_compact(tmp_path / "m.pb")


def test_a_path_from_which_tensorflow_cannot_load_is_refused(tmp_path):
    for name in "layers=[3]/1", "a\\b":
        with pytest.raises(ValueError, match=r"loads nothing from .*leave out \["):
            ModelExporter(classifier()).export_serving(tmp_path / name)
    assert os.listdir(str(tmp_path)) == []


def test_weights_as_arrays_serve_numpy_alone_and_load_again(tmp_path):
    weights, outputs = str(tmp_path / "w.npz"), expected(classifier(), BATCH)
    ModelExporter(classifier()).export_npz(weights)
    assert load_checkpoint_vars(weights).keys() == WEIGHTS.keys()
    with np.load(weights) as w:
        x = BATCH @ w["fc/W"] + w["fc/b"]
        x = (x - w["bn/mean/EMA"]) / np.sqrt(w["bn/variance/EMA"] + 1e-5)
        x = x * w["bn/gamma"] + w["bn/beta"]
    np.testing.assert_allclose(x.max(axis=1), outputs[1], rtol=1e-5)
    assert_alike(expected(classifier(session_init=SmartInit(weights)), BATCH), outputs)


def test_the_exporter_of_2017_writes_a_version(tmp_path):
    save_checkpoint_vars(WEIGHTS, tmp_path / "model")
    exporter = ModelExport(Classifier(), ["x"], ["prob", "scores/max"])
    exporter.export(str(tmp_path / "model"), tmp_path / "served", version=3)
    values = run_saved_model(tmp_path / "served" / "3", ["serve"], "prediction_pipeline")
    assert_alike([values["prob"], values["scores/max"]], expected(classifier(), BATCH))


@pytest.mark.parametrize(
    "config, error",
    [
        (tower(lambda x: tf.py_func(abs, [x], tf.float32, name="out")), "has no Python functions"),
        (classifier(session_init=DictRestore({"fc/W": WEIGHTS["fc/W"]})), "no value to load"),
    ],
)
def test_what_cannot_be_exported_leaves_nothing_behind(tmp_path, config, error):
    exporter = ModelExporter(config)
    for method in exporter.export_compact, exporter.export_serving:
        with pytest.raises(ValueError, match=error):
            method(tmp_path / "model")
    assert os.listdir(str(tmp_path)) == []


def test_an_export_is_compared_before_it_is_there(tmp_path):
    for method in "export_compact", "export_serving":
        getattr(ModelExporter(classifier()), method)(tmp_path / method, check_inputs=[BATCH])
    # An older TensorFlow may not know an attribute that has its default.
    nodes = tf.GraphDef.FromString((tmp_path / "export_compact").read_bytes()).node
    assert [{*node.attr} for node in nodes if node.op == "MatMul"] == [{"T"}]
    signature = [tf.TensorSpec([None], tf.string, "x")]
    config = PredictConfig(
        tower_func=lambda x: tf.strings.join([x, "!"], name="out"),
        input_signature=signature,
        output_names=["out"],
    )
    ModelExporter(config).export_compact(tmp_path / "model.pb", check_inputs=[["a", "b"]])
    assert sorted(os.listdir(str(tmp_path))) == ["export_compact", "export_serving", "model.pb"]


def test_an_export_that_is_wrong_is_not_written(tmp_path):
    config = tower(lambda x: tf.add(x, tf.random.uniform(tf.shape(x)), name="out"))
    (tmp_path / "model.pb").write_text("the last one")
    for method, name in ("export_compact", "model.pb"), ("export_serving", "serving"):
        with pytest.raises(RuntimeError, match="computes another out:0 than the model"):
            getattr(ModelExporter(config), method)(tmp_path / name, check_inputs=[BATCH])
    assert (tmp_path / "model.pb").read_text() == "the last one"
    assert os.listdir(str(tmp_path)) == ["model.pb"]
