"""Trainers with a tower function, which they build for training and, on request, for prediction."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.finite import StopIfNonFinite
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import InputSource
from tensorpack.predict.base import OnlinePredictor
from tensorpack.predict.factory import PredictorFactory
from tensorpack.tfutils.collection import freeze_collection
from tensorpack.tfutils.gradproc import FilterNoneGrad
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.tower import TowerFunc, TowerTensorHandle, TowerTensorHandles
from tensorpack.utils.argtools import call_only_once

from .base import Trainer
from .config import TrainConfig

__all__ = ["SingleCostTrainer", "TowerTrainer", "launch_train_with_config"]


class TowerTrainer(Trainer):
    """A trainer whose model is a tower function, which it can build again for prediction.

    Attributes:
      tower_func: the `TowerFunc`; set once, by a subclass.
      vs_name_for_predictor: variable scope of the variables that predictors use.
    """

    vs_name_for_predictor = ""

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self._tower_func: Optional[TowerFunc] = None
        self._predictors: List[OnlinePredictor] = []

    @property
    def tower_func(self) -> TowerFunc:
        """The function that builds the towers."""
        if self._tower_func is None:
            raise RuntimeError(
                "This trainer has no tower function yet: its graph is built in setup()."
            )
        return self._tower_func

    @tower_func.setter
    def tower_func(self, value: TowerFunc) -> None:
        if self._tower_func is not None:
            raise RuntimeError("The tower function of a trainer can be set only once.")
        if not isinstance(value, TowerFunc):
            raise TypeError(f"tower_func must be a TowerFunc, got {type(value).__name__}.")
        self._tower_func = value

    @property
    def input_signature(self) -> List[tf.TensorSpec]:
        """The `tf.TensorSpec` of each input of the model."""
        return self.tower_func.input_signature

    @property
    def towers(self) -> TowerTensorHandles:
        """Handles of all towers built so far."""
        return self.tower_func.towers

    def get_predictor(
        self,
        input_names: Sequence[str],
        output_names: Sequence[str],
        tower: int = 0,
        device: Optional[int] = None,
    ) -> OnlinePredictor:
        """Returns a predictor with the variables that are being trained.

        It may be called once the session exists. Its tower is built on the first request for it, so
        that comes before the callbacks are set up, at the latest in a callback's `_setup_graph`.

        Args:
          input_names: names of inputs, or of any tensor of the tower, to be fed.
          output_names: names of the tensors to compute.
          tower: index into `TrainConfig.predict_tower`. A negative number, or any number if that
            is `[0]`, the default, is taken for a `device`, the later spelling's third argument.
          device: a GPU id, or -1 for the CPU, instead of `tower`.
        """
        if device is None and (tower < 0 or self._predict_ids == [0]):
            device = tower
        with self.graph.as_default():
            predictor = self.predictor_factory.get_predictor(
                input_names, output_names, tower, device
            )
        if self.sess is not None:
            predictor.bind(self.sess)
        self._predictors.append(predictor)
        return predictor

    def get_predictors(
        self, input_names: Sequence[str], output_names: Sequence[str], n: int
    ) -> List[OnlinePredictor]:
        """Returns n predictors, on the predict towers in turn."""
        count = len(self._predict_ids)
        return [self.get_predictor(input_names, output_names, tower=i % count) for i in range(n)]

    @property
    def predictor_factory(self) -> PredictorFactory:
        """Builds the towers of the predictors."""
        return self._factory(self.tower_func)

    def _factory(self, tower_func: TowerFunc) -> PredictorFactory:
        vs_name = self.vs_name_for_predictor
        return PredictorFactory(tower_func, self._predict_ids, vs_name, self.computing)

    @property
    def computing(self) -> ComputeOptions:
        """In which precision the session computes, and whether XLA compiles it."""
        return self.config.computing if self.config else ComputeOptions()

    def build_inference_towers(
        self,
        source: InputSource,
        towers: Sequence[Tuple[str, Optional[int]]],
        tower_func: Any = None,
    ) -> Tuple[List[TowerTensorHandle], List[Callback]]:
        """Builds copies of the model that predict on the data of an input source.

        Args:
          source: not set up yet; the trainer releases it at the end of the run.
          towers: for each copy, a name of its own and the relative id of a GPU: -1 for the CPU,
            None for the first of `TrainConfig.predict_tower`.
          tower_func: builds a copy; a `TowerFunc`, or a function that takes the inputs of the
            model. Defaults to that of the trainer.

        Returns:
          handles of the towers, and the callbacks of the source, which the caller must run.
        """
        if tower_func is None:
            tower_func = self.tower_func
        elif not isinstance(tower_func, TowerFunc):
            tower_func = TowerFunc(tower_func, self.input_signature)
        with freeze_collection([tf.GraphKeys.SUMMARIES, "MOVING_SUMMARY_OPS"]):
            callbacks = self._set_up_input(source, tower_func.input_signature)
        factory = self._factory(tower_func)
        ids = [self._predict_ids[0] if gpu is None else gpu for _, gpu in towers]
        handles = [factory.build(name, gpu, source) for (name, _), gpu in zip(towers, ids)]
        return handles, callbacks

    def _set_up_input(
        self, source: InputSource, signature: Optional[List[tf.TensorSpec]] = None
    ) -> List[Callback]:
        """Sets a source up for the model, to be released at the end of the run; returns its
        callbacks.
        """
        if not source.setup_done():  # otherwise it belongs to another run, and the setup refuses it
            self._shutdown.releases(source)  # before: the setup may fail when it has begun
        return source.setup(signature or self.input_signature)

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As the base class; then the predictors made so far get the session."""
        super().initialize(session_creator, session_init)
        for predictor in self._predictors:
            predictor.bind(self.sess)

    @property
    def _predict_ids(self) -> List[int]:
        return self.config.predict_tower if self.config else [0]


