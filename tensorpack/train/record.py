"""Writes `run.json` of a training: what is known at its start, and how it ended."""

import functools
import json
import os
import platform
import socket
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional

from tensorpack.callbacks.best_value import best_paths
from tensorpack.compat import tfv1 as tf
from tensorpack.runs.record import FILENAME, LOST, read_record, utc_now
from tensorpack.utils import logger
from tensorpack.utils._words import command_line, without_secrets
from tensorpack.utils.atomic import move_to_backup, write_atomic
from tensorpack.utils.checkpoints.find import pointed_to
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.nvml import NVMLContext, visible_devices
from tensorpack.utils.rng import is_seeded, streams_state
from tensorpack.utils.workers.processes import usable_cores

from .ending import Ending

_MESSAGE_CHARS = 2000
_GIT_SECONDS = 5.0  # for an answer
_PROGRESS = ("epoch", "step", "best")


def _survives(method: Callable[..., None]) -> Callable[..., None]:
    """Logs what goes wrong in a method as a warning; a training is worth more than its record."""

    @functools.wraps(method)
    def call(*args: Any) -> None:
        try:
            method(*args)
        except Exception as error:
            trace = not isinstance(error, OSError)  # of a disk, the message is enough
            logger.warning(f"The record of this run is not complete: {error!r}", exc_info=trace)

    return call


class TrainingRecord:
    """Writes an attempt to the record in the log directory, if this process is the chief.

    It is added at the start and completed at the end; attempts before it are kept. A record that is
    damaged is renamed, with `.corrupt` behind its name. Whatever goes wrong is logged as a warning,
    and the training continues.

    Attributes:
      on_complete: functions to call when the record is complete, in order; their errors are logged.
    """

    def __init__(self, trainer: Any) -> None:
        self.on_complete: List[Callable[[], None]] = []
        self._trainer = weakref.proxy(trainer)
        self._directory: Optional[str] = None
        self._attempt: Dict[str, Any] = {}  # empty in other processes than the chief
        self._progress: Dict[str, Any] = {}  # of the attempt before
        self._start = time.monotonic()

    @_survives
    def begin(self) -> None:
        """Notes the start; writes it if there is a log directory already."""
        if not self._trainer.is_chief:
            return
        self._start, script = time.monotonic(), _script_path()
        loaded = {name: sys.modules[name] for name in ("tensorpack", "tensorflow", "numpy")}
        versions = {name: module.__version__ for name, module in loaded.items()}
        self._attempt = {
            "id": os.urandom(4).hex(),
            "started": utc_now(),
            "command": without_secrets(command_line()),
            "script": script,
            "folder": os.getcwd(),
            "process": os.getpid(),
            "host": socket.gethostname(),
            "versions": {**versions, "python": platform.python_version()},
            "git": None if script is None else _git_facts(os.path.dirname(script)),
            "machine": _machine_facts(),
            "training": {"trainer": self._trainer.__class__.__name__},
        }
        self._write()

    @_survives
    def enter_loop(self) -> None:
        """Adds what the setup has found out, just before the first step."""
        if self._attempt:
            self._attempt["training"] = _training_facts(self._trainer)
            variables = tf.trainable_variables()
            self._write(
                [[v.op.name, v.shape.as_list(), v.dtype.base_dtype.name] for v in variables]
            )

    @_survives
    def end(self, ending: Ending) -> None:
        """Adds how it ended."""
        if not self._attempt:
            return
        trainer, saver = self._trainer, self._trainer.state_saver
        saved = [] if saver is None else pointed_to(saver.checkpoint_dir)
        progress = self._progress
        if trainer._callbacks is not None and trainer.begun:
            best = [f"{_short(path)} ({why})" for path, why in best_paths(trainer._callbacks.cbs)]
            progress = dict(zip(_PROGRESS, (trainer.epoch_num, trainer.steps_taken, best)))
        self._attempt.update(
            progress,
            ended=utc_now(),
            seconds=round(time.monotonic() - self._start, 1),
            result=ending.result,
            message=ending.message[:_MESSAGE_CHARS],
            exit_code=ending.code,
            checkpoint=_short(saved[-1]) if saved else None,
        )
        self._write()

    def run_on_complete(self) -> None:
        """Calls what is to be called when the record is complete and the log has its last lines."""
        for function in self.on_complete:
            _survives(function)()

    def _write(self, parameters: Optional[List[Any]] = None) -> None:
        self._directory = self._directory or logger.get_logger_dir()
        if self._directory is None:
            return
        path = os.path.join(self._directory, FILENAME)
        try:
            record = read_record(self._directory) or {}
        except ValueError as error:
            aside = move_to_backup(path, ".corrupt")
            logger.warning(f"{error} It was renamed to {aside}, and a new one is begun.")
            record = {}
        attempts = record.get("attempts", [])
        earlier = [old for old in attempts if old.get("id") != self._attempt["id"]]
        for old in earlier:  # its process is gone, or the directory would be locked
            old.setdefault("result", LOST)
            self._progress = {name: old[name] for name in _PROGRESS if name in old}
        record.update(format=1, attempts=[*earlier, self._attempt])
        if parameters is not None:
            record["parameters"] = parameters
        text = json.dumps(record, indent=1, default=str)
        write_atomic(path, text.encode("ascii") + b"\n", sync_folder=False)


def _script_path() -> Optional[str]:
    """Returns the real path of the running script; None in a shell or a notebook."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    # A program that runs scripts leaves the path of the script where the script looks for it.
    if path and sys.argv[0].endswith(".py") and os.path.isfile(sys.argv[0]):
        path = sys.argv[0]
    return path and os.path.realpath(path)


def _git_facts(folder: str) -> Optional[Dict[str, Any]]:
    """The commit of a folder, its branch, and whether a file that git tracks has changed.

    None outside of a checkout and without git, and for what git does not say in time.
    """
    # A checkout may belong to another user, as in a container; another git may run meanwhile.
    git = ["git", "-c", "safe.directory=*", "-C", folder]
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    limits: Dict[str, Any] = {"timeout": _GIT_SECONDS, "stderr": subprocess.DEVNULL, "env": env}
    facts: Optional[Dict[str, Any]] = None
    with suppress(OSError, subprocess.SubprocessError):
        names = ["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]
        commit, branch = os.fsdecode(subprocess.check_output([*git, *names], **limits)).split()
        facts = {"commit": commit, "branch": None if branch == "HEAD" else branch, "dirty": None}
        changes = ["status", "--porcelain", "--untracked-files=no"]
        facts["dirty"] = bool(subprocess.check_output([*git, *changes], **limits))
    return facts


def _machine_facts() -> Dict[str, Any]:
    """The CPU's name, the usable cores, bytes of memory, and the GPUs that the process may use."""
    cpu = platform.machine()
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
        cpu = next(names, cpu)
    gpus, visible = [], visible_devices()
    with suppress(ImportError, RuntimeError), NVMLContext() as nvml:
        devices = nvml.devices() if visible is None else [nvml.device(name) for name in visible]
        gpus += [{"name": gpu.name(), "memory": gpu.memory()["total"]} for gpu in devices]
    return {
        "cpu": cpu,
        "cores": usable_cores(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _training_facts(trainer: Any) -> Dict[str, Any]:
    config = trainer.config
    resumed, cluster = trainer.resumed_from, Cluster.from_environment()
    return {
        "trainer": trainer.__class__.__name__,
        "model": None if trainer.model is None else type(trainer.model).__name__,
        "input": [_describe(source) for source in trainer._inputs],
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
        "first_step": trainer.steps_taken,
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
