import sys

import numpy as np
import pytest

from tensorpack.callbacks import EstimatedTimeLeft, InjectShell, SendMonitorData, SendStat
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import contract_of

TestEstimatedTimeLeft = contract_of(EstimatedTimeLeft)
TestInjectShell = contract_of(InjectShell)
TestSendMonitorData = contract_of(lambda: SendMonitorData("true", ["cost"]))
TestSendStat = contract_of(lambda: SendStat("true", []))


def putting():
    return when(trigger_epoch=lambda cb: cb.trainer.monitors.put_scalar("cost", cb.epoch_num))


@pytest.mark.parametrize("make", [SendStat, SendMonitorData])
def test_a_command_line_goes_to_the_shell_once_for_each_value(make, tmp_path, capsys):
    # as the documentation of 2017 has it
    line = "echo -d body={{cost:.1f}} '$HOME' $((1 + 1)) 2>&1 | tr - + | tee -a {}/sent"
    sender = make(line.format(tmp_path), "cost")
    lists = [[putting(), sender]] if make is SendStat else [[putting()], [sender]]
    MiniTrainer(*lists, max_epoch=2).train()
    assert (tmp_path / "sent").read_text() == "+d body=1.0 $HOME 2\n+d body=2.0 $HOME 2\n"
    assert log_lines(capsys)[0].endswith("/sent: +d body=1.0 $HOME 2")


def test_a_name_in_braces_must_be_among_the_names():
    with pytest.raises(KeyError, match="score"):
        SendStat("echo {score}", ["cost"])


def test_a_command_that_fails_is_an_error_in_the_log(capsys):
    MiniTrainer([putting(), SendStat("false", ["cost"])]).train()
    (failed,) = log_lines(capsys)
    assert failed.startswith("Command false with {'cost': 1.0} failed with code 1")


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

    def interact(local):
        told.append(local["self"].epoch_num)
        raise SystemExit  # as exit() does, which the user of a shell types

    monkeypatch.setattr("code.interact", interact)
    path = tmp_path / "shell"
    path.write_text("")
    MiniTrainer([InjectShell(str(path))], max_epoch=2).train()
    assert told == [1, 2] and not path.exists()


def test_an_unknown_shell_is_refused():
    with pytest.raises(ValueError, match="'zsh'"):
        InjectShell(shell="zsh")


def test_a_loaded_value_of_a_name_that_is_not_wanted_any_more_is_forgotten():
    monitor = SendMonitorData("true", ["cost", "score"])
    monitor.load_state_dict({"values": {"cost": 1.0, "old": 2.0}})
    assert monitor.state_dict() == {"values": {"cost": 1.0}}