class SingleCostTrainer(TowerTrainer):
    """A trainer that minimises one scalar, the cost that the tower function returns."""

    @call_only_once
    def setup_graph(
        self,
        input_signature: Sequence[tf.TensorSpec],
        input: InputSource,
        get_cost_fn: Callable[..., tf.Tensor],
        get_opt_fn: Callable[[], tf.train.Optimizer],
    ) -> None:
        """Builds the training graph.

        Args:
          input_signature: the `tf.TensorSpec` of each input.
          input: where the inputs come from.
          get_cost_fn: takes one tensor for each input and returns the scalar cost.
          get_opt_fn: returns the optimizer.
        """
        self.tower_func = TowerFunc(get_cost_fn, input_signature)
        with self.graph.as_default():
            try:
                input_callbacks = self._set_up_input(input)
                with self.computing.scope():
                    callbacks = self._setup_graph(input, get_opt_fn)
            except BaseException:
                if self._guard is None:  # called by hand, so no run comes to its end
                    self._shutdown.release_inputs()
                raise
            self.register_callback(input_callbacks + callbacks)

    def _setup_graph(
        self, input: InputSource, get_opt_fn: Callable[[], tf.train.Optimizer]
    ) -> List[Callback]:
        """Override to build the towers and `train_op`; returns callbacks that they need."""
        raise NotImplementedError(f"{type(self).__name__} must override _setup_graph().")

    def _gradients(self, input: InputSource, optimizer: tf.train.Optimizer) -> List[Any]:
        """Builds the tower and returns its (gradient, variable) pairs, without the variables it
        does not reach.
        """
        cost = self.tower_func(*input.get_input_tensors())
        if not isinstance(cost, tf.Tensor) or cost.shape.as_list() != []:
            raise ValueError(
                f"The cost must be a scalar tensor, got {cost!r}. Return it from build_graph(), or "
                "set self.cost in _build_graph() (the spelling of 2017)."
            )
        self.register_callback(StopIfNonFinite([cost]))
        grads = optimizer.compute_gradients(
            cost, var_list=tf.trainable_variables(), colocate_gradients_with_ops=True
        )
        return FilterNoneGrad().process(grads)


def launch_train_with_config(config: TrainConfig, trainer: SingleCostTrainer) -> None:
    """Trains `config.model` on `config.dataflow` or `config.data` with `trainer`.

    Args:
      config: has a model and data.
      trainer: made without a config, such as `SimpleTrainer()`.

    Raises:
      TypeError: an argument is of the wrong kind.
      ValueError: the config has no model or no data, or the trainer has a config already.
    """
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {type(config).__name__}.")
    if not isinstance(trainer, SingleCostTrainer):
        raise TypeError(
            "trainer must be a SingleCostTrainer such as SimpleTrainer(), got "
            f"{type(trainer).__name__}."
        )
    if trainer.config is not None:
        raise ValueError(
            "This trainer has a config already: call its train(), or make it without one."
        )
    if not isinstance(config.model, ModelDesc):
        raise ValueError("TrainConfig needs a model, a ModelDesc.")
    trainer.config = config
    trainer.train()
