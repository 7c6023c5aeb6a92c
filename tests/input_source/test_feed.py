import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import DataParallelFeedInput, FeedInput, PlaceholderInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils.stopping import EndOfData, StopRequested
from tests.contracts.input_source import InputSourceContract, InputStateContract

from .run_source import FlowOf, hooked, numbers, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


class TestPlaceholderInput(InputSourceContract):
    feedfree = False

    def make_source(self):
        return PlaceholderInput()


class TestFeedInput(InputSourceContract):
    feedfree = False
    size = 5

    def make_source(self):
        return FeedInput(FlowOf(lambda number: [], 5))


class TestStateOfFeedInput(InputStateContract):
    def make_source(self, flow):
        return FeedInput(flow)


def towers_of(source, names=("tower0", "tower1")):
    """Builds the towers of a source; returns the input of each."""

    def build():
        found = []
        for index, name in enumerate(names):
            with TowerContext(name, is_training=True, index=index):
                found += source.get_input_tensors()
        return found

    return build


class TestStateOfDataParallelFeedInput(InputStateContract):
    per_step = 2

    def make_source(self, flow):
        source = DataParallelFeedInput(flow, ["tower0", "tower1"])
        # a number for each tower, where the contract asks for an input of all of them
        setup, source.setup = source.setup, lambda signature: setup(SIGNATURE)
        get, build = source.get_input_tensors, towers_of(source)

        def get_input_tensors():
            source.get_input_tensors = get
            return [tf.stack(build())]

        source.get_input_tensors = get_input_tensors
        return source


def test_each_tower_is_fed_a_datapoint_of_its_own():
    flow = numbers(5)
    source = DataParallelFeedInput(flow, ["tower0", "tower1"])
    assert source.size() == 2
    with running(source, SIGNATURE, towers_of(source)) as (_, sess, inputs, callbacks):
        session = hooked(sess, callbacks)
        assert [session.run(inputs) for _ in range(3)] == [[0, 1], [2, 3], [4, 0]]
        assert callbacks[-1].state_dict()["count"] == 6
        assert [each.name for each in inputs] == ["tower0/number:0", "tower1/number:0"]
        assert source.next_feed() == {inputs[0]: 1}
        assert source.next_feed(cnt=2) == {inputs[0]: 2, inputs[1]: 3}
        with pytest.raises(ValueError, match="validate with the DataFlow itself"):
            source.read_by_pass()


def test_towers_that_are_fed_must_be_built():
    source = DataParallelFeedInput(numbers(5), ["tower0", "tower1"])
    with running(source, SIGNATURE, towers_of(source, ["tower1"])):
        with pytest.raises(RuntimeError, match="'tower0', but there is no such tower"):
            source.next_feed()


def test_a_finite_source_that_continues_at_its_end_has_nothing_more():
    flow = DataFromList([[1], [2]])
    source = FeedInput(flow, infinite=False)
    with running(source, SIGNATURE) as (trainer, sess, (number,), callbacks):
        session = hooked(sess, callbacks)
        assert {int(session.run(number)) for _ in range(2)} == {1, 2}
        states = [each.state_dict() for each in callbacks]
        assert not trainer.stop_token.requested
        with pytest.raises(StopRequested):
            session.run(number)
        assert trainer.stop_token.reason == EndOfData("FeedInput")
    with tf.Graph().as_default():
        source = FeedInput(DataFromList([[1], [2]]), infinite=False)
        with running(source, SIGNATURE, states=states) as (trainer, sess, (number,), callbacks):
            with pytest.raises(StopRequested):
                hooked(sess, callbacks).run(number)
            assert trainer.stop_token.reason == EndOfData("FeedInput")


def test_where_a_feed_is_before_and_after_the_training():
    source = FeedInput(numbers(3))
    with running(source, SIGNATURE):
        source.next_feed()
        assert source.position()["count"] == 1
    with pytest.raises(RuntimeError, match="save the state before the training is over"):
        source.position()
    assert FeedInput(numbers(3)).position()["count"] == 0


def test_reset_state_leaves_where_the_run_went_on():
    source = FeedInput(numbers(3))
    state = {"count": 2, "flow": None, "seeded": True, "callback": False}
    with running(source, SIGNATURE, states=[None, state]) as (_, _, (number,), _):
        assert source.next_feed()[number] == 2
        source.reset_state()
        assert source.next_feed()[number] == 0


def test_placeholders_have_the_names_of_the_inputs():
    for prefix in "", "eval-":
        source = PlaceholderInput(prefix)
        source.setup(SIGNATURE)
        (tensor,) = source.get_input_tensors()
        assert tensor.name == prefix + "number:0"
        assert tensor.op.type == "Placeholder"


def test_reset_state_starts_over_but_resets_the_flow_once():
    flow = numbers(3)
    source = FeedInput(flow)
    with pytest.raises(RuntimeError, match="after setup"):
        source.next_feed()
    with running(source, SIGNATURE) as (_, _, (number,), _):
        assert [int(source.next_feed()[number]) for _ in range(2)] == [0, 1]
        source.reset_state()
        assert [int(source.next_feed()[number]) for _ in range(2)] == [0, 1]
    assert flow.resets == 1


@pytest.mark.parametrize("wrong, error", [([[1.5]], TypeError), ([], OSError)])
def test_errors_of_the_flow_and_of_the_check_reach_the_step(wrong, error):
    def one_pass(number):
        yield [1]
        yield from wrong
        raise OSError("disk gone")

    with running(FeedInput(FlowOf(one_pass)), SIGNATURE) as (_, sess, (number,), callbacks):
        session = hooked(sess, callbacks)
        assert session.run(number) == 1
        with pytest.raises(error):
            session.run(number)


def test_an_error_of_the_flow_is_not_taken_for_the_end_of_a_pass():
    def one_pass(number):
        yield [1]
        raise tf.errors.OutOfRangeError(None, None, "of the user")

    with running(FeedInput(FlowOf(one_pass)), SIGNATURE) as (_, sess, (number,), callbacks):
        session = hooked(sess, callbacks)
        session.run(number)
        with pytest.raises(RuntimeError, match="^FlowOf failed with OutOfRangeError"):
            session.run(number)
