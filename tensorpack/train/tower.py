"""Trainers with a tower function, which they build for training and, on request, for prediction."""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.finite import StopIfNonFinite
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc, ModelDescBase
from tensorpack.input_source import InputSource, QueueInput
from tensorpack.predict.base import OnlinePredictor
from tensorpack.predict.factory import PredictorFactory
from tensorpack.tfutils._taking import warn_of_taking
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.gradproc import FilterNoneGrad
from tensorpack.tfutils.graph import freeze_collection
from tensorpack.tfutils.loss_scale import LossScaleOptimizer
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.tower import TowerFunc, TowerTensorHandle, TowerTensorHandles
from tensorpack.utils import logger
from tensorpack.utils.argtools import call_only_once, memoized_ignoreargs
from tensorpack.utils.checks import check_kind

from .base import Trainer

CostFn = Callable[..., tf.Tensor]
OptFn = Callable[[], tf.train.Optimizer]
_GATE_NONE, _GATE_OP = tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP


class TowerTrainer(Trainer):
    """A trainer whose model is a tower function, which it can build again for prediction.

    Attributes:
      tower_func: the `TowerFunc`; set once, by a subclass.
      vs_name_for_predictor: variable scope of the variables that predictors use.
    """

    vs_name_for_predictor = ""
    _built_for: Optional[ComputeOptions] = None

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self._tower_func: Optional[TowerFunc] = None
        self._predictors: List[OnlinePredictor] = []

    @property
    def tower_func(self) -> TowerFunc:
        """The function that builds the towers."""
        if self._tower_func is None:
            raise RuntimeError("This trainer has no tower function yet: setup() builds the graph.")
        return self._tower_func

    @tower_func.setter
    def tower_func(self, value: TowerFunc) -> None:
        if self._tower_func is not None:
            raise RuntimeError("The tower function of a trainer can be set only once.")
        self._tower_func = check_kind("tower_func", value, TowerFunc)

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
        predictor.sess = self.sess  # its first call prepares it, which takes 25 ms
        self._predictors.append(predictor)
        return predictor

    def get_predictors(
        self, input_names: Sequence[str], output_names: Sequence[str], n: int
    ) -> List[OnlinePredictor]:
        """Returns n predictors, on the predict towers in turn."""
        count = len(self._predict_ids)
        return [self.get_predictor(input_names, output_names, tower=i % count) for i in range(n)]

    def device_of(self, gpu: Union[int, str]) -> Any:
        """Returns what `tf.device` takes for a tower on this GPU, see `tower_device`.

        Where there is none, towers are spread over the CPU devices of the session config.
        """
        session_config = self.config.session_config if self.config else None
        counts = {} if session_config is None else session_config.device_count
        return tower_device(gpu, counts.get("CPU", 1))

    @property
    def predictor_factory(self) -> PredictorFactory:
        """Builds the towers of the predictors."""
        return self._factory(self.tower_func)

    def _factory(self, tower_func: TowerFunc) -> PredictorFactory:
        towers, scope = self._predict_ids, self.vs_name_for_predictor
        return PredictorFactory(tower_func, towers, scope, self.computing, self.device_of)

    @property
    def computing(self) -> ComputeOptions:
        """In which precision the session computes, and whether XLA compiles it."""
        return self.config.computing if self.config else ComputeOptions()

    def build_inference_towers(
        self,
        source: InputSource,
        towers: Sequence[Tuple[str, Union[int, str, None]]],
        tower_func: Any = None,
    ) -> Tuple[List[TowerTensorHandle], List[Callback]]:
        """Builds copies of the model that predict on the data of an input source.

        Args:
          source: not set up yet; the trainer releases it at the end of the run.
          towers: for each copy, a name of its own and the relative id of a GPU: -1 for the CPU,
            None for the first of `TrainConfig.predict_tower`; or the name of a device.
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
        """Sets a source up, to be released at the end of the run; returns its callbacks."""
        if not source.setup_done():  # otherwise it belongs to another run, and the setup refuses it
            self._inputs.append(source)  # before: the setup may fail when it has begun
        if isinstance(self.model, ModelDescBase) and self.model.in_spelling_of_2017:
            source.cut_datapoints = True
        return source.setup(signature or self.input_signature)

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As the base class; then the predictors made so far get the session."""
        precision = getattr(session_creator, "computing", self.computing).precision
        if precision == "fp16" and self._built_for and self._built_for.precision != "fp16":
            raise ValueError(
                "In fp16 the graph scales its cost, but it was built without: give the trainer its "
                "TrainConfig(precision='fp16') when it is made, before setup_graph()."
            )
        super().initialize(session_creator, session_init)
        for predictor in self._predictors:  # also one that has been called in another
            predictor.sess, predictor._run = self.sess, None
        towers = self._tower_func.towers.training() if self._tower_func else []
        inputs = [tensor for tower in towers for tensor in tower.inputs]
        warn_of_taking(self.sess, inputs, lambda: self.in_step)

    @property
    def _predict_ids(self) -> List[Any]:
        return self.config.predict_tower if self.config else [0]


