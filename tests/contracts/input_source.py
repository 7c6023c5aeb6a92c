"""What every input source must do: a test class per source inherits `InputSourceContract`."""

import pickle

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFromList, RNGDataFlow
from tensorpack.input_source import FeedfreeInput
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils import fix_rng_seed
from tests.input_source.run_source import hooked, running


class InputSourceContract:
    """Tests of the source of `make_source`; class attributes say what holds for it.

    Attributes:
      signature: what the source is set up for.
      size: what `size()` returns; None if it raises.
      feedfree: whether the source is a `FeedfreeInput`, whose tensors have values by themselves.
    """

    signature = [
        tf.TensorSpec([None, 3], tf.float32, "image"),
        tf.TensorSpec([None], tf.int32, "label"),
    ]
    size = None
    feedfree = True

    def make_source(self):
        """Returns a new source, alike each time."""
        raise NotImplementedError

    def set_up(self):
        source = self.make_source()
        source.setup(self.signature)
        return source

    def test_nothing_is_added_to_the_graph_before_the_setup(self):
        before = len(tf.get_default_graph().get_operations())
        self.make_source()
        assert len(tf.get_default_graph().get_operations()) == before

    def test_phases(self):
        source = self.make_source()
        assert not source.setup_done()
        with pytest.raises(RuntimeError, match=r"get_input_tensors\(\) comes after setup"):
            source.get_input_tensors()
        with pytest.raises(RuntimeError, match=r"get_callbacks\(\) comes after setup"):
            source.get_callbacks()
        source.setup(self.signature)
        assert source.setup_done()
        with pytest.raises(RuntimeError, match="set up already"):
            source.setup(self.signature)

    def test_callbacks_are_the_same_at_each_call_and_run_everywhere(self):
        source = self.make_source()
        callbacks = source.setup(self.signature)
        assert callbacks == source.get_callbacks()
        assert all(isinstance(each, Callback) for each in callbacks)
        assert not any(each.chief_only for each in callbacks)
        callbacks.append(None)
        assert None not in source.get_callbacks()

    def test_tensors_are_what_the_signature_says(self):
        tensors = self.set_up().get_input_tensors()
        assert isinstance(tensors, list)
        assert [each.dtype for each in tensors] == [each.dtype for each in self.signature]
        assert tf.trainable_variables() == []
        for tensor, spec in zip(tensors, self.signature):
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

    def test_release_ends_what_the_setup_has_begun(self, monkeypatch):
        begun = []
        monkeypatch.setattr(DataFlow, "start_processes", lambda flow: begun.append(flow))
        monkeypatch.setattr(DataFlow, "close", lambda flow: flow in begun and begun.remove(flow))
        source = self.make_source()
        source.release()
        source.setup(self.signature)
        source.get_input_tensors()
        for _ in range(2):
            source.release()
            assert begun == []

    def test_size_and_kind(self):
        source = self.make_source()
        assert isinstance(source, FeedfreeInput) == self.feedfree
        if self.size is None:
            with pytest.raises(NotImplementedError, match="steps_per_epoch"):
                source.size()
        else:
            assert source.size() == self.size

    def test_a_signature_consists_of_specs_with_names_of_their_own(self):
        spec = self.signature[0]
        for signature in [spec, spec], [tf.TensorSpec([None, 3], tf.float32)]:
            with pytest.raises(ValueError, match="a name of its own"):
                self.make_source().setup(signature)
        with pytest.raises(TypeError, match="tf.TensorSpec, .* got 'image'"):
            self.make_source().setup(["image"])


class Dice(RNGDataFlow):
    """Seven different numbers a pass, without a state."""

    def __iter__(self):
        return ([int(each)] for each in self.rng_of_pass().permutation(7) + 100)


def shuffled():
    """Seven different numbers a pass, with a state."""
    return DataFromList([[i] for i in range(7)])


class InputStateContract:
    """A run that is saved and continued consumes what one without a break consumes.

    Attributes:
      per_step: how many datapoints a step takes, of one number each.
      in_lockstep: the values of `trainer.deterministic` to be tried.
    """

    per_step = 1
    in_lockstep = (False,)

    def make_source(self, flow):
        """Returns a new source of this flow, whose datapoints are `[int]`."""
        raise NotImplementedError

    @pytest.mark.parametrize("make_flow", [shuffled, Dice])
    def test_what_is_consumed_is_that_of_a_run_without_a_break(self, make_flow):
        for deterministic in self.in_lockstep:
            breaks = [0, 1, 5, 7, 8, 14]
            found, states = self.consume(make_flow, 20, breaks, deterministic=deterministic)
            for steps in breaks:
                rest, _ = self.consume(make_flow, 20 - steps, [], states[steps], deterministic)
                assert rest == found[steps:]

    @pytest.mark.parametrize("make_flow", [shuffled, Dice])
    def test_it_may_continue_again_and_again(self, make_flow):
        expected, _ = self.consume(make_flow, 15, [])
        found, state = [], None
        for _ in range(5):
            part, states = self.consume(make_flow, 3, [3], state)
            found, state = found + part, states[3]
        assert found == expected
        assert [each["count"] for each in state if each] == [15 * self.per_step]

    def test_a_state_at_once_after_loading_is_the_one_loaded(self):
        _, states = self.consume(shuffled, 5, [5])
        found, again = self.consume(shuffled, 4, [0], states[5])
        assert pickle.dumps(again[0]) == pickle.dumps(states[5])

    def test_strictly(self, monkeypatch):
        """A flow that is neither kept nor made again is an error, and it is said what to do."""
        monkeypatch.setattr("tensorpack.utils.rng._streams.seeded", False)
        _, states = self.consume(Dice, 2, [2], seed=None)
        message = (
            r"cannot continue where.*define Dice.state_dict\(\).*fix_rng_seed\(N\) first thing"
        )
        with pytest.raises(RuntimeError, match=message):
            self.consume(Dice, 2, [], states[2], strictly=True, seed=None)
        found, _ = self.consume(Dice, 2, [], states[2], seed=None)
        assert len(found) == 2
        rest, _ = self.consume(shuffled, 2, [], self.consume(shuffled, 2, [2])[1][2], strictly=True)
        assert len(rest) == 2

    def consume(
        self, make_flow, steps, breaks, states=None, deterministic=False, strictly=False, seed=1
    ):
        """Returns what `steps` steps consumed, and by number of steps the states at `breaks`."""
        if seed is not None:
            # The data comes from the seed, or from the state if there is one.
            fix_rng_seed(seed if make_flow is Dice else seed + (states is not None))
        shape = [] if self.per_step == 1 else [self.per_step]
        signature = [tf.TensorSpec(shape, tf.int32, "number")]
        found, taken = [], {}
        attributes = {"deterministic": deterministic, "resume_strictly": strictly}
        with tf.Graph().as_default():
            source = self.make_source(make_flow())
            with running(source, signature, states=states, **attributes) as (_, sess, (x,), cbs):
                session = hooked(sess, cbs)
                for step in range(steps + 1):
                    if step in breaks:
                        each = [callback.state_dict() for callback in cbs]
                        taken[step] = pickle.loads(pickle.dumps(each))
                    if step < steps:
                        found.append(np.ravel(session.run(x)).tolist())
        return found, taken
