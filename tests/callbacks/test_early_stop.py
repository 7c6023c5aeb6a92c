import pytest

from tensorpack.callbacks import EarlyStop
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import StopTraining
from tensorpack.utils.stopping import Failed, Interrupted
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import contract_of

NAN, INF = float("nan"), float("inf")


TestEarlyStop = contract_of(lambda: EarlyStop("cost", 3))


def run(values, *args, state=None, **options):
    """Puts a value after each epoch (none for None), after those of a state; returns the last
    epoch, why it was the last, and the state then.
    """
    begin = state["epoch"] if state else 0
    end = begin + len(values)

    def put(callback):
        value = values[callback.epoch_num - begin - 1]
        if value is not None:
            callback.trainer.monitors.put_scalar("val", value)

    stop, reason = EarlyStop("val", *args, **options), ""
    with tf.Graph().as_default():
        trainer = MiniTrainer([when(trigger_epoch=put), stop], init_step=2 * begin)
        with trainer.session():
            if state:
                stop.load_state_dict(state["stop"])
            trainer.callbacks.before_train()
            try:
                for epoch in range(begin + 1, end + 1):
                    trainer.run_epoch(epoch)
            except StopTraining as error:
                end, reason = epoch - 1, str(error)
    return end, reason, {"epoch": end, "stop": stop.state_dict()}


@pytest.mark.parametrize(
    "values, arguments, epochs",
    [
        ([3, 2, 2, 2, 1], [2], 4),
        ([3, 2, 4, 1, 4, 3], [2], 6),
        ([1, 2, 2, 1, 3], [2, True], 4),
        ([5, 4.9, 4.8, 4], [2, False, 0.5], 3),
        ([NAN, NAN, 1], [2], 2),
        ([3, -INF, 2, 2.5, 1], [2], 5),
        ([1, None, None, 2, None, 3], [2], 6),
    ],
)
def test_it_waits_for_so_many_values(values, arguments, epochs):
    ended, _, _ = run(values, *arguments)
    assert ended == epochs


def test_it_says_which_value_was_the_best():
    _, reason, _ = run([3, 2.5, 4, 5], 1)
    assert reason == "val did not become better than 2.5 at step 4 in 1 values."


def test_a_resumed_run_waits_no_longer():
    whole, _, _ = run([3, 2, 2, 2, 2], 3)
    _, _, state = run([3, 2, 2], 3)
    assert run([2, 2, 1], 3, state=state)[0] == whole == 5


def test_a_value_that_never_comes_is_a_warning_at_first_and_an_error_at_the_end(capsys):
    with pytest.raises(RuntimeError, match="EarlyStop did nothing in this run. The scalar 'val'"):
        run([None, None, None], 1)
    said, _ = log_lines(capsys)
    assert said.startswith("EarlyStop does nothing yet. The scalar 'val' has no value yet.")


@pytest.mark.parametrize("reason", [Failed(ValueError(), "a test"), Interrupted(2)])
def test_a_run_that_ends_for_another_reason_has_no_error_of_this(reason):
    trainer = MiniTrainer([EarlyStop("val", 1)])
    with trainer.session():
        trainer.callbacks.before_train()
        trainer.callbacks.cbs[1].trigger()
        trainer.stop_token.request(reason)


def test_arguments():
    with pytest.raises(ValueError, match="EarlyStop: patience must be a whole number"):
        EarlyStop("val", 0)


def test_an_infinite_best_of_an_older_state_is_beaten():
    _, _, state = run([3], 2)
    state["stop"].update(value=-INF, waited=1)
    assert run([2, 1, 3], 2, state=state)[2]["stop"]["value"] == 1
