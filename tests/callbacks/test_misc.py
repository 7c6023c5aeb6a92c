import sys

import pytest

from tensorpack.callbacks import EstimatedTimeLeft, InjectShell, SendMonitorData, SendStat
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.clock import FakeClock
from tests.contracts.callback import contract_of

WRITE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10))"


TestEstimatedTimeLeft = contract_of(EstimatedTimeLeft)
TestInjectShell = contract_of(InjectShell)
TestSendMonitorData = contract_of(lambda: SendMonitorData("true", ["cost"]))
TestSendStat = contract_of(lambda: SendStat("true", []))


def put(callback):
    callback.trainer.monitors.put_scalar("other", 1)
    callback.trainer.monitors.put_scalar("cost", callback.epoch_num)


def putting():
    return when(trigger_epoch=put)


def send(make, command, **options):
    """Trains with a sender of `cost`, which is a callback or a monitor."""
    sender = make(command, "cost")
    callbacks, monitors = ([sender], []) if make is SendStat else ([], [sender])
    MiniTrainer([putting(), *callbacks], monitors, **options).train()


each_sender = pytest.mark.parametrize("make", [SendStat, SendMonitorData])


@each_sender
def test_a_list_of_arguments_gets_the_scalars_once_and_no_shell_sees_it(make, tmp_path):
    sent = tmp_path / "sent"
    command = [sys.executable, "-c", WRITE, str(sent), "cost={cost:.2f} $HOME | {{}}"]
    send(make, command, max_epoch=2)
    assert sent.read_text() == "cost=1.00 $HOME | {}\ncost=2.00 $HOME | {}\n"


@each_sender
def test_a_command_line_goes_to_the_shell(make, tmp_path):
    # as the documentation of 2017 has it
    send(make, f"echo -d body={{cost:.1f}} '$HOME' $((1 + 1)) 2>&1 | tr - + > {tmp_path}/sent")
    assert (tmp_path / "sent").read_text() == "+d body=1.0 $HOME 2\n"


def test_a_command_that_fails_is_an_error_in_the_log(capsys):
    MiniTrainer([putting(), SendStat("false", ["cost"]), SendStat(["no such"], [])]).train()
    failed, missing = log_lines(capsys)
    assert failed.startswith("Command false with {'cost': 1.0} failed with code 1")
    assert missing.startswith("Command ['no such'] with {} failed with code -2: ")


def test_what_a_command_prints_is_logged(capsys):
    send(SendMonitorData, ["echo", "{cost} of 100%\n2"])
    assert ": 1.0 of 100%" in log_lines(capsys)[0]


def test_a_name_that_is_not_given_or_has_no_value_is_an_error():
    with pytest.raises(KeyError, match="score"):
        SendStat(["echo", "{score}"], ["cost"])
    with pytest.raises(KeyError, match="'cost' has no value yet"):
        MiniTrainer([SendStat("true", ["cost"])]).train()


def test_the_time_left_is_logged_while_there_is_some(monkeypatch, capsys):
    clock = FakeClock()
    monkeypatch.setattr("tensorpack.callbacks.misc.time.monotonic", clock)
    work = when(trigger_step=lambda cb: clock.advance(15 * cb.epoch_num))
    MiniTrainer([work, EstimatedTimeLeft()], max_epoch=3).train()
    assert log_lines(capsys) == [
        "Estimated Time Left: 1 minute",  # two epochs of 30 seconds
        "Estimated Time Left: 45 seconds",  # one, of the median of 30 and 60
    ]


def test_without_ipython_it_is_pdb(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", None)
    opened = []
    monkeypatch.setattr("pdb.set_trace", lambda: opened.append(1))
    path = tmp_path / "shell"
    path.write_text("")
    MiniTrainer([InjectShell(str(path))], max_epoch=2).train()
    assert opened == [1, 1] and not path.exists()
    assert "c goes on" in log_lines(capsys)[2]
