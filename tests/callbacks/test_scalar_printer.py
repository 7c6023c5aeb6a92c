from tensorpack.callbacks import ScalarPrinter
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import contract_of

TestScalarPrinter = contract_of(ScalarPrinter)


def printed(capsys, max_epoch=1, scalars=(("b", 0.0),), **options):
    """What is logged of scalars that are put after each step, with its number added."""

    def put(callback):
        for name, value in scalars:
            callback.trainer.monitors.put_scalar(name, value + callback.global_step)

    with tf.Graph().as_default():
        callbacks, monitors = [when(trigger_step=put)], [ScalarPrinter(**options)]
        MiniTrainer(callbacks, monitors, max_epoch=max_epoch).train()
    return log_lines(capsys)


def test_scalars_are_printed_after_each_epoch_sorted(capsys):
    scalars = [("zeta", 0.1234567), ("alpha", 0.00001234567), ("m/b", 9.0)]
    assert printed(capsys, scalars=scalars) == ["alpha: 2", "m/b: 11", "zeta: 2.1235"]


def test_scores_come_first_then_costs_and_last_the_statistics(capsys):
    names = ["val/mean_score", "a", "val-error", "mean_score", "b/c", "cost", "Accuracy", "Loss"]
    first = ["Accuracy", "mean_score", "val/mean_score", "Loss", "cost", "val-error", "a", "b/c"]
    last = ["SummaryGradient/W/rms", "activation-summary/h-rms", "param-summary/W-rms"]
    said = printed(capsys, scalars=[(name, 0) for name in [*last, *names]])
    assert said == [f"{name}: 2" for name in [*first, *last]]


def test_each_is_printed_once(capsys):
    assert printed(capsys, max_epoch=2) == ["b: 2", "b: 4"]
    once = when(before_train=lambda cb: cb.trainer.monitors.put_scalar("once", 1))
    with tf.Graph().as_default():
        MiniTrainer([once], [ScalarPrinter()], max_epoch=3).train()
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
