"""What to train, on which data, with which callbacks, for how long."""

import inspect
from typing import Any, List, Mapping, Optional, Sequence, Union

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.graph import RunUpdateOps
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.callbacks.monitors.event_writer import TFEventWriter
from tensorpack.callbacks.monitors.json_writer import JSONWriter
from tensorpack.callbacks.monitors.scalar_printer import ScalarPrinter
from tensorpack.callbacks.steps import ProgressBar
from tensorpack.callbacks.summary import MergeAllSummaries, MovingAverageSummary
from tensorpack.dataflow.base import DataFlow
from tensorpack.graph_builder import ModelDescBase
from tensorpack.input_source import InputSource
from tensorpack.tfutils.checkpoint import newest_valid
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.devices import as_towers
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession, SaverRestore, SessionInit
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean
from tensorpack.utils.checks import as_count, as_list, as_number, check_kind

from .determinism import check_deterministic, one_thread
from .resume import check_policy
from .run import ENDLESS


def DEFAULT_CALLBACKS() -> List[Callback]:
    """Returns new callbacks of the kinds that a run has by default."""
    return [MovingAverageSummary(), ProgressBar(), MergeAllSummaries(), RunUpdateOps()]


def DEFAULT_MONITORS() -> List[MonitorBase]:
    """Returns new monitors of the kinds that every run has unless `monitors` says otherwise."""
    return [TFEventWriter(), JSONWriter(), ScalarPrinter()]


