import sys

import numpy as np
import pytest

from tensorpack.callbacks import EstimatedTimeLeft, InjectShell, SendMonitorData, SendStat
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import contract_of

WRITE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10))"


TestEstimatedTimeLeft = contract_of(EstimatedTimeLeft)
TestInjectShell = contract_of(InjectShell)
TestSendMonitorData = contract_of(lambda: SendMonitorData("true", ["cost"]))
TestSendStat = contract_of(lambda: SendStat("true", []))


def putting():
    return when(trigger_epoch=lambda cb: cb.trainer.monitors.put_scalar("cost", cb.epoch_num))


def command(path):
    return [sys.executable, "-c", WRITE, str(path), "cost={cost:.2f} $HOME | {{}}"]


def test_a_list_of_arguments_gets_the_scalars_and_no_shell_sees_it(tmp_path):
    sent = tmp_path / "sent"
    MiniTrainer([putting(), SendStat(command(sent), "cost")], max_epoch=2).train()
    assert sent.read_text() == "cost=1.00 $HOME | {}\ncost=2.00 $HOME | {}\n"


@pytest.mark.parametrize("make", [SendStat, SendMonitorData])
def test_a_command_line_goes_to_the_shell(make, tmp_path):
    # as the documentation of 2017 has it
    line = f"echo -d body={{val_error:.1f}} '$HOME' $((1 + 1)) 2>&1 | tr - + > {tmp_path}/sent"
    sender = make(line, "val_error")
    put = when(trigger_epoch=lambda cb: cb.trainer.monitors.put_scalar("val_error", 0.25))
    MiniTrainer([put, sender] if make is SendStat else [put], [sender][make is SendStat :]).train()
    assert (tmp_path / "sent").read_text() == "+d body=0.2 $HOME 2\n"


def test_a_name_in_braces_must_be_among_the_names():
    with pytest.raises(
        ValueError, match=r"the command has \{score\}, which is not among the names"
    ):
        SendStat(["echo", "{score}"], ["cost"])
    SendStat("echo {validation.error}", ["validation.error"])


def test_a_monitor_sends_each_value_once(tmp_path):
    sent = tmp_path / "sent"
    MiniTrainer([putting()], [SendMonitorData(command(sent), ["cost"])], max_epoch=2).train()
    assert sent.read_text() == "cost=1.00 $HOME | {}\ncost=2.00 $HOME | {}\n"


def test_a_command_that_fails_is_an_error_in_the_log(capsys):
    MiniTrainer([putting(), SendStat("false", ["cost"]), SendStat(["no such"], [])]).train()
    failed, missing = log_lines(capsys)
    assert failed.startswith("Command false with {'cost': 1.0} failed with code 1")
    assert missing.startswith("Command ['no such'] with {} failed with code -2: ")


@pytest.mark.parametrize("make", [SendStat, SendMonitorData])
def test_what_a_command_prints_is_logged(make, capsys):
    sender = make(["echo", "{cost} of 100%\n2"], ["cost"])
    callbacks = [[putting(), sender]] if make is SendStat else [[putting()], [sender]]
    MiniTrainer(*callbacks).train()
    assert log_lines(capsys)[0].startswith("echo: 1.0 of 100%")


def test_a_scalar_without_a_value_is_an_error():
    with pytest.raises(KeyError, match="'cost' has no value yet"):
        MiniTrainer([SendStat("true", ["cost"])]).train()


def test_the_time_left_is_logged_while_there_is_some(capsys):
    MiniTrainer([EstimatedTimeLeft()], max_epoch=3).train()
    lines = log_lines(capsys)
    assert len(lines) == 2
    assert all(line.startswith("Estimated Time Left: ") for line in lines)


def test_the_time_left_is_taken_from_so_many_epochs():
    left = EstimatedTimeLeft(last_k_epochs=np.int64(2))
    MiniTrainer([left], max_epoch=3).train()
    assert len(left.state_dict()["times"]) == 2


def test_without_ipython_it_is_the_shell_of_python(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    told = []

    def interact(banner, local):
        told.append((banner, local["self"].epoch_num))
        raise SystemExit  # as exit() does, which the user of a shell types

    monkeypatch.setattr("code.interact", interact)
    path = tmp_path / "shell"
    path.write_text("")
    MiniTrainer([InjectShell(str(path))], max_epoch=2).train()
    assert [epoch for _, epoch in told] == [1, 2] and not path.exists()
    assert "pip install ipython" in told[0][0] and "self.trainer" in told[0][0]


def test_an_unknown_shell_is_refused():
    with pytest.raises(ValueError, match="'zsh'"):
        InjectShell(shell="zsh")


def test_a_loaded_value_of_a_name_that_is_not_wanted_any_more_is_forgotten():
    monitor = SendMonitorData("true", ["cost", "score"])
    monitor.load_state_dict({"values": {"cost": 1.0, "old": 2.0}})
    assert monitor.state_dict() == {"values": {"cost": 1.0}}
