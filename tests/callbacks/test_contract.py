"""What every callback must do, tested on one of each kind."""

import pytest

from tensorpack import callbacks as cb
from tensorpack.compat import tfv1 as tf
from tests.contracts.callback import CallbackContract
from tests.helpers import CallbackSpy


class Thing:
    rate = 0.5


def param():
    return cb.ObjAttrParam(Thing(), "rate")


CALLBACKS = [
    lambda: cb.Callback(),
    lambda: cb.CallbackFactory(trigger=lambda callback: None),
    lambda: cb.CSVMonitor(),
    lambda: cb.CheckNumerics(run_step=True),
    lambda: cb.DumpTensorAsImage("weight", map_func=lambda weight: [[weight]]),
    lambda: cb.DumpTensors(["cost"]),
    lambda: cb.EarlyStop("cost", 3),
    lambda: cb.EnableCallbackIf(CallbackSpy(), lambda callback: True),
    lambda: cb.EstimatedTimeLeft(),
    lambda: cb.GPUMemoryTracker(),
    lambda: cb.GraphProfiler(),
    lambda: cb.HostMemoryTracker(),
    lambda: cb.HumanHyperParamSetter(param()),
    lambda: cb.HyperParamSetterWithFunc(param(), lambda epoch, old: epoch),
    lambda: cb.InjectShell(),
    lambda: cb.JSONWriter(),
    lambda: cb.MaxSaver("cost"),
    lambda: cb.MergeAllSummaries(),
    lambda: cb.MergeAllSummaries(period=1, run_alone=True),
    lambda: cb.MinSaver("cost"),
    lambda: cb.ModelSaver(),
    lambda: cb.MonitorBase(),
    lambda: cb.Monitors([]),
    lambda: cb.MovingAverageSummary(),
    lambda: cb.PeriodicCallback(cb.GraphProfiler(dump_metadata=True), every_k_steps=2),
    lambda: cb.PeriodicCallback(CallbackSpy(), every_k_steps=2),
    lambda: cb.PeriodicRunHooks(CallbackSpy(), 2),
    lambda: cb.PeriodicTrigger(CallbackSpy(), every_k_epochs=1),
    lambda: cb.PeriodicTrigger(cb.TimeReport(), every_k_steps=1),
    lambda: cb.ProcessTensors(["cost"], lambda cost: None),
    lambda: cb.ProgressBar(["cost"]),
    lambda: cb.ProxyCallback(CallbackSpy()),
    lambda: cb.RunOp(lambda: tf.no_op("nothing")),
    lambda: cb.RunUpdateOps(),
    lambda: cb.SampleCounter(samples_per_step=5),
    lambda: cb.SampleScheduledHyperParamSetter(param(), [(0, 1.0)], cb.SampleCounter(5)),
    lambda: cb.ScalarPrinter(),
    lambda: cb.ScheduledHyperParamSetter("weight", [(0, 1.0), (9, 2.0)], "linear", True),
    lambda: cb.ScheduledHyperParamSetter(param(), [(0, 1.0)]),
    lambda: cb.SendMonitorData("true", ["cost"]),
    lambda: cb.SendStat("true", []),
    lambda: cb.SessionRunTimeout(60000),
    lambda: cb.SimpleMovingAverage(["cost"], 2),
    lambda: cb.StatMonitorParamSetter(param(), "cost", lambda old: old, 0.1, 3),
    lambda: cb.StopIfNonFinite(["cost"]),
    lambda: cb.TFEventWriter(),
    lambda: cb.TensorPrinter(["cost"]),
    lambda: cb.ThroughputTracker(32),
    lambda: cb.TimeReport(),
    lambda: cb.Watchdog(),
]

# Those that run in each worker of a group, and not in the chief alone.
IN_EACH_WORKER = {
    *["CheckNumerics", "GPUUtilizationTracker", "HookToCallback", "HostMemoryTracker"],
    *["HumanHyperParamSetter", "HyperParamSetter", "HyperParamSetterWithFunc"],
    *["MaintainStepCounter", "Monitors", "MovingAverageSummary", "ProgressBar", "RunOp"],
    *["RunUpdateOps", "SampleCounter", "SampleScheduledHyperParamSetter"],
    *["ScheduledHyperParamSetter", "SessionRunTimeout", "StartProcOrThread"],
    *["StatMonitorParamSetter", "StopIfNonFinite", "TFLocalCLIDebugHook", "Watchdog"],
}


def test_callbacks_that_run_in_each_worker_of_a_group():
    classes = {name: getattr(cb, name) for name in dir(cb)}
    callbacks = {
        name: each
        for name, each in classes.items()
        if isinstance(each, type) and issubclass(each, cb.Callback)
    }
    assert len(callbacks) > 50
    assert {name for name, each in callbacks.items() if not each._chief_only} == IN_EACH_WORKER


class TestEveryCallback(CallbackContract):
    @pytest.fixture(params=CALLBACKS, ids=lambda make: make.__code__.co_names[1], autouse=True)
    def make(self, request):
        self.make_callback = request.param
        self.name = request.param.__code__.co_names[1]