class SingleCostTrainer(TowerTrainer):
    """A trainer that minimises one scalar, the cost that the tower function returns.

    A subclass builds its towers in `_setup_graph`. It may set these attributes of the class.

    Attributes:
      COLOCATE_GRADIENTS_WITH_OPS: whether a gradient is computed on the device of its op.
      GATE_GRADIENTS: whether the gradients of an op wait for each other, without which the results
        of a step depend on the timing of threads.
      AGGREGATION_METHOD: how gradients of a tensor are added up, a `tf.AggregationMethod`.
      XLA_COMPILE: whether XLA compiles what it can of the towers, see `TrainConfig(xla=)`.
    """

    COLOCATE_GRADIENTS_WITH_OPS = True
    GATE_GRADIENTS = True
    AGGREGATION_METHOD = tf.AggregationMethod.DEFAULT
    XLA_COMPILE = False

    @property
    def computing(self) -> ComputeOptions:
        """As in the base class; with `XLA_COMPILE`, XLA compiles it in any case."""
        computing = super().computing
        if self.XLA_COMPILE:
            return ComputeOptions(computing.precision, xla=True, by_scope=True)
        return computing

    def _setup(self) -> None:
        if self._tower_func is not None:
            return  # setup_graph() was called by hand
        config, model = self.config, self.model
        if model is None:
            if type(self).run_step is not Trainer.run_step:
                return  # a subclass whose steps need no model
            raise ValueError(
                f"{type(self).__name__} has no model to train: give TrainConfig(model=...), or "
                "call setup_graph() before train()."
            )
        if not isinstance(model, ModelDesc):
            raise TypeError(
                f"{type(self).__name__} needs a ModelDesc, which has a cost, got "
                f"{type(model).__name__}."
            )
        if config.data is None:
            if config.dataflow is None:
                raise ValueError("TrainConfig needs dataflow or data to train a model.")
            config.data = self._input_of(config.dataflow)
        signature = model.get_input_signature()
        self.setup_graph(signature, config.data, model.build_graph, model.get_optimizer)

    def _input_of(self, dataflow: DataFlow) -> InputSource:
        """Override to choose how a `dataflow` is read."""
        return QueueInput(dataflow)

    @call_only_once
    def setup_graph(
        self,
        input_signature: Sequence[tf.TensorSpec],
        input: InputSource,
        get_cost_fn: CostFn,
        get_opt_fn: OptFn,
    ) -> None:
        """Builds the training graph.

        Args:
          input_signature: the `tf.TensorSpec` of each input.
          get_cost_fn: takes one tensor for each input and returns the scalar cost.
          get_opt_fn: returns the optimizer; called once.
        """
        self.tower_func = TowerFunc(get_cost_fn, input_signature)
        with self.graph.as_default():
            try:
                input_callbacks = self._set_up_input(input)
                computing = self._built_for = self.computing
                wrap = LossScaleOptimizer if computing.precision == "fp16" else lambda opt: opt
                optimizer = memoized_ignoreargs(lambda: wrap(get_opt_fn()))
                with computing.scope():
                    callbacks = self._setup_graph(input, self.tower_func, optimizer)
            except BaseException:
                if self._guard is None:  # called by hand, so no run comes to its end
                    self._release_inputs()
                raise
            self.register_callback(input_callbacks + list(callbacks or []))
            _warn_about_unused_losses()

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        """Override to build the towers and `train_op`; returns callbacks that they need.

        Args:
          get_cost_fn: builds a tower, inside a `TowerContext`.
          get_opt_fn: returns the optimizer, the same at each call.
        """
        raise NotImplementedError(f"{type(self).__name__} must override _setup_graph().")

    def _make_get_grad_fn(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> Callable[[], List[Any]]:
        """Returns a function that builds a tower and returns its (gradient, variable) pairs."""
        check = StopIfNonFinite([])  # of the costs of all towers

        def get_grads() -> List[Any]:
            optimizer = get_opt_fn()
            tensors = input.get_input_tensors()
            summaries = len(tf.get_collection(tf.GraphKeys.SUMMARIES))
            cost = get_cost_fn(*tensors)
            if not isinstance(cost, tf.Tensor) or cost.shape.as_list() != []:
                raise ValueError(
                    f"The cost must be a scalar tensor, got {cost!r}. Return it from "
                    "build_graph(), or set self.cost in _build_graph() (the spelling of 2017)."
                )
            if not check.tensors:
                shows_nothing = len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == summaries
                check.shown_as = "cost" if shows_nothing else None
                self.register_callback(check)
            check.tensors.append(cost)
            grads = optimizer.compute_gradients(
                cost,
                var_list=tf.trainable_variables(),
                gate_gradients=_GATE_OP if self.GATE_GRADIENTS else _GATE_NONE,
                aggregation_method=self.AGGREGATION_METHOD,
                colocate_gradients_with_ops=self.COLOCATE_GRADIENTS_WITH_OPS,
            )
            return FilterNoneGrad().process(grads)

        return get_grads


def _warn_about_unused_losses() -> None:
    # TensorFlow 2 makes the loss of a regularizer again at each use, so that has no consumers.
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    losses = [loss for loss in losses if isinstance(loss, tf.Tensor)]
    if losses and not any(loss.consumers() for loss in losses):
        logger.warning(
            f"{len(losses)} tensors in REGULARIZATION_LOSSES are used by nothing: add them to the "
            "cost in build_graph()."
        )
