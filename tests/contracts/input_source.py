"""What every input source must do: a test class per source inherits `InputSourceContract`."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedfreeInput
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.tower import TowerContext


class InputSourceContract:
    """Inherit, define `make_source`, and correct the class attributes where they do not hold::

        class TestMyInput(InputSourceContract):
            size = 10

            def make_source(self):
                return MyInput(...)

    Attributes:
      signature: what the source is set up for: (dtype, shape, name) of each input.
      size: what `size()` returns; None if it raises.
      feedfree: whether the source is a `FeedfreeInput`, whose tensors have values by themselves.
    """

    signature = [(tf.float32, [None, 3], "image"), (tf.int32, [None], "label")]
    size = None
    feedfree = True

    def make_source(self):
        """Returns a new source, alike each time."""
        raise NotImplementedError

    def specs(self):
        return [tf.TensorSpec(shape, dtype, name) for dtype, shape, name in self.signature]

    def set_up(self):
        source = self.make_source()
        source.setup(self.specs())
        return source

    def test_nothing_is_added_to_the_graph_before_the_setup(self):
        before = len(tf.get_default_graph().get_operations())
        source = self.make_source()
        made_by_the_user = getattr(source, "queue", None)
        if made_by_the_user is None:
            assert len(tf.get_default_graph().get_operations()) == before

    def test_phases(self):
        source = self.make_source()
        assert not source.setup_done()
        with pytest.raises(RuntimeError, match=r"get_input_tensors\(\) comes after setup"):
            source.get_input_tensors()
        with pytest.raises(RuntimeError, match=r"get_callbacks\(\) comes after setup"):
            source.get_callbacks()
        source.setup(self.specs())
        assert source.setup_done()
        with pytest.raises(RuntimeError, match="set up already"):
            source.setup(self.specs())

    def test_callbacks_are_the_same_at_each_call_and_run_everywhere(self):
        source = self.make_source()
        callbacks = source.setup(self.specs())
        assert callbacks == source.get_callbacks()
        assert all(isinstance(each, Callback) for each in callbacks)
        assert not any(each.chief_only for each in callbacks)
        callbacks.append(None)
        assert None not in source.get_callbacks()

    def test_tensors_are_what_the_signature_says(self):
        tensors = self.set_up().get_input_tensors()
        assert isinstance(tensors, list)
        assert [each.dtype for each in tensors] == [dtype for dtype, _, _ in self.signature]
        for tensor, spec in zip(tensors, self.specs()):
            assert tensor.shape.ndims == spec.shape.ndims
            assert spec.shape.is_compatible_with(tensor.shape)

    def test_tensors_within_a_tower(self):
        source = self.set_up()
        with TowerContext("", is_training=True), tf.device("/gpu:0"):
            first = source.get_input_tensors()
        with TowerContext("towerp0", is_training=False):
            second = source.get_input_tensors()
        assert len(first) == len(second) == len(self.signature)
        assert (first[0] is second[0]) == (not self.feedfree)

    def test_trains_no_variable(self):
        self.set_up().get_input_tensors()
        assert tf.trainable_variables() == []

    def test_size(self):
        source = self.make_source()
        if self.size is None:
            with pytest.raises(NotImplementedError):
                source.size()
        else:
            assert source.size() == self.size

    def test_kind(self):
        assert isinstance(self.make_source(), FeedfreeInput) == self.feedfree

    def test_a_signature_must_have_names_of_their_own(self):
        spec = self.specs()[0]
        for signature in [spec, spec], [tf.TensorSpec([None, 3], tf.float32)]:
            with pytest.raises(ValueError, match="a name of its own"):
                self.make_source().setup(signature)

    def test_a_signature_consists_of_specs(self):
        with pytest.raises(TypeError, match="list of tf.TensorSpec, got str"):
            self.make_source().setup(["image"])
