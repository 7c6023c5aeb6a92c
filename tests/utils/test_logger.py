"""Tests of `tensorpack.utils.logger`."""

import inspect
import os
import re
import sys

import pytest

from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster

PREFIX = r"\[\d{4} \d\d:\d\d:\d\d @test_logger\.py:(\d+)\] "


def here():
    return inspect.currentframe().f_back.f_lineno


def log_text(directory):
    return (directory / "log.log").read_text(encoding="utf-8")


def visible(path):
    """The names in a directory, without those that begin with a dot."""
    return [name for name in os.listdir(str(path)) if not name.startswith(".")]


def sibling_names(path):
    return sorted(os.listdir(str(path.parent)))


@pytest.fixture
def used_dir(tmp_path, own_log):
    """A log directory with a file of an earlier run in it."""
    path = tmp_path / "run"
    path.mkdir()
    (path / "model").write_text("precious")
    return path


def test_a_line_has_time_file_line_and_text(capsys):
    logger.info("%d apples", 3)
    line = here() - 1
    match = re.fullmatch(PREFIX + "3 apples\n", capsys.readouterr().out)
    assert match and int(match.group(1)) == line


@pytest.mark.parametrize(
    "name, mark",
    [("info", ""), ("warn", "WRN "), ("warning", "WRN "), ("error", "ERR "), ("critical", "ERR ")],
)
def test_marks(capsys, name, mark):
    getattr(logger, name)("100%")
    assert re.fullmatch(PREFIX + mark + "100%\n", capsys.readouterr().out)


def test_details_go_to_the_file_and_to_a_verbose_terminal(tmp_path, capsys, own_log, monkeypatch):
    logger.set_logger_dir(str(tmp_path / "run"))
    said = []
    for wish in ("", "0", "1"):
        monkeypatch.setenv("TENSORPACK_VERBOSE", wish)
        logger.detail("shape %d", 1)
        said.append("shape 1" in capsys.readouterr().out)
    assert said == [False, False, True]
    assert log_text(tmp_path / "run").count("shape 1") == 3


def test_the_python_logger_has_the_name_that_scripts_use(capsys):
    assert logger._logger.propagate is False
    logger._logger.info("hello %s", "there")
    assert capsys.readouterr().out.endswith("] hello there\n")


def test_debug_is_off_until_the_level_is_set(capsys):
    logger.debug("hidden")
    logger.setLevel("DEBUG")
    try:
        logger.debug("shown")
    finally:
        logger.setLevel("INFO")
    assert re.fullmatch(PREFIX + "DBG shown\n", capsys.readouterr().out)


def test_exception_adds_the_traceback(capsys):
    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("failed")
    lines = capsys.readouterr().out.split("\n")
    assert re.fullmatch(PREFIX + "ERR failed", lines[0])
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2] == "KeyError: 'lost'"


def test_no_directory_at_first():
    assert logger.get_logger_dir() is None and logger.LOG_DIR is None
    with pytest.raises(AttributeError, match="LOG_FILE"):
        logger.LOG_FILE  # noqa: B018


def test_a_new_directory_gets_the_argv_first_and_no_colours(tmp_path, own_log, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["a.py", "--api-key", "abc", "s3://me:abc@host"])
    path = tmp_path / "a" / "b"
    logger.set_logger_dir(str(path))
    logger.warn("careful")
    first, second, rest = log_text(path).split("\n")
    assert re.fullmatch(r"\[[^]]*@logger\.py:\d+\] Argv: (.*)", first)[1] == (
        "a.py --api-key *** s3://***@host"
    )
    assert re.fullmatch(PREFIX + "WRN careful", second) and rest == ""
    assert logger.LOG_DIR == logger.get_logger_dir() == str(path)


