"""Validation: runs the model over a whole data set and logs what inferencers make of it."""

from collections import Counter
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import FeedfreeInput, FeedInput, InputSource, QueueInput, StagingInput
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.hooked_session import HookedSession
from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import as_list, check_kind, is_integer

from .base import Callback
from .group import Callbacks
from .hooks import HookToCallback
from .inference import Inferencer

Device = Union[int, str, None]

_tower_names: PerGraph = PerGraph(Counter)
# Which inferencer has put a scalar, by its name; None if several have, which was logged.
_owners: PerGraph[Dict[str, Optional[Inferencer]]] = PerGraph(dict)


class InferenceRunnerBase(Callback):
    """Validates when it is triggered: runs a whole data set through towers of its own.

    Each validation is one pass over the data, whole and by itself. What the inferencers return is
    put into `trainer.monitors` when it is over. So a validation that is interrupted leaves nothing
    behind; it is run again, on the same data, when the run is resumed.

    Its arguments are those of an `InferenceRunner`.

    Attributes:
      infs: the inferencers, as a list.
    """

    def __init__(
        self,
        input: Union[DataFlow, InputSource],
        infs: Union[Inferencer, Sequence[Inferencer]],
        tower_name: str = "InferenceTower",
        tower_func: Any = None,
    ) -> None:
        self._source = self._as_source(input)
        self.infs = [infs] if isinstance(infs, Inferencer) else as_list(self, "infs", infs)
        for inf in self.infs:
            check_kind("Each of infs", inf, Inferencer, " such as ScalarStats(...)")
        self._tower_name, self._tower_func = tower_name, tower_func
        self._hooks: List[Callback] = []
        self._group: Optional[Callbacks] = None  # all that see the runs of a validation
        self._begin: Any = None  # the state of the group at the begin of the running validation

    def register_hook(self, hook: tf.train.SessionRunHook) -> None:
        """Adds a hook around each run of the validation; before `setup_graph`."""
        if self._group is not None:
            raise RuntimeError(f"Hooks of {self} are registered before the callbacks are set up.")
        self._hooks.append(HookToCallback(hook))

    def _as_source(self, input: Any) -> InputSource:
        if isinstance(input, DataFlow):
            return self._wrap(input)
        if isinstance(input, StagingInput):
            raise ValueError(
                f"{self} cannot read a StagingInput, which holds data back at the end of a pass: "
                "give it the input inside."
            )
        return check_kind("input", input, InputSource, " or a DataFlow")

    def _wrap(self, ds: DataFlow) -> InputSource:
        """Override to choose how a dataflow is read."""
        return FeedInput(ds)

    def _towers(self, name: str) -> List[Tuple[str, Device]]:
        """Override to return the names and devices of the towers."""
        raise NotImplementedError(f"{type(self).__name__} must override _towers().")

    def _setup_graph(self) -> None:
        counts, name = _tower_names.get(), self._tower_name
        counts[name] += 1
        placed = self._towers(name if counts[name] == 1 else f"{name}_{counts[name] - 1}")
        towers, callbacks = self.trainer.build_inference_towers(
            self._source, placed, self._tower_func
        )
        self._total: Optional[int] = None
        with suppress(NotImplementedError):
            self._total = self._source.size()
        self._steps = self._source.read_by_pass()
        if len(towers) > 1 and self._steps is None:
            raise ValueError(
                f"{self} shares a pass out among {len(towers)} towers, so it must know its size: "
                "give the data a length, or use InferenceRunner."
            )
        self._group = Callbacks([*callbacks, *self._hooks, *self.infs])
        self._group.setup_graph(self.trainer)
        fetches = [inf.get_fetches() for inf in self.infs]
        self._fetches: Any = []  # of each tower: the rows of its inputs, and for the inferencers
        for tower in towers:
            with tf.name_scope(f"{tower.ns_name}/"):
                rows = [tf.shape(tensor, name="rows")[:1] for tensor in tower.inputs]
            self._fetches.append((rows, [*map(tower.get_tensors, fetches)]))
        self._first_fetches = self._fetches[:1]

    def _before_train(self) -> None:
        self._sess = HookedSession(
            self.trainer.sess, self._group.get_hooks(), self._group.run_along
        )
        if self._total is None:
            logger.warning(
                f"[{self}] The size of the input is not known: evaluates until the data ends."
            )
        else:
            logger.info(f"[{self}] Will eval {self._total} iterations")
        self._group.before_train()

    def _after_epoch(self) -> None:
        self._group.after_epoch()

    def _trigger(self) -> None:
        if self.trainer.state_saver is not None:
            self._begin = self._group_state()
        self._source.begin_pass()
        for inf in self.infs:
            inf.before_inference()
        count = self._run_pass()
        if self._total is not None and count != self._total:
            logger.warning(
                f"[{self}] The data ended after {count} datapoints, but its size is {self._total}."
            )
        for inf in self.infs:
            self._put(inf)
        self._begin = None

    def _run_pass(self) -> int:
        """Gives each datapoint of a pass to the inferencers; returns how many there were."""
        count = 0
        with get_tqdm(total=self._total, desc=str(self)) as bar:
            while self._steps is None or count < self._steps:
                self.trainer.check_stop()
                whole = self._steps is None or self._steps - count >= len(self._fetches)
                try:
                    values = self._sess.run(self._fetches if whole else self._first_fetches)
                except tf.errors.OutOfRangeError as error:
                    self.trainer.check_stop()  # the reason may be that the run ends
                    if not count:
                        raise RuntimeError(f"The input of {self} has no data.") from error
                    break
                for rows, results in values:
                    sizes = {tuple(row) for row in rows}  # an empty one for a scalar
                    is_batch = len(sizes) == 1 and sizes != {()}
                    for inf, tensors in zip(self.infs, results):
                        inf.batch_size = int(rows[0][0]) if is_batch else 1
                        inf.on_fetches(tensors)
                count += len(values)
                bar.update(len(values))
        return count

    def _put(self, inf: Inferencer) -> None:
        scalars = inf.after_inference()
        for name, value in (scalars or {}).items():
            if np.size(value) != 1 or np.asarray(value).dtype.kind not in "biuf":
                logger.warning(f"[{self}] {inf} has no number for {name!r}: {value!r:.80}")
                continue
            owners = _owners.get(self.graph)
            if owners.setdefault(name, inf) not in (inf, None):
                owners[name] = None
                logger.warning(
                    f"[{self}] Two inferencers log {name!r}: give each a prefix or name of its own."
                )
            self.trainer.monitors.put_scalar(name, value)

    def _after_train(self) -> None:
        self._group.after_train()

    def _group_state(self) -> Dict[str, Any]:
        states = self._group.state_dict() if self._group is not None else {}
        return {"states": states, "names": self._group.names()} if states else {}

    def state_dict(self) -> Dict[str, Any]:
        return self._group_state() if self._begin is None else self._begin

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._group.load_states(state["states"], state["names"], self.trainer.resume_strictly)


