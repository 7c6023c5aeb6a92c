"""What rides along with a training run: the `Callback` contract and the ready-made callbacks."""

from .base import Callback, CallbackFactory, ProxyCallback, Triggerable
from .best_saver import MaxSaver, MinSaver
from .concurrency import StartProcOrThread
from .confusion import ConfusionMatrix
from .csv_monitor import CSVMonitor
from .dump_image import DumpParamAsImage, DumpTensorAsImage
from .early_stop import EarlyStop
from .event_writer import TFEventWriter, TFSummaryWriter
from .finite import NonFiniteError, StopIfNonFinite
from .graph import CheckNumerics, DumpTensor, DumpTensors, ProcessTensors, RunOp, RunUpdateOps
from .group import Callbacks
from .hooks import CallbackToHook, HookToCallback, TFLocalCLIDebugHook
from .inference import BinaryClassificationStats, ClassificationError, Inferencer, ScalarStats
from .inference_runner import (
    DataParallelInferenceRunner,
    FeedfreeInferenceRunner,
    InferenceRunner,
    InferenceRunnerBase,
)
from .json_writer import JSONWriter
from .misc import EstimatedTimeLeft, InjectShell, SendMonitorData, SendStat
from .monitor import MonitorBase, Monitors, ScalarRecord, TrainingMonitor
from .online_monitors import CometMLMonitor, WandbMonitor
from .param import GraphVarParam, HyperParam, ObjAttrParam
from .param_setters import (
    HumanHyperParamSetter,
    HyperParamSetter,
    HyperParamSetterWithFunc,
    ScheduledHyperParamSetter,
    StatMonitorParamSetter,
)
from .prof import GraphProfiler
from .run_report import RunReport
from .samples import SampleCounter, SampleScheduledHyperParamSetter
from .saver import ModelSaver
from .scalar_printer import ScalarPrinter
from .steps import (
    MaintainStepCounter,
    ProgressBar,
    SessionRunTimeout,
    StepTensorPrinter,
    TensorPrinter,
)
from .summary import MergeAllSummaries, MovingAverageSummary, SimpleMovingAverage
from .throughput import ThroughputTracker
from .time_report import TimeReport
from .trackers import (
    GPUMemoryTracker,
    GPUUtilizationTracker,
    HostMemoryTracker,
    PeakMemoryTracker,
)
from .trigger import EnableCallbackIf, PeriodicCallback, PeriodicRunHooks, PeriodicTrigger
from .watchdog import StalledTraining, Watchdog

__all__ = [
    "BinaryClassificationStats",
    "CSVMonitor",
    "Callback",
    "CallbackFactory",
    "CallbackToHook",
    "Callbacks",
    "CheckNumerics",
    "ClassificationError",
    "CometMLMonitor",
    "ConfusionMatrix",
    "DataParallelInferenceRunner",
    "DumpParamAsImage",
    "DumpTensor",
    "DumpTensorAsImage",
    "DumpTensors",
    "EarlyStop",
    "EnableCallbackIf",
    "EstimatedTimeLeft",
    "FeedfreeInferenceRunner",
    "GPUMemoryTracker",
    "GPUUtilizationTracker",
    "GraphProfiler",
    "GraphVarParam",
    "HookToCallback",
    "HostMemoryTracker",
    "HumanHyperParamSetter",
    "HyperParam",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "InferenceRunner",
    "InferenceRunnerBase",
    "Inferencer",
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
    "PeakMemoryTracker",
    "PeriodicCallback",
    "PeriodicRunHooks",
    "PeriodicTrigger",
    "ProcessTensors",
    "ProgressBar",
    "ProxyCallback",
    "RunOp",
    "RunReport",
    "RunUpdateOps",
    "SampleCounter",
    "SampleScheduledHyperParamSetter",
    "ScalarPrinter",
    "ScalarRecord",
    "ScalarStats",
    "ScheduledHyperParamSetter",
    "SendMonitorData",
    "SendStat",
    "SessionRunTimeout",
    "SimpleMovingAverage",
    "StalledTraining",
    "StartProcOrThread",
    "StatMonitorParamSetter",
    "StepTensorPrinter",
    "StopIfNonFinite",
    "TFEventWriter",
    "TFLocalCLIDebugHook",
    "TFSummaryWriter",
    "TensorPrinter",
    "ThroughputTracker",
    "TimeReport",
    "TrainingMonitor",
    "Triggerable",
    "WandbMonitor",
    "Watchdog",
]

__path__.append(f"{__path__[0]}/../_addresses/callbacks")  # modules under their old names
