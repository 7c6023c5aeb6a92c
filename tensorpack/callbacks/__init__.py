"""What rides along with a training run: the `Callback` contract and the ready-made callbacks.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "Callback CallbackFactory ProxyCallback Triggerable",
    "best_saver": "MaxSaver MinSaver",
    "concurrency": "StartProcOrThread",
    "confusion": "ConfusionMatrix",
    "csv_monitor": "CSVMonitor",
    "dump_image": "DumpParamAsImage DumpTensorAsImage",
    "early_stop": "EarlyStop",
    "event_writer": "TFEventWriter TFSummaryWriter",
    "finite": "NonFiniteError StopIfNonFinite",
    "graph": "CheckNumerics DumpTensor DumpTensors ProcessTensors RunOp RunUpdateOps",
    "group": "Callbacks",
    "hooks": "CallbackToHook HookToCallback TFLocalCLIDebugHook",
    "inference": "BinaryClassificationStats ClassificationError Inferencer ScalarStats",
    "inference_runner": (
        "DataParallelInferenceRunner FeedfreeInferenceRunner InferenceRunner InferenceRunnerBase"
    ),
    "json_writer": "JSONWriter",
    "misc": "EstimatedTimeLeft InjectShell SendMonitorData SendStat",
    "monitor": "MonitorBase Monitors ScalarRecord TrainingMonitor",
    "online_monitors": "CometMLMonitor WandbMonitor",
    "param": "GraphVarParam HyperParam ObjAttrParam",
    "param_setters": (
        "HumanHyperParamSetter HyperParamSetter HyperParamSetterWithFunc "
        "ScheduledHyperParamSetter StatMonitorParamSetter"
    ),
    "prof": "GraphProfiler",
    "run_report": "RunReport",
    "samples": "SampleCounter SampleScheduledHyperParamSetter",
    "saver": "ModelSaver",
    "scalar_printer": "ScalarPrinter",
    "steps": "MaintainStepCounter ProgressBar SessionRunTimeout StepTensorPrinter TensorPrinter",
    "summary": "MergeAllSummaries MovingAverageSummary SimpleMovingAverage",
    "throughput": "ThroughputTracker",
    "time_report": "TimeReport",
    "trackers": "GPUMemoryTracker GPUUtilizationTracker HostMemoryTracker PeakMemoryTracker",
    "trigger": "EnableCallbackIf PeriodicCallback PeriodicRunHooks PeriodicTrigger",
    "watchdog": "StalledTraining Watchdog",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
