"""The contract of an input source: where the tensors that a model is built on come from."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.common import as_signature
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords


class InputSpec(tf.TensorSpec):
    """A spec as `InputSource._setup` gets it, which subclasses of scripts ask for a placeholder."""

    def build_placeholder_reuse(self) -> tf.Tensor:
        """Returns the placeholder of this name, see `build_or_reuse_placeholder`."""
        return build_or_reuse_placeholder(self)


def build_or_reuse_placeholder(tensor_spec: tf.TensorSpec) -> tf.Tensor:
    """Returns the default graph's placeholder of a spec's name, which is made at the first call."""
    try:
        tensor = tf.get_default_graph().get_tensor_by_name(f"{tensor_spec.name}:0")
    except KeyError:
        with tf.name_scope(None):
            return tf.placeholder(tensor_spec.dtype, tensor_spec.shape, tensor_spec.name)
    if tensor.op.type != "Placeholder" or not tensor_spec.is_compatible_with(tensor):
        raise ValueError(f"{tensor_spec} has the name of {tensor}, which is no such placeholder.")
    return tensor


class InputSource:
    """Gives a model its input tensors, and provides the data behind them.

    Used like this, and only so::

        callbacks = source.setup(signature)     # once; ops may be added to the graph
        tensors = source.get_input_tensors()    # once for each tower that is built
        (the trainer runs the callbacks: they start and stop whatever the source needs)
        source.release()                        # in the end, however far all this got

    `setup` may start processes, while they can be forked, and the callbacks end them; if the run
    fails before the training, `release` does. A trainer calls it at the end of each run, also if
    `setup` failed; code that sets up a source by hand and does not train must call it. A source
    that takes its data from another one releases that one.

    Subclasses override the methods with a leading underscore. Calls out of order raise
    RuntimeError.

    Attributes:
      cut_datapoints: whether a datapoint with more components than the model has inputs is cut,
        with a warning, and not an error. A trainer sets it for a model in the spelling of 2017.
    """

    cut_datapoints = False

    def __init__(self) -> None:
        self._signature: Optional[List[tf.TensorSpec]] = None
        self._callbacks: List[Callback] = []
        self._name_scope: Optional[str] = None

    @accepts_old_keywords(inputs_desc="input_signature")
    def setup(self, input_signature: Sequence[tf.TensorSpec]) -> List[Callback]:
        """Prepares the source for the default graph.

        Returns the callbacks without which the source does not work, as `get_callbacks`. The
        signature is what the model takes; each spec, or `InputDesc` of 2017, has a name of its own.
        """
        if self.setup_done():
            raise RuntimeError(
                f"This {type(self).__name__} is set up already. Make a new one for each graph "
                "or trainer."
            )
        signature = as_signature(input_signature)
        self._setup([InputSpec(spec.shape, spec.dtype, spec.name) for spec in signature])
        self._signature = signature
        self._callbacks = list(self._get_callbacks())
        if type(self)._reset_state is not InputSource._reset_state:
            self._callbacks.insert(0, _ResetInput(self))
        for callback in self._callbacks:
            callback.set_chief_only(False)  # every worker of a distributed run reads data
            callback.follows = True  # the data may be made by what a callback prepares
        return self.get_callbacks()

    def setup_done(self) -> bool:
        """Whether `setup` has been called."""
        return self._signature is not None

    def get_input_tensors(self) -> List[tf.Tensor]:
        """Returns a tensor for each input of the model; new ones at each call, unless fed."""
        signature = self._require_setup("get_input_tensors")
        tensors = self._get_input_tensors()
        _check_tensors(tensors, signature, type(self).__name__)
        for tensor, spec in zip(tensors, signature):
            if isinstance(tensor, tf.Tensor):
                tensor.set_shape(spec.shape)
        return list(tensors)

    def get_callbacks(self) -> List[Callback]:
        """Returns the callbacks that the trainer must run, the same at each call."""
        self._require_setup("get_callbacks")
        return list(self._callbacks)

    def reset_state(self) -> None:
        """Begins with the data from the start; called before the training."""
        self._reset_state()

    def release(self) -> None:
        """Releases what `setup` took: processes, connections, files.

        May be called at any time but while the callbacks run, and more than once.
        """
        self._release()

    def unblock(self) -> None:
        """Ends what a step waits for; called on another thread, if the run is to end."""
        self._unblock()

    @contextmanager
    def cached_name_scope(self) -> Iterator[str]:
        """Opens a name scope named like the class, in the root, the same at each call; yields its
        full name, ending with `/`.
        """
        with tf.name_scope(None), tf.name_scope(self._name_scope or type(self).__name__) as scope:
            self._name_scope = scope
            yield scope

    def read_by_pass(self) -> Optional[int]:
        """Makes the source give whole passes over its data, one by one, as a validation reads them.

        Called once, after `setup` and before the callbacks run. Each pass then begins with
        `begin_pass`. ValueError if passes cannot be told apart.

        Returns how many steps make a pass; None if a step after the last raises OutOfRangeError.
        """
        self._require_setup("read_by_pass")
        return self._read_by_pass()

    def begin_pass(self) -> None:
        """Begins the next pass, when the one before is over; see `read_by_pass`."""
        self._begin_pass()

    def size(self) -> int:
        """Returns how many steps go through the data once; NotImplementedError if unknown."""
        return self._size()

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        """Override to prepare for this signature; may add ops to the graph."""

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        """Override to return a tensor for each spec of the signature, in the scopes of a tower."""
        raise NotImplementedError(f"{type(self).__name__} must override _get_input_tensors().")

    def _get_callbacks(self) -> Sequence[Callback]:
        """Override to return the callbacks of the source; called once, after `_setup`."""
        return []

    def _reset_state(self) -> None:
        """Override to begin with the data from the start; is then called before the training."""

    def _release(self) -> None:
        """Override to release what `_setup` took; it may have failed, or be released already."""

    def _unblock(self) -> None:
        """Override if a step may wait for something else than a queue of the graph."""

    def _read_by_pass(self) -> Optional[int]:
        """Override if passes would run into each other."""
        try:
            return self.size()
        except NotImplementedError:
            return None

    def _begin_pass(self) -> None:
        """Override if a pass needs less than `reset_state` to begin."""
        self.reset_state()

    def _size(self) -> int:
        raise NotImplementedError(
            f"{type(self).__name__} does not know its size: say TrainConfig(steps_per_epoch=...)."
        )

    def _require_setup(self, method: str) -> List[tf.TensorSpec]:
        if self._signature is None:
            raise RuntimeError(f"{type(self).__name__}.{method}() comes after setup().")
        return self._signature


class FeedfreeInput(InputSource):
    """An input source whose tensors need no feeding."""


class _ResetInput(Callback):
    """Resets the source before the training."""

    def __init__(self, source: InputSource) -> None:
        self._source = source

    def _before_train(self) -> None:
        self._source.reset_state()


class PositionNotKept(Callback):
    """Warns on resume that this input cannot continue and starts over.

    `message` says which input, and what of it is not saved; `instead`, how to resume exactly;
    `has_one`, whether it has a position at all.
    """

    def __init__(self, message: str, instead: str, has_one: bool = True) -> None:
        self._message, self._instead = message, instead
        self._begun, self.has_one = False, has_one

    def _before_train(self) -> None:
        self._begun = True

    def state_dict(self) -> Dict[str, Any]:
        return {"position": None} if self._begun and self.has_one else {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._begun = True
        start_over(self.trainer, self._message, self._instead)


def start_over(trainer: Any, message: str, instead: str) -> None:
    """Warns that a resumed run reads an input from the start; an error if it must not."""
    if trainer.resume_strictly:
        raise RuntimeError(f"{message} {instead}")
    logger.warning(f"{message} It starts over.")


def _check_tensors(tensors: Any, signature: Sequence[tf.TensorSpec], source: str) -> None:
    if not isinstance(tensors, (list, tuple)) or len(tensors) != len(signature):
        names = ", ".join(spec.name for spec in signature)
        raise ValueError(
            f"{source} must give a list of {len(signature)} tensors ({names}), got {tensors!r}."
        )
    for tensor, spec in zip(tensors, signature):
        if tensor.dtype.base_dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"{source} must give {spec.dtype.name} {spec.shape} for input {spec.name!r}, got "
                f"{tensor.dtype.name} {tensor.shape} ({tensor.name})."
            )
