import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import InputDesc
from tensorpack.input_source import InputSource
from tensorpack.tfutils.callback import Callback

from .run_source import running

SIGNATURE = [tf.TensorSpec([2], tf.float32, "x")]


class Given(InputSource):
    """Gives whatever tensors it is given; notes what is called."""

    def __init__(self, tensors=None):
        super().__init__()
        self.tensors = tensors
        self.tape = []

    def _setup(self, input_signature):
        self.tape.append("setup")

    def _get_callbacks(self):
        self.tape.append("callbacks")
        return [Callback()]

    def _get_input_tensors(self):
        return [tf.zeros([2])] if self.tensors is None else self.tensors


class Resettable(Given):
    def _reset_state(self):
        self.tape.append("reset")


def test_the_state_is_reset_before_the_training_and_before_other_callbacks():
    source = Resettable()
    with running(source, SIGNATURE) as (_, _, _, callbacks):
        assert source.tape == ["setup", "callbacks", "reset"]
    assert len(callbacks) == 2
    assert type(callbacks[1]) is Callback


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tf.zeros([2]), "must give a list of 1 tensors"),
        (lambda: [tf.zeros([2], tf.int32)], "float32 .* for input 'x', got int32"),
        (lambda: [tf.zeros([3])], r"for input 'x', got float32 \(3,\)"),
    ],
)
def test_wrong_tensors_are_refused(make, message):
    source = Given(make())
    source.setup(SIGNATURE)
    with pytest.raises(ValueError, match=message):
        source.get_input_tensors()


def test_a_name_scope_is_the_same_at_each_call():
    source, other = Given(), Given()
    with tf.name_scope("elsewhere"):
        scopes = [each.cached_name_scope for each in (source, source, other)]
        found = []
        for scope in scopes:
            with scope() as name:
                found.append((name, tf.zeros([]).op.name.rpartition("/")[0] + "/"))
    assert found == [("Given/", "Given/")] * 2 + [("Given_1/", "Given_1/")]


def test_the_keyword_and_the_specs_of_2017():
    source = Given()
    source.setup(inputs_desc=[InputDesc(tf.float32, (2, None), "image")])
    assert source._signature == [tf.TensorSpec([2, None], tf.float32, "image")]


def test_a_source_that_ends_is_reset_for_each_pass():
    class Sized(Resettable):
        def _size(self):
            return 3

    source = Resettable()
    with pytest.raises(RuntimeError, match=r"read_by_pass\(\) comes after setup"):
        source.read_by_pass()
    source.setup(SIGNATURE)
    assert source.read_by_pass() is None
    source.begin_pass()
    assert source.tape == ["setup", "callbacks", "reset"]
    sized = Sized()
    sized.setup(SIGNATURE)
    assert sized.read_by_pass() == 3
