"""Keeps `run.json` of a training: what is known at its start, and how it ended."""

import functools
import os
import time
import weakref
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional

from tensorpack.callbacks.best_value import best_kept
from tensorpack.compat import tfv1 as tf
from tensorpack.runs.facts import machine_facts, process_facts, script_path
from tensorpack.runs.git import GitFacts
from tensorpack.runs.record import RunRecord, read_record, utc_now
from tensorpack.utils import logger
from tensorpack.utils.checkpoints.find import pointed_to
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.rng import is_seeded, streams_state

from .ending import Ending

_MESSAGE_CHARS = 2000


def _survives(method: Callable[..., None]) -> Callable[..., None]:
    """Logs what goes wrong in a method as a warning; a training is worth more than its record."""

    @functools.wraps(method)
    def call(*args: Any) -> None:
        try:
            method(*args)
        except Exception as error:
            logger.warning(f"The record of this run is not complete: {error!r}", exc_info=True)

    return call


class TrainingRecord:
    """Writes the record of one training into the log directory, if this process is the chief.

    Whatever goes wrong in it is logged as a warning, and the training continues.

    Attributes:
      on_complete: functions to call when the record is complete, in order; their errors are logged.
    """

    def __init__(self, trainer: Any) -> None:
        self.on_complete: List[Callable[[], None]] = []
        self._trainer = weakref.proxy(trainer)
        self._record: Optional[RunRecord] = None
        self._facts: Dict[str, Any] = {}
        self._git: Optional[GitFacts] = None
        self._start = 0.0

    @_survives
    def begin(self) -> None:
        """Notes the start; writes it if there is a log directory already."""
        if not self._trainer.is_chief:
            return
        self._start = time.monotonic()
        self._git = GitFacts(script_path())
        self._facts = {"started": utc_now(), **process_facts(), "machine": machine_facts()}
        self._facts["training"] = {"trainer": self._trainer.__class__.__name__}
        self._write()

    @_survives
    def enter_loop(self) -> None:
        """Adds what the setup has found out, just before the first step."""
        if not self._start:
            return
        self._facts["training"] = _training_facts(self._trainer)
        variables = tf.trainable_variables()
        self._write([[v.op.name, v.shape.as_list(), v.dtype.base_dtype.name] for v in variables])

    @_survives
    def end(self, ending: Ending) -> None:
        """Adds how it ended."""
        if not self._start:
            return
        callbacks = self._trainer._callbacks
        begun = callbacks is not None and self._trainer.loop.begun
        saver = self._trainer.state_saver
        saved = [] if saver is None else pointed_to(saver.checkpoint_dir)
        self._facts.update(
            ended=utc_now(),
            seconds=round(time.monotonic() - self._start, 1),
            result=ending.result,
            message=ending.message[:_MESSAGE_CHARS],
            exit_code=ending.code,
            checkpoint=_short(saved[-1]) if saved else None,
        )
        if begun:
            self._facts.update(
                epoch=self._trainer.epoch_num,
                step=self._trainer.loop.steps_taken,
                best=[f"{_short(path)} ({why})" for path, why in best_kept(callbacks.cbs)],
            )
        elif self._record is not None:  # what the attempt before has come to still holds
            with suppress(LookupError, OSError, TypeError, ValueError):
                before = (read_record(self._record.directory) or {})["attempts"][-2]
                self._facts.update({name: before[name] for name in ("epoch", "step", "best")})
        if self._git is not None:
            self._git.close()
        self._write()

    def run_on_complete(self) -> None:
        """Calls what is to be called when the record is complete and the log has its last lines."""
        for function in self.on_complete:
            _survives(function)()

    def _write(self, parameters: Optional[List[Any]] = None) -> None:
        directory = logger.get_logger_dir()
        if self._record is None and directory is not None:
            self._record = RunRecord(directory)
        if self._record is not None:
            self._facts["git"] = None if self._git is None else self._git.known()
            about_all = None if parameters is None else {"parameters": parameters}
            self._record.write(self._facts, about_all)


def _training_facts(trainer: Any) -> Dict[str, Any]:
    config = trainer.config
    resumed, cluster = trainer.resumed_from, Cluster.from_environment()
    return {
        "trainer": trainer.__class__.__name__,
        "model": None if trainer.model is None else type(trainer.model).__name__,
        "input": [_describe(source) for source in trainer._life.inputs],
        "workers": 1 if cluster is None else cluster.num_workers,
        "towers": len(getattr(trainer, "tower_ids", config.tower)),
        "precision": config.computing.precision,
        "xla": config.computing.xla,
        "deterministic": config.deterministic,
        "seed": streams_state()["seed"] if is_seeded() else None,
        "graph_seed": trainer.graph.seed,
        "steps_per_epoch": trainer.steps_per_epoch,
        "first_epoch": trainer.starting_epoch,
        "max_epoch": trainer.max_epoch,
        "first_step": trainer.loop.steps_taken,
        "resumed_from": None if resumed is None else os.path.basename(resumed),
    }


def _describe(source: Any) -> str:
    """The names of an input source and of what is in it, as `QueueInput(BatchData)`."""
    inner = getattr(source, "_input", None) or getattr(source, "ds", None)
    name = type(source).__name__
    return name if inner is None or inner is source else f"{name}({type(inner).__name__})"


def _short(path: str) -> str:
    """The name of what is in the log directory, the path of anything else."""
    folder, name = os.path.split(path)
    beside = os.path.realpath(folder) == os.path.realpath(logger.get_logger_dir() or "")
    return name if beside else path
