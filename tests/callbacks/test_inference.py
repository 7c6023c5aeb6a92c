import numpy as np
import pytest

from tensorpack.callbacks import (
    BinaryClassificationStats,
    ClassificationError,
    Inferencer,
    ScalarStats,
)
from tensorpack.graph_builder import ModelDesc
from tensorpack.tfutils.callback import TrainerContract
from tests import helpers
from tests.helpers import TinyModel


def validate(inferencer, datapoints, sizes=None):
    """Gives values of fetches to an inferencer; returns its scalars."""
    inferencer.before_inference()
    for results, size in zip(datapoints, sizes or [1] * len(datapoints)):
        inferencer.batch_size = size
        inferencer.on_fetches(results)
    return inferencer.after_inference()


def test_scalars_are_averaged_over_examples():
    stats = ScalarStats(["cost", "scope/accuracy:0"])
    assert stats.get_fetches() == ["cost", "scope/accuracy:0"]
    values = [[np.float32(1), np.float32(0)], [np.float32(4), np.float32([1])]]
    scalars = validate(stats, values, [4, 2])
    assert scalars == {"validation_cost": 2.0, "validation_scope/accuracy": pytest.approx(1 / 3)}
    assert validate(stats, values[:1])["validation_cost"] == 1  # the one before is forgotten


@pytest.mark.parametrize("prefix, name", [("test", "test_cost"), ("", "cost"), (None, "cost")])
def test_the_prefix_of_scalars(prefix, name):
    assert validate(ScalarStats("cost", prefix), [[2.0]]) == {name: 2.0}


def test_datapoints_may_count_alike():
    assert validate(ScalarStats("c", "", weighted=False), [[1.0], [4.0]], [4, 2]) == {"c": 2.5}


def test_a_vector_is_no_scalar():
    with pytest.raises(ValueError, match=r"'cost' has the shape \(2,\): take its mean"):
        validate(ScalarStats("cost"), [[np.ones(2)]])
    with pytest.raises(TypeError, match="ScalarStats: names must be a list of names, but has 3"):
        ScalarStats([3])


def test_the_error_is_that_of_all_examples():
    error = ClassificationError("wrong", "error")
    assert error.get_fetches() == ["wrong"]
    assert validate(error, [[np.float32([0, 1, 1])], [np.array([False])]]) == {"error": 0.5}
    assert validate(error, [[np.float32([0])]]) == {"error": 0.0}
    with pytest.raises(ValueError, match=r"'wrong' has the shape \(\)"):
        validate(error, [[np.float32(0.5)]])


class ModelOf2017(ModelDesc):
    def _build_graph(self, inputs):
        pass


@pytest.mark.parametrize(
    "model, name", [(ModelOf2017(), "val_error"), (TinyModel(), "validation_error"), (None, None)]
)
def test_the_default_name_of_the_error_is_that_of_its_time(model, name):
    trainer, error = TrainerContract(), ClassificationError()
    trainer.config = helpers.config(model=model) if model is not None else None
    error.setup_graph(trainer)
    assert list(validate(error, [[np.ones(1)]])) == [name or "validation_error"]


def test_precision_and_recall():
    stats = BinaryClassificationStats("pred", "label")
    assert stats.get_fetches() == ["pred", "label"]
    datapoints = [[np.array([1, 1, 0]), np.array([1, 0, 0])], [np.array([1, 0]), np.array([1, 1])]]
    assert validate(stats, datapoints) == {
        "val_precision": pytest.approx(2 / 3),
        "val_recall": pytest.approx(2 / 3),
    }
    assert validate(stats, datapoints[:1])["val_precision"] == 0.5


def test_the_spelling_of_2017():
    class Collect(Inferencer):
        def _get_output_tensors(self):
            return "cost"

        def _before_inference(self):
            self.seen = []

        def _datapoint(self, output):
            self.seen += output

        def _after_inference(self):
            return {"sum": sum(self.seen)}

    collect = Collect()
    assert collect.get_fetches() == collect.get_output_tensors() == ["cost"]
    assert validate(collect, [[1], [2]]) == {"sum": 3}
    collect.datapoint([4])
    assert collect.after_inference() == {"sum": 7}
