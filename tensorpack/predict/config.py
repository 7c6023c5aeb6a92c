"""The configuration of a predictor: the model, its weights, its input and output tensors."""

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDescBase
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession, SessionInit
from tensorpack.tfutils.tower import TowerFunc
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import check_kind

_MEM_FRACTION = 0.4  # of a GPU, which a predictor often shares
_POSITIONS_OF_2017 = (
    "model session_creator session_init input_names output_names return_input create_graph "
    "session_config"
).split()
# By position, where the later order has an argument of another kind.
_KINDS_OF_2017 = {1: tf.train.SessionCreator, 2: SessionInit, 5: bool, 6: bool, 7: tf.ConfigProto}


def _accepts_positions_of_2017(init: Callable[..., None]) -> Callable[..., None]:
    """Decorates `PredictConfig.__init__` to take positional arguments in the order of 2017, too."""

    @functools.wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        kinds = [(args[i], kind) for i, kind in _KINDS_OF_2017.items() if i < len(args)]
        by_name: Dict[str, Any] = {}
        if any(isinstance(arg, kind) for arg, kind in kinds):
            by_name = dict(zip(_POSITIONS_OF_2017, args))
            args = args[len(by_name) :]
        init(self, *args, **by_name, **kwargs)

    return call


class PredictConfig:
    """Options of a predictor. The positional order of 2017 is taken as well.

    Args:
      model: a `ModelDescBase`. Or give `tower_func` and `input_signature` instead.
      tower_func: a function of one tensor per input, or a `TowerFunc`.
      input_signature: the `tf.TensorSpec` of each input, with `tower_func`.
      input_names: names of the tensors to feed, inputs of the model or any tensor in it; all inputs
        by default.
      output_names: names of the tensors to compute; required.
      session_creator: defaults to `NewSessionCreator()` with `session_config`.
      session_init: where the weights come from; by default variables keep their initial values.
      return_input: whether calls return `(inputs, outputs)`.
      create_graph: whether to build in a new graph instead of the default graph.
      session_config: a `tf.ConfigProto` for the default session creator.
      precision: "fp32", "bf16" or "fp16", as in `TrainConfig`; None leaves it to `session_config`.
      xla: whether XLA compiles what it can.
    """

    @_accepts_positions_of_2017
    @accepts_old_keywords(inputs_desc="input_signature", input_var_names="input_names")
    def __init__(
        self,
        model: Optional[ModelDescBase] = None,
        tower_func: Optional[Callable[..., Any]] = None,
        input_signature: Optional[Sequence[tf.TensorSpec]] = None,
        input_names: Optional[Sequence[str]] = None,
        output_names: Optional[Sequence[str]] = None,
        session_creator: Any = None,
        session_init: Optional[SessionInit] = None,
        return_input: bool = False,
        create_graph: bool = True,
        session_config: Optional[tf.ConfigProto] = None,
        precision: Optional[str] = None,
        xla: bool = False,
    ) -> None:
        self.model = model
        self.tower_func = _tower_func(model, tower_func, input_signature)
        self.input_signature = self.tower_func.input_signature
        default = [spec.name for spec in self.input_signature]
        self.input_names = _names("input_names", default if input_names is None else input_names)
        self.output_names = _names("output_names", output_names)
        computing = ComputeOptions(precision, xla)
        if session_creator is not None and (session_config is not None or computing.is_set):
            raise ValueError(
                "Give either session_creator or session_config, precision and xla: a creator has "
                "its own options."
            )
        self.session_creator = session_creator or NewSessionCreator(
            config=session_config or get_default_sess_config(_MEM_FRACTION),
            precision=precision,
            xla=xla,
        )
        self.computing: ComputeOptions = getattr(self.session_creator, "computing", computing)
        self.session_init = session_init or JustCurrentSession()
        self.return_input = return_input
        self.create_graph = create_graph


def _tower_func(model: Any, function: Any, signature: Any) -> TowerFunc:
    if (model is None) == (function is None):
        raise ValueError("Give either a model, or a tower_func with its input_signature.")
    if model is not None:
        return tower_func_of(model)
    if isinstance(function, TowerFunc):
        return function
    if signature is None:
        raise ValueError("A tower_func needs its input_signature, a list of tf.TensorSpec.")
    return TowerFunc(function, signature)


def tower_func_of(model: Any) -> TowerFunc:
    """Returns the tower function of a `ModelDescBase`."""
    check_kind("model", model, ModelDescBase)
    return TowerFunc(model.build_graph, model.get_input_signature())


def _names(argument: str, names: Optional[Sequence[str]]) -> List[str]:
    if not names or isinstance(names, str):
        raise ValueError(f"{argument} must be a non-empty list of tensor names, got {names!r}.")
    return list(names)
