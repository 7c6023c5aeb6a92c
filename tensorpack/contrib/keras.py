"""Trains models of Keras with tensorpack's trainers: `KerasModel`, or `setup_keras_trainer`.

The model is made once, by the user's function. Each tower, of training or of inference, calls it on
its own inputs, in its own phase, and so shares the weights. Keras is `tf.keras` on TensorFlow 1 and
tf-keras on 2; Keras 3 has no graphs.
"""

import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from tensorpack.callbacks import Callback, InferenceRunner, ScalarStats
from tensorpack.compat import load_keras
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import InputSource
from tensorpack.models import regularize_cost_from_collection
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.train import SimpleTrainer, SingleCostTrainer, SyncMultiGPUTrainerParameterServer
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import check_kind
from tensorpack.utils.gpu import get_num_gpu

__all__ = ["KerasModel", "KerasPhaseCallback", "setup_keras_trainer"]

_OF_KERAS = ("keras", "tensorflow", "tensorpack", "tf_keras")  # packages
_Spec = Union[str, Callable[..., Any], Sequence[Any], None]


class KerasPhaseCallback(Callback):
    """Feeds Keras' learning phase in each run: `isTrain` for that of training.

    Few programs need it: a model is called in the phase of its tower, and this callback is added
    where a layer of the user's own asks for `K.learning_phase()`.
    """

    _chief_only = False

    def __init__(self, isTrain: bool) -> None:
        phase = load_keras().backend.learning_phase()  # a number if the program has set it
        self._feeds = {phase: bool(isTrain)} if isinstance(phase, tf.Tensor) else {}

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return tf.train.SessionRunArgs(fetches=[], feed_dict=self._feeds)


_of_2018 = accepts_old_keywords(inputs_desc="input_signature", targets_desc="target_signature")


@_of_2018
def setup_keras_trainer(
    trainer: SingleCostTrainer,
    get_model: Callable[..., Any],
    input_signature: Sequence[tf.TensorSpec],
    target_signature: Sequence[tf.TensorSpec],
    input: InputSource,
    optimizer: tf.train.Optimizer,
    loss: _Spec,
    metrics: _Spec,
    loss_weights: Optional[Sequence[float]] = None,
) -> List[str]:
    """Builds the training graph of a Keras model in a trainer; call its `train` afterwards.

    The cost, `total_loss`, is the sum of the losses and of what regularizers add. It, each loss and
    each metric are tensors of the tower and moving summaries, under the names that they are given
    by; a second one of the same name has a number.

    Args:
      trainer: one whose towers share their variables.
      get_model: takes a tensor for each input and returns a `tf.keras.Model` of them.
      input_signature, target_signature: a `tf.TensorSpec` for each input, and for each output.
      input: gives the inputs, then the targets.
      optimizer: of `tf.train`.
      loss: for each output, the name of a loss of Keras, or a function of target and output.
      metrics: likewise; an output may have a list of them, and the only one has them all.
      loss_weights: the factor of each loss; 1 by default.

    Returns:
      the names of the scalars, for the `ScalarStats` of an `InferenceRunner`.
    """
    check_kind("optimizer", optimizer, tf.train.Optimizer, " of tf.train (AdamOptimizer)")
    tower = _Tower(get_model, len(input_signature), loss, metrics, loss_weights)
    trainer.setup_graph([*input_signature, *target_signature], input, tower, lambda: optimizer)
    with trainer.graph.as_default():
        phase = load_keras().backend.learning_phase()
        if isinstance(phase, tf.Tensor) and phase.op in ancestors([trainer.towers[0].outputs]):
            trainer.register_callback(KerasPhaseCallback(True))
    return tower.scalars


class KerasModel:
    """A Keras model with the methods of one, `compile` and `fit`, that tensorpack trains.

    Args:
      get_model, input_signature, target_signature: required; as in `setup_keras_trainer`.
      input: required; a `DataFlow`, which the trainer chooses how to read, or an `InputSource`.
      trainer: by default one on all GPUs, or on the CPU where there is none; also an attribute.
    """

    @_of_2018
    def __init__(
        self,
        get_model: Callable[..., Any],
        input_signature: Optional[Sequence[tf.TensorSpec]] = None,
        target_signature: Optional[Sequence[tf.TensorSpec]] = None,
        input: Union[DataFlow, InputSource, None] = None,
        trainer: Optional[SingleCostTrainer] = None,
    ) -> None:
        if input_signature is None or target_signature is None or input is None:
            raise TypeError("KerasModel needs an input_signature, a target_signature and an input.")
        if trainer is None:
            gpus = get_num_gpu()
            trainer = SyncMultiGPUTrainerParameterServer(gpus) if gpus > 1 else SimpleTrainer()
        if isinstance(input, DataFlow):
            input = trainer._input_of(input)
        self.trainer = trainer
        self._graph: Any = (trainer, get_model, input_signature, target_signature, input)
        self._scalars: List[str] = []

    def compile(self, optimizer: Any, loss: _Spec, metrics: _Spec = None, **kwargs: Any) -> None:
        """Builds the training graph; takes the last arguments of `setup_keras_trainer`."""
        kwargs.update(optimizer=optimizer, loss=loss, metrics=metrics)
        self._scalars = setup_keras_trainer(*self._graph, **kwargs)

    def fit(self, validation_data: Any = None, **kwargs: Any) -> None:
        """Trains the model, after `compile`, without which it raises a RuntimeError.

        Args:
          validation_data: a `DataFlow` or an `InputSource`, over which an `InferenceRunner` goes
            before all other callbacks; it logs the scalars as `validation_{name}`.
          kwargs: those of `Trainer.train_with_defaults`, such as `steps_per_epoch`, `max_epoch`,
            `callbacks` and `resume`.
        """
        if not self._scalars:
            raise RuntimeError("Call compile() before fit(), which needs a loss.")
        if validation_data is not None:
            runner = InferenceRunner(validation_data, ScalarStats(self._scalars))
            kwargs["callbacks"] = [runner, *(kwargs.get("callbacks") or [])]
        self.trainer.train_with_defaults(**kwargs)