@pytest.mark.fault_row(54)
def test_a_relative_directory_stays_where_it_is(tmp_path, own_log, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logger.set_logger_dir("run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert logger.get_logger_dir() == str(tmp_path / "run")
    assert logger.set_logger_dir("../run") is None  # in use by this process
    assert os.listdir(".") == []


def test_what_a_killed_run_left_unfinished_is_removed(used_dir, run_python):
    killed = run_python(
        "import os; from tensorpack.utils.atomic import open_atomic\n"
        "with open_atomic('run/stats.json') as file: os._exit(1)"
    )
    (left,) = [name for name in os.listdir(str(used_dir)) if name.endswith(".tmp")]
    assert killed.returncode == 1 and left.startswith(".stats.json.")
    foreign = [".stats.json.tmp", ".stats.json.1-DEADBEEF.tmp", "a.1-deadbeef.tmp", ".swp"]
    for name in foreign:
        (used_dir / name).touch()
    logger.set_logger_dir(str(used_dir), "k")
    assert sorted(os.listdir(str(used_dir))) == sorted([*foreign, ".lock", "log.log", "model"])


def test_an_empty_directory_and_dot_files_give_no_reason_to_ask(tmp_path, own_log):
    (tmp_path / ".git").mkdir()
    assert logger.set_logger_dir(str(tmp_path)) is None
    assert logger.LOG_DIR == str(tmp_path)
    assert logger.set_logger_dir(str(tmp_path / "run"), "keep") is None
    assert logger.set_logger_dir(str(tmp_path / "run")) is None  # the present one
    assert log_text(tmp_path / "run").count("Argv") == 1


def test_an_earlier_log_is_renamed_and_never_overwritten(used_dir):
    for run in range(3):
        logger.set_logger_dir(str(used_dir), "k")
        logger.info(f"run {run}")
        logger.close_logger_dir()
    names = [name for name in visible(used_dir) if name.startswith("log.log")]
    assert len(names) == 3
    assert all(re.fullmatch(r"log\.log(\.\d{4}-\d{6}(-\d)?)?", name) for name in names)
    texts = "".join((used_dir / name).read_text() for name in names)
    assert all(f"run {run}\n" in texts for run in range(3))
    assert "run 2\n" in log_text(used_dir) and "Existing log file" in log_text(used_dir)


def test_backup_renames_the_directory(used_dir):
    logger.set_logger_dir(str(used_dir), "backup")
    assert visible(used_dir) == ["log.log"]
    backup, run = sorted(sibling_names(used_dir), key=len, reverse=True)
    assert run == "run" and re.fullmatch(r"run\.\d{4}-\d{6}", backup)
    assert (used_dir.parent / backup / "model").read_text() == "precious"


@pytest.mark.parametrize("inside", ["", "below"])
def test_delete_spares_the_working_directory_and_its_parents(used_dir, monkeypatch, inside):
    (used_dir / inside).mkdir(exist_ok=True)
    monkeypatch.chdir(str(used_dir / inside))
    with pytest.raises(ValueError, match="not deleted"):
        logger.set_logger_dir(str(used_dir), "d")
    assert (used_dir / "model").exists()


def test_new_takes_the_first_free_number(used_dir, capsys):
    (used_dir.parent / "run-1").write_text("a file")
    logger.set_logger_dir(str(used_dir))  # standard input is no terminal here
    assert logger.LOG_DIR == str(used_dir) + "-2"
    assert visible(used_dir) == ["model"]
    assert f"WRN This run logs to {used_dir}-2 instead." in capsys.readouterr().out


def test_the_folder_of_a_failed_start_is_taken_again(used_dir):
    """One that has logs alone, and that no run uses."""
    for number in 1, 2:  # the first one is in use, in this process
        logger.set_logger_dir(str(used_dir), "new")
        assert logger.LOG_DIR == f"{used_dir}-{number}"
    logger.close_logger_dir()
    for number_of_logs in 2, 3:
        logger.set_logger_dir(str(used_dir))
        assert logger.LOG_DIR == f"{used_dir}-1"
        assert len(visible(used_dir.parent / "run-1")) == number_of_logs
        logger.close_logger_dir()
    (used_dir.parent / "run-1" / "stats.json").write_text("[]")
    logger.set_logger_dir(str(used_dir))
    assert logger.LOG_DIR == f"{used_dir}-2"


def test_the_name_of_a_worker_comes_after_the_number(used_dir, monkeypatch):
    worker = Cluster(["a:1", "b:1"], index=1)
    monkeypatch.setenv("TF_CONFIG", worker.as_tf_config())
    os.rename(str(used_dir), f"{used_dir}-worker1")
    for directory in used_dir, f"{used_dir}-worker1":
        logger.set_logger_dir(str(directory), "new")
    assert sibling_names(used_dir) == ["run-1-worker1", "run-2-worker1", "run-worker1"]
    logger.set_logger_dir(f"{used_dir}-1", "keep")
    assert logger.LOG_DIR == f"{used_dir}-1-worker1"
    monkeypatch.setenv("TF_CONFIG", Cluster(worker.workers).as_tf_config())
    logger.set_logger_dir(f"{used_dir}-worker1", "new")
    assert logger.LOG_DIR == f"{used_dir}-worker1-1"


@pytest.mark.parametrize("rank, end", [("0", ""), ("2", "-worker2")])
def test_several_programs_that_are_no_group(rank, end, log_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")  # on machines that Open MPI does not name
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0")
    logger.set_logger_dir(str(tmp_path / "run"))
    assert logger.LOG_DIR == str(tmp_path / "run") + end


@pytest.mark.parametrize("action", ["k", "K", "keep", "b", "D", "new", None])
def test_it_tells_what_was_done_with_a_directory_in_use(used_dir, action):
    letter = (action or "n")[0].lower()
    assert logger.set_logger_dir(str(used_dir), action) == letter
    left = {"k": ["log.log", "model"], "n": ["model"]}.get(letter, ["log.log"])
    assert sorted(visible(used_dir)) == left


def test_quit_and_an_unknown_action_change_nothing(used_dir):
    with pytest.raises(SystemExit) as caught:
        logger.set_logger_dir(str(used_dir), "q")
    assert caught.value.code == 1
    with pytest.raises(ValueError, match="'x'.*keep, backup, delete, new, quit"):
        logger.set_logger_dir(str(used_dir / "new"), "x")
    assert logger.LOG_DIR is None and os.listdir(str(used_dir)) == ["model"]


SET_DIR = "from tensorpack.utils import logger; logger.set_logger_dir('run'); print(logger.LOG_DIR)"


def test_a_person_is_asked_until_the_answer_is_one(used_dir, run_in_terminal):
    code, screen = run_in_terminal(SET_DIR, typed="what?\nd\n")
    question = "Select Action: k (keep) / b (backup) / d (delete) / n (new) / q (quit):"
    assert code == 0 and screen.endswith("run\r\n")
    advice = (
        f"Log directory {used_dir} exists! Please either backup/delete it, or use a new directory."
    )
    assert advice in screen
    assert "If you're resuming from a previous run you can choose to keep it." in screen
    assert screen.count(question) == 2
    assert visible(used_dir) == ["log.log"]


@pytest.mark.parametrize("typed", ["q\n", "\x04"], ids=["q", "end of input"])
def test_a_person_can_quit(used_dir, run_in_terminal, typed):
    code, _ = run_in_terminal(SET_DIR, typed=typed)
    assert code == 1 and visible(used_dir) == ["model"]


def test_auto_set_dir_is_named_after_the_script(run_python, tmp_path):
    (tmp_path / "DQN.py").write_text(
        "from tensorpack.utils import logger\n"
        "logger.auto_set_dir(name='fast')\n"
        "logger.auto_set_dir(name='slow', overwrite=False)\n"
        "logger.auto_set_dir()\n"
    )
    done = run_python("import runpy; runpy.run_path('DQN.py', run_name='__main__')")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(str(tmp_path / "train_log"))) == ["DQN", "DQN:fast"]
    done = run_python("from tensorpack.utils import logger; logger.auto_set_dir()")
    assert "RuntimeError: There is no script" in done.stderr


def test_a_filter_and_disable_logger_decide_what_is_logged(capsys):
    def is_public(record):
        return "secret" not in record.getMessage()

    logger.addFilter(is_public)
    try:
        logger.error("secret %d", 1)
        logger.info("public")
        logger.disable_logger()
        logger.error("text")
    finally:
        logger._logger.disabled = False
        logger._logger.removeFilter(is_public)
    assert capsys.readouterr().out.endswith("public\n")
