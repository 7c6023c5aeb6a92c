"""What rides along with a training run: the `Callback` contract and the ready-made callbacks.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "Callback CallbackFactory ProxyCallback Triggerable",
    "best_value": "EarlyStop MaxSaver MinSaver",
    "concurrency": "StartProcOrThread",
    "finite": "NonFiniteError StopIfNonFinite",
    "graph": (
        "CheckNumerics DumpParamAsImage DumpTensor DumpTensorAsImage DumpTensors ProcessTensors "
        "RunOp RunUpdateOps"
    ),
    "group": "Callbacks",
    "hooks": "CallbackToHook HookToCallback TFLocalCLIDebugHook",
    "inference": "BinaryClassificationStats ClassificationError Inferencer ScalarStats",
    "inference_runner": (
        "DataParallelInferenceRunner FeedfreeInferenceRunner InferenceRunner InferenceRunnerBase"
    ),
    "misc": "EstimatedTimeLeft InjectShell RunReport SendMonitorData SendStat",
    "monitor": "MonitorBase Monitors ScalarRecord TrainingMonitor",
    "monitors.event_writer": "TFEventWriter TFSummaryWriter",
    "monitors.json_writer": "JSONWriter",
    "monitors.comet": "CometMLMonitor",
    "monitors.scalar_printer": "ScalarPrinter",
    "param": "GraphVarParam HyperParam ObjAttrParam",
    "param_setters": (
        "HumanHyperParamSetter HyperParamSetter HyperParamSetterWithFunc StatMonitorParamSetter"
    ),
    "prof": (
        "GPUMemoryTracker GPUUtilizationTracker GraphProfiler HostMemoryTracker "
        "PeakMemoryTracker ThroughputTracker"
    ),
    "saver": "ModelSaver",
    "schedules": "ScheduledHyperParamSetter",
    "steps": "MaintainStepCounter ProgressBar SessionRunTimeout StepTensorPrinter TensorPrinter",
    "summary": "MergeAllSummaries MovingAverageSummary SimpleMovingAverage",
    "time_report": "TimeReport",
    "trigger": "EnableCallbackIf PeriodicCallback PeriodicRunHooks PeriodicTrigger",
    "watchdog": "StalledTraining Watchdog",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