class TrainConfig:
    """Options of a training run.

    Args:
      dataflow, data: what to train on, a `DataFlow` or an `InputSource`.
      model: the `ModelDesc` to train.
      callbacks, extra_callbacks: in this order; the latter default to `DEFAULT_CALLBACKS()`.
      monitors: where scalars go; defaults to `DEFAULT_MONITORS()`.
      session_creator: defaults to a `NewSessionCreator` with `session_config`.
      session_config: a `tf.ConfigProto`, for the default session creator; defaults to
        `get_default_sess_config()`.
      session_init: what sets variables after their initialisers; defaults to nothing.
      steps_per_epoch: steps in each epoch, 0 for callbacks alone; defaults to the size of the data.
        A fraction is cut off, with a warning.
      starting_epoch, max_epoch: numbers of the first and the last epoch.
      nr_tower: number of training towers; sets `tower` to the first so many.
      tower: relative GPU ids of the training towers; defaults to `[0]`.
      predict_tower: relative GPU ids of the towers of predictors, -1 for the CPU, or names of
        devices such as "/cpu:1"; defaults to `[0]`.
      resume: whether to resume an earlier run in the log directory with its whole state: "never";
        "auto", if there is one; "must", exactly, or it is an error; or the path of a checkpoint, or
        of a directory with some. A state that is found comes before `session_init` and
        `starting_epoch`.
      deterministic: whether equal programs do equal runs, bit by bit, also if they are stopped and
        resumed in between: TensorFlow gets one thread, and a `QueueInput` makes the data of a step
        when that step begins, not ahead of it. Needs `fix_rng_seed` before.
      precision: how convolutions and matrix products are computed: "fp32"; "bf16", on a CPU;
        "fp16", on a GPU, with the cost scaled by a `LossScaleOptimizer`. Variables and checkpoints
        are float32 in any case. None is what the session config says. It is an error where it has
        no effect.
      xla: whether XLA compiles what it can, likewise.
      commands: what one can do with the model, to the command that does it, logged at the end of
        the run; `{model}` in it stands for the path of the last checkpoint. "resume" is what
        continues the run: `{"resume": "python a.py --resume", "evaluate": "python b.py {model}"}`.

    Attributes:
      callbacks: `callbacks` and those of `extra_callbacks` that are not among them, in this order.
      computing: what `precision` and `xla` make, or what the session creator has.
    """

    def __init__(
        self,
        dataflow: Optional[DataFlow] = None,
        data: Optional[InputSource] = None,
        model: Optional[ModelDescBase] = None,
        callbacks: Optional[Sequence[Callback]] = None,
        extra_callbacks: Optional[Sequence[Callback]] = None,
        monitors: Optional[Sequence[MonitorBase]] = None,
        session_creator: Any = None,
        session_config: Any = None,
        session_init: Optional[SessionInit] = None,
        starting_epoch: int = 1,
        steps_per_epoch: Optional[float] = None,
        max_epoch: int = ENDLESS,
        nr_tower: int = 1,
        tower: Optional[Sequence[int]] = None,
        predict_tower: Optional[Sequence[Union[int, str]]] = None,
        resume: str = "never",
        deterministic: bool = False,
        precision: Optional[str] = None,
        xla: bool = False,
        commands: Optional[Mapping[str, str]] = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            unknown = ", ".join(sorted(kwargs))
            raise TypeError(f"TrainConfig has no argument {unknown}.{_advice(kwargs)}")
        if dataflow is not None and data is not None:
            raise ValueError("Give dataflow or data, not both: an InputSource has its own.")
        if session_creator is not None and session_config is not None:
            raise ValueError("Give session_creator or session_config, not both: it has its own.")
        self.dataflow = _check("dataflow", dataflow, DataFlow)
        self.data = _check("data", data, InputSource)
        self.model = _check("model", model, ModelDescBase)
        extra = DEFAULT_CALLBACKS() if extra_callbacks is None else extra_callbacks
        self.extra_callbacks = _check_all("extra_callbacks", extra)
        mine = _check_all("callbacks", callbacks or [])
        # one that passes the lists of another config on gives each callback once
        self.callbacks = mine + [cb for cb in self.extra_callbacks if cb not in mine]
        monitors = DEFAULT_MONITORS() if monitors is None else monitors
        self.monitors = _check_all("monitors", monitors, MonitorBase)
        self.resume = check_policy(resume)
        self.commands = dict(commands or {})
        self.deterministic = bool(deterministic)
        self._set_session(session_creator, session_config, ComputeOptions(precision, xla))
        session_init = JustCurrentSession() if session_init is None else session_init
        self.session_init = _check("session_init", session_init, SessionInit)
        self.starting_epoch = as_count(self, "starting_epoch", starting_epoch)
        self.max_epoch = as_count(self, "max_epoch", max_epoch)
        self.steps_per_epoch = (
            as_count(self, "the size of the data", self._data_size())
            if steps_per_epoch is None
            else _as_steps(steps_per_epoch)
        )
        self.nr_tower = nr_tower
        if tower is not None:
            self.tower = as_towers("TrainConfig", "tower", tower)
        predict_tower = [0] if predict_tower is None else predict_tower
        self.predict_tower = as_towers("TrainConfig", "predict_tower", predict_tower)

    def _set_session(self, creator: Any, config: Any, computing: ComputeOptions) -> None:
        if creator is None:
            config = one_thread(config) if self.deterministic else config
            config = config or get_default_sess_config()
            creator = NewSessionCreator(
                config=config, precision=computing.precision, xla=computing.xla
            )
        elif computing.is_set:
            raise ValueError(
                "precision and xla are options of the session, and session_creator makes that: "
                "give them to it, as in NewSessionCreator(precision=..., xla=...), or give "
                "session_config instead of it."
            )
        self.session_creator = creator
        self.computing: ComputeOptions = getattr(creator, "computing", computing)
        if self.deterministic:
            check_deterministic(self.computing)

    def _data_size(self) -> int:
        if self.data is None and self.dataflow is None:
            raise ValueError("TrainConfig needs steps_per_epoch, or data whose size can be used.")
        try:
            return len(self.dataflow) if self.dataflow is not None else self.data.size()
        except NotImplementedError as error:
            raise ValueError("The data does not know its size: give steps_per_epoch.") from error

    @property
    def session_config(self) -> Any:
        """The `tf.ConfigProto` of the session creator, None if it has none."""
        return getattr(self.session_creator, "config", None)

    @property
    def nr_tower(self) -> int:
        """Number of training towers; setting it takes the first so many GPUs."""
        return len(self.tower)

    @nr_tower.setter
    def nr_tower(self, value: int) -> None:
        self.tower = list(range(as_count(self, "nr_tower", value)))


class AutoResumeTrainConfig(TrainConfig):
    """A `TrainConfig` with `resume="auto"`: resumes the run in the log directory, if any.

    Args:
      always_resume: whether to do so even if `session_init` or `starting_epoch` says something
        else.
    """

    def __init__(self, always_resume: bool = True, **kwargs: Any) -> None:
        given = kwargs.get("session_init") is not None or kwargs.get("starting_epoch", 1) != 1
        kwargs.setdefault("resume", "auto" if always_resume or not given else "never")
        super().__init__(**kwargs)

    @staticmethod
    def get_sessinit_resume(dir: Optional[str] = None) -> Optional[SessionInit]:
        """Returns what loads the newest whole checkpoint in a directory, by default the log
        directory; None if there is none.

        Raises:
          NoValidCheckpoint: all are damaged.
        """
        directory = dir or logger.get_logger_dir()
        path = None if directory is None else newest_valid(directory)
        return None if path is None else SaverRestore(path)


def _advice(unknown: Any) -> str:
    if "dataset" in unknown:
        return " It is called dataflow."
    if "optimizer" in unknown:
        return " The optimizer is ModelDesc.optimizer()."
    known = inspect.signature(TrainConfig).parameters
    return "".join(did_you_mean(name, known) for name in sorted(unknown))


def _check(argument: str, value: Any, kind: type) -> Any:
    return None if value is None else check_kind(argument, value, kind)


def _check_all(argument: str, values: Any, kind: type = Callback) -> List[Any]:
    given = as_list("TrainConfig", argument, values)
    lists = [part if isinstance(part, (list, tuple)) else [part] for part in given]
    return [check_kind(f"each of {argument}", cb, kind) for part in lists for cb in part]


def _as_steps(value: Any) -> int:
    steps = as_number("TrainConfig", "steps_per_epoch", value, least=0)
    if steps > 1 and steps != int(steps):
        steps = int(steps)
        logger.warning(
            f"steps_per_epoch={value} is cut to {steps}. Divide with // instead of /, or use int()."
        )
    return as_count("TrainConfig", "steps_per_epoch", steps, least=0)
