from tensorpack.callbacks import Callback, ScalarPrinter
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines


class Putting(Callback):
    """Puts scalars after each step."""

    def __init__(self, **scalars):
        self._scalars = scalars

    def _trigger_step(self):
        for name, value in self._scalars.items():
            self.trainer.monitors.put_scalar(name, value + self.global_step)


def printed(capsys, max_epoch=1, scalars=(("b", 0.0),), **options):
    putting = Putting(**dict(scalars))
    with tf.Graph().as_default():
        MiniTrainer([putting], [ScalarPrinter(**options)], max_epoch=max_epoch).train()
    return log_lines(capsys)


def test_scalars_are_printed_after_each_epoch_sorted(capsys):
    scalars = {"zeta": 0.1234567, "alpha": 0.00001234567, "cost/b": 9.0}
    assert printed(capsys, scalars=scalars.items()) == ["alpha: 2", "cost/b: 11", "zeta: 2.1235"]


def test_each_is_printed_once(capsys):
    assert printed(capsys, max_epoch=2) == ["b: 2", "b: 4"]

    class PuttingOnce(Callback):
        def _before_train(self):
            self.trainer.monitors.put_scalar("once", 1)

    with tf.Graph().as_default():
        MiniTrainer([PuttingOnce()], [ScalarPrinter()], max_epoch=3).train()
    assert log_lines(capsys) == ["once: 1"]


def test_after_steps(capsys):
    assert printed(capsys, enable_step=True) == ["b: 1", "b: 2"]
    assert printed(capsys, enable_step=True, enable_epoch=False) == ["b: 1", "b: 2"]
    assert printed(capsys, enable_epoch=False) == []


def test_lists_choose_by_regular_expressions(capsys):
    scalars = [("cost", 0), ("grad/W", 0), ("grad/b", 0)]
    assert printed(capsys, scalars=scalars, whitelist=["^grad"]) == ["grad/W: 2", "grad/b: 2"]
    assert printed(capsys, scalars=scalars, blacklist=["^grad"]) == ["cost: 2"]
    assert printed(capsys, scalars=scalars, whitelist=["W"], blacklist=["grad"]) == []
