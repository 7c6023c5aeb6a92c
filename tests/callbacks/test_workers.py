"""Which callbacks each worker of a group runs; the others are those of the chief alone."""

from tensorpack import callbacks
from tensorpack.callbacks import Callback

# What changes the training or watches over the process; what writes or shows is the chief's.
EACH_WORKER = {
    "CheckNumerics",
    "GPUUtilizationTracker",
    "HookToCallback",
    "HostMemoryTracker",
    "HumanHyperParamSetter",
    "HyperParamSetter",
    "HyperParamSetterWithFunc",
    "MaintainStepCounter",
    "Monitors",
    "MovingAverageSummary",
    "ProgressBar",
    "RunOp",
    "RunUpdateOps",
    "ScheduledHyperParamSetter",
    "SessionRunTimeout",
    "StartProcOrThread",
    "StatMonitorParamSetter",
    "StopIfNonFinite",
    "TFLocalCLIDebugHook",
    "Watchdog",
}


def test_each_worker_runs_what_its_training_needs():
    kinds = {name: getattr(callbacks, name) for name in callbacks.__all__}
    kinds = {name: kind for name, kind in kinds.items() if isinstance(kind, type)}
    found = {
        name for name, kind in kinds.items() if issubclass(kind, Callback) and not kind._chief_only
    }
    assert found == EACH_WORKER
