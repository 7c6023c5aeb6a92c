"""What rides along with a training run: the `Callback` contract and the ready-made callbacks."""

from .base import Callback, CallbackFactory, ProxyCallback, Triggerable
from .best_saver import MaxSaver, MinSaver
from .concurrency import StartProcOrThread
from .event_writer import TFEventWriter
from .finite import NonFiniteError, StopIfNonFinite
from .graph import CheckNumerics, DumpTensor, DumpTensors, ProcessTensors, RunOp, RunUpdateOps
from .group import Callbacks
from .hooks import CallbackToHook, HookToCallback
from .json_writer import JSONWriter
from .misc import EstimatedTimeLeft, InjectShell, SendMonitorData, SendStat
from .monitor import MonitorBase, Monitors, ScalarRecord, TrainingMonitor
from .param import GraphVarParam, HyperParam, ObjAttrParam
from .param_setters import (
    HumanHyperParamSetter,
    HyperParamSetter,
    HyperParamSetterWithFunc,
    ScheduledHyperParamSetter,
    StatMonitorParamSetter,
)
from .prof import GraphProfiler
from .saver import ModelSaver
from .scalar_printer import ScalarPrinter
from .steps import MaintainStepCounter, ProgressBar, SessionRunTimeout, TensorPrinter
from .summary import MergeAllSummaries, MovingAverageSummary, SimpleMovingAverage
from .throughput import ThroughputTracker
from .time_report import TimeReport
from .trigger import EnableCallbackIf, PeriodicCallback, PeriodicRunHooks, PeriodicTrigger
from .watchdog import StalledTraining, Watchdog

__all__ = [
    "Callback",
    "CallbackFactory",
    "CallbackToHook",
    "Callbacks",
    "CheckNumerics",
    "DumpTensor",
    "DumpTensors",
    "EnableCallbackIf",
    "EstimatedTimeLeft",
    "GraphProfiler",
    "GraphVarParam",
    "HookToCallback",
    "HumanHyperParamSetter",
    "HyperParam",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "InjectShell",
    "JSONWriter",
    "MaintainStepCounter",
    "MaxSaver",
    "MergeAllSummaries",
    "MinSaver",
    "ModelSaver",
    "MonitorBase",
    "Monitors",
    "MovingAverageSummary",
    "NonFiniteError",
    "ObjAttrParam",
    "PeriodicCallback",
    "PeriodicRunHooks",
    "PeriodicTrigger",
    "ProcessTensors",
    "ProgressBar",
    "ProxyCallback",
    "RunOp",
    "RunUpdateOps",
    "ScalarPrinter",
    "ScalarRecord",
    "ScheduledHyperParamSetter",
    "SendMonitorData",
    "SendStat",
    "SessionRunTimeout",
    "SimpleMovingAverage",
    "StalledTraining",
    "StartProcOrThread",
    "StatMonitorParamSetter",
    "StopIfNonFinite",
    "TFEventWriter",
    "TensorPrinter",
    "ThroughputTracker",
    "TimeReport",
    "TrainingMonitor",
    "Triggerable",
    "Watchdog",
]

__path__.append(f"{__path__[0]}/../_addresses/callbacks")  # modules under their old names