class _Tower:
    """The tower function: takes inputs and targets, returns the cost."""

    def __init__(self, get_model: Any, inputs: int, loss: Any, metrics: Any, weights: Any) -> None:
        keras, losses = load_keras(), _as_list(loss)
        self.scalars: List[str] = []  # the names
        self._losses = [self._named(keras.losses.get, function) for function in losses]
        self._weights = weights or [1.0] * len(losses)
        entries = [metrics] if len(losses) == 1 else metrics or [None] * len(losses)
        self._metrics = [[self._named(keras.metrics.get, e) for e in _as_list(m)] for m in entries]
        self.scalars.append("total_loss")
        self._get_model, self._num_inputs = get_model, inputs
        self._models: Dict[tf.Graph, Any] = {}

    def _named(self, get: Callable[[Any], Any], spec: Any) -> Tuple[str, Callable[..., Any]]:
        function = _accuracy if spec in ("accuracy", "acc") else get(spec)
        if isinstance(function, load_keras().metrics.Metric):
            raise TypeError(f"{spec!r} has a state: give a function, or use an Inferencer.")
        base = spec if isinstance(spec, str) else getattr(spec, "__name__", type(spec).__name__)
        names = [base, *(f"{base}_{i}" for i in range(1, len(self.scalars) + 1))]
        self.scalars.append(next(name for name in names if name not in self.scalars))
        return self.scalars[-1], function

    def __call__(self, *tensors: tf.Tensor) -> tf.Tensor:
        targets = tensors[self._num_inputs :]
        outputs, activity = self._call_model(list(tensors[: self._num_inputs]))
        lists = outputs, targets, self._losses, self._weights, self._metrics
        if len({*map(len, lists)}) > 1:
            counts = "{} outputs, {} targets, {} losses, {} weights and {} entries of metrics"
            raise ValueError(f"Give one of each, got {counts.format(*map(len, lists))}.")
        costs, measured = [], []
        for i, result in enumerate(zip(targets, outputs)):
            costs.append(_mean(*self._losses[i], *result))
            measured += [_mean(*metric, *result) for metric in self._metrics[i]]
        regularize = regularize_cost_from_collection()
        weighted = map(operator.mul, costs, self._weights)
        total = tf.add_n([*weighted, *activity, regularize], name="total_loss")
        add_moving_summary(*costs, *measured, regularize, total)
        return total

    def _call_model(self, inputs: List[tf.Tensor]) -> Tuple[List[tf.Tensor], List[tf.Tensor]]:
        """Returns the outputs of the model, and the losses that its activations have."""
        tower: Any = get_current_tower_context()
        model = self._models.get(tower.graph)
        if model is None:
            model = self._models[tower.graph] = self._make_model(inputs)
        elif tower.is_training and tower.vs_name:
            hint = "share those of the first: use SyncMultiGPUTrainerParameterServer."
            raise ValueError(
                f"{tower} has variables of its own, but towers of a Keras model {hint}"
            )
        # What there is at these inputs is of the model as it was made.
        at_creation = {id(e) for e in model.get_updates_for(inputs) + model.get_losses_for(inputs)}
        outputs = model(inputs if len(inputs) > 1 else inputs[0], training=tower.is_training)
        updates = [op for op in model.get_updates_for(inputs) if id(op) not in at_creation]
        tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS).extend(updates)
        activity = [loss for loss in model.get_losses_for(inputs) if id(loss) not in at_creation]
        return _as_list(outputs), activity

    def _make_model(self, inputs: List[tf.Tensor]) -> Any:
        keras = load_keras()
        with tf.name_scope(None):  # variables have the same names in any tower
            model = self._get_model(*inputs)
        if not isinstance(model, keras.Model):
            raise TypeError(
                f"get_model must return a Model of {keras.__name__}, got {model!r}. Keras 3 has no "
                "graphs: import tf_keras, or set TF_USE_LEGACY_KERAS=1 before TensorFlow is loaded."
            )
        weight_losses = model.get_losses_for(None)
        tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES).extend(weight_losses)
        frozen = {id(var) for var in model.non_trainable_weights}
        trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = [var for var in trainable if id(var) not in frozen]
        return model


def _as_list(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _mean(name: str, function: Any, target: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    owner = str(getattr(getattr(function, "func", function), "__module__", "")).partition(".")[0]
    shape = output.shape.as_list() if output.shape.ndims else []
    if owner in _OF_KERAS and shape[-1:] == [1] and target.shape.ndims == len(shape) - 1:
        target = tf.expand_dims(target, -1)  # as Keras' `fit` does: there is a broadcast otherwise
    return tf.reduce_mean(tf.cast(function(target, output), tf.float32), name=name)


def _accuracy(target: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
    """What Keras takes "accuracy" for, by the shapes."""
    classes = output.shape.as_list()[-1]
    one_hot = target.shape.ndims == output.shape.ndims and target.shape.as_list()[-1] == classes
    kind = "binary" if classes == 1 else "categorical" if one_hot else "sparse_categorical"
    target = tf.cast(target, output.dtype) if classes == 1 else target
    return load_keras().metrics.get(f"{kind}_accuracy")(target, output)