class InferenceRunner(InferenceRunnerBase):
    """Runs the model over a whole data set each epoch, and logs statistics of its outputs.

    A `DataFlow` is read through a `FeedInput`. A validation takes `size()` steps of the input. If
    the size is not known, it takes all that there are; a `QueueInput` must know it.

    A run may have several runners. Their inferencers must log scalars of different names.

    Args:
      input: a `DataFlow` or an `InputSource`, but no `StagingInput`, used by nothing else.
      infs: an `Inferencer`, or a list of them.
      tower_name: name scope of the tower; a second one of the same name gets a number.
      tower_func: builds the tower; a `TowerFunc`, or a function that takes the inputs of the model.
        Defaults to the model that is trained. In the place of it 2017 has `extra_hooks`.
      device: relative id of the GPU, -1 for the CPU, or the name of a device such as "/cpu:1";
        defaults to the first of `TrainConfig.predict_tower`.
      extra_hooks: a list of `tf.train.SessionRunHook` around each run, see `register_hook`.
    """

    def __init__(
        self,
        input: Union[DataFlow, InputSource],
        infs: Union[Inferencer, Sequence[Inferencer]],
        tower_name: str = "InferenceTower",
        tower_func: Optional[Callable[..., Any]] = None,
        device: Device = None,
        extra_hooks: Optional[Sequence[tf.train.SessionRunHook]] = None,
    ) -> None:
        if isinstance(tower_func, (list, tuple)):
            tower_func, extra_hooks = None, tower_func
        super().__init__(input, infs, tower_name, tower_func)
        self._device = device
        for hook in extra_hooks or []:
            self.register_hook(hook)

    def _towers(self, name: str) -> List[Tuple[str, Device]]:
        return [(name, self._device)]


def FeedfreeInferenceRunner(*args: Any, **kwargs: Any) -> InferenceRunner:
    """Returns an `InferenceRunner`; the name of 2017 for an input that needs no feeding."""
    return InferenceRunner(*args, **kwargs)


class DataParallelInferenceRunner(InferenceRunnerBase):
    """As `InferenceRunner`, with a tower on each of several GPUs, each of which takes datapoints.

    A `DataFlow` is read through a `QueueInput`; its length must be known. Another input must be a
    `FeedfreeInput`. What is left after equally many runs of all towers is run on the first.
    Which tower gets which datapoint is not fixed.

    The `gpus` are relative ids, or names of devices such as "/cpu:1"; or their number. Each tower
    has its index behind its name.
    """

    def __init__(
        self,
        input: Union[DataFlow, FeedfreeInput],
        infs: Union[Inferencer, Sequence[Inferencer]],
        gpus: Union[int, Sequence[Union[int, str]]],
        tower_name: str = "InferenceTower",
        tower_func: Optional[Callable[..., Any]] = None,
    ) -> None:
        super().__init__(input, infs, tower_name, tower_func)
        self._gpus = as_list(self, "gpus", range(gpus) if is_integer(gpus) else gpus)  # type: ignore
        if not self._gpus or len(set(self._gpus)) < len(self._gpus):
            raise ValueError(f"{self}: gpus must be different devices, at least one, got {gpus}.")

    def _wrap(self, ds: DataFlow) -> InputSource:
        return QueueInput(ds)

    def _as_source(self, input: Any) -> InputSource:
        source = super()._as_source(input)
        if not isinstance(source, FeedfreeInput):
            raise TypeError(
                f"{self} needs an input that each tower can read by itself, such as a QueueInput, "
                f"got {type(source).__name__}. Give it the DataFlow."
            )
        return source

    def _towers(self, name: str) -> List[Tuple[str, Device]]:
        return [(f"{name}{i}", gpu) for i, gpu in enumerate(self._gpus)]

    def _setup_graph(self) -> None:
        if self.trainer.deterministic and len(self._gpus) > 1:
            raise ValueError(
                f"{self} on {len(self._gpus)} GPUs shares data out by chance, which a "
                "deterministic run must not: use InferenceRunner."
            )
        super()._setup_graph()
