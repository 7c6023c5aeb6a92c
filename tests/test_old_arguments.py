"""Arguments of releases between 0.3 and 0.10 are taken, where their names were others."""

import pytest

from tensorpack.dataflow import (
    DataFromList,
    FakeData,
    LocallyShuffleData,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiThreadMapData,
    MultiThreadRunner,
    PrintData,
    RepeatedData,
    RepeatedDataPoint,
    ThreadedMapData,
)
from tests.conftest import HAS_TENSORFLOW

FLOW = DataFromList([[i] for i in range(5)], shuffle=False)


def double(datapoint):
    return [2 * datapoint[0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: MultiThreadMapData(FLOW, 2, double, 3, True),
        lambda: MultiThreadMapData(FLOW, nr_thread=2, map_func=double, buffer_size=3, strict=True),
        lambda: ThreadedMapData(FLOW, nr_thread=2, map_func=double, strict=True),
    ],
)
def test_order_of_a_map_by_threads(make):
    flow = make()
    flow.reset_state()
    assert [each[0] for each in flow] == [0, 2, 4, 6, 8]


def test_arguments_of_flows():
    assert MultiProcessMapData(FLOW, 1, double, 3, True) is not None
    for kind in MultiProcessMapData, MultiProcessMapAndBatchData:
        assert kind(FLOW, nr_proc=3, map_func=double).num_proc == 3
    runner = MultiThreadRunner(lambda: FLOW, nr_prefetch=4, nr_thread=2)
    assert (runner.num_prefetch, runner.num_thread) == (4, 2)
    assert len(RepeatedData(FLOW, nr=2)) == len(RepeatedDataPoint(FLOW, nr=2)) == 10
    assert len(LocallyShuffleData(FLOW, 3, nr_reuse=1)) == 5
    assert len(PrintData(FLOW, label="a")) == 5


if HAS_TENSORFLOW:
    from tensorpack import callbacks, models, predict, tfutils, train
    from tensorpack.compat import tfv1 as tf
    from tensorpack.graph_builder import InputDesc
    from tensorpack.input_source import QueueInput, StagingInput, StagingInputWrapper
    from tensorpack.tfutils.tower import TowerFuncWrapper, TowerTensorHandle

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")


def inputs_desc():
    return [InputDesc(tf.float32, [None, 4, 4, 3], "x")]


@needs_tensorflow
def test_a_tower_with_variables_of_its_own():
    for index, use_vs in enumerate([False, True]):
        with tfutils.TowerContext(f"tower{index}", True, index, use_vs=use_vs) as context:
            tf.get_variable("w", [])
        assert context.vs_name == ("tower1" if use_vs else "")
    with tfutils.TowerContext("tower2", True, 2, True):
        tf.get_variable("w", [])
    names = [each.op.name for each in tf.trainable_variables()]
    assert names == ["w", "tower1/w", "tower2/w"]


@needs_tensorflow
def test_the_inputs_of_a_tower_function():
    tower_func = TowerFuncWrapper(lambda x: tf.identity(x, name="y"), inputs_desc=inputs_desc())
    assert tower_func.input_signature[0].name == "x"
    with tfutils.TowerContext("", is_training=False) as context:
        x = tf.placeholder(tf.float32, name="x")
    handle = TowerTensorHandle(context, input=[x], output=None, inputs_desc=inputs_desc())
    assert (handle.inputs, handle.outputs, handle["x"]) == ([x], None, x)


@needs_tensorflow
def test_a_predictor_of_a_function():
    config = predict.PredictConfig(
        inputs_desc=inputs_desc(),
        tower_func=lambda x: tf.reduce_sum(x, name="total"),
        input_var_names=["x"],
        output_names=["total"],
    )
    with predict.OfflinePredictor(config) as predictor:
        assert predictor([[[[1.0] * 3] * 4] * 4])[0] == 48.0


@needs_tensorflow
def test_arguments_of_layers():
    x = tf.zeros([2, 4, 4, 3])
    y = models.Deconv2D("up", x, out_channel=5, kernel_shape=3, stride=2)
    assert y.shape.as_list() == [2, 8, 8, 5]
    with tfutils.TowerContext("", is_training=True):
        for internal in True, False:
            models.BatchNorm(f"bn{internal}", x, internal_update=internal, use_bias=False)
    updates = [each.name.split("/")[0] for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS)]
    assert set(updates) == {"bnFalse"}


@needs_tensorflow
def test_a_scope_by_its_other_name():
    @tfutils.under_name_scope(name="scope")
    def function():
        return tf.constant(0, name="x").op.name

    assert function() == "scope/x"


@needs_tensorflow
@pytest.mark.parametrize(
    "make",
    [
        lambda source: StagingInput(source, towers=[0, 1], nr_stage=2),
        lambda source: StagingInputWrapper(source, towers=[0, 1], nr_stage=2),
        lambda source: StagingInputWrapper(source, ["/cpu:0"], 2),
    ],
)
def test_an_input_with_buffers_for_towers(make):
    source = make(QueueInput(FakeData([[2]], 4)))
    source.setup([tf.TensorSpec([2], tf.float32, "x")])
    assert source.get_input_tensors()[0].shape.as_list() == [2]
    source.release()


@needs_tensorflow
def test_arguments_of_trainers_and_callbacks():
    for kind in train.SyncMultiGPUTrainerReplicated, train.SyncMultiGPUTrainerParameterServer:
        assert kind(gpus=[0, 1]).tower_ids == [0, 1]
    assert train.AsyncMultiGPUTrainer(gpus=2).tower_ids == [0, 1]
    flow = FakeData([[2]], 4)
    source = train.interface.apply_default_prefetch(flow, train.SimpleTrainer(), [0])
    assert source.ds is flow
    assert callbacks.InferenceRunner(flow, infs=[callbacks.ScalarStats("cost")]) is not None
    assert callbacks.RunOp(setup_func=tf.no_op, run_as_trigger=True) is not None
    assert tfutils.get_model_loader(filename="") is not None
