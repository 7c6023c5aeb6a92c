import json
import os

import pytest

from tensorpack.runs.record import RunRecord, read_record, utc_now


def warnings_in(capsys):
    return [line for line in capsys.readouterr().out.splitlines() if "WRN" in line]


def attempts(directory):
    return read_record(str(directory))["attempts"]


def test_an_attempt_is_added_completed_and_kept_when_the_next_comes(tmp_path):
    first = RunRecord(str(tmp_path))
    first.write({"started": "a", "process": os.getpid()})
    first.write({"result": "stopped"}, {"parameters": [["W", [2], "float32"]]})
    second = RunRecord(str(tmp_path))
    second.write({"started": "b"})
    one, two = attempts(tmp_path)
    assert (one["started"], one["result"], two["started"]) == ("a", "stopped", "b")
    assert "result" not in two and one["id"] != two["id"]
    assert read_record(str(tmp_path))["parameters"] == [["W", [2], "float32"]]
    assert os.listdir(str(tmp_path)) == ["run.json"]


def test_an_attempt_whose_process_was_killed_is_lost_and_one_of_this_process_is_not(tmp_path):
    RunRecord(str(tmp_path)).write({"process": os.getpid() + 1})
    in_container = {"process": os.getpid(), "started": "2026-01-31T12:00:00Z"}
    RunRecord(str(tmp_path)).write(in_container)
    mine = RunRecord(str(tmp_path))
    mine.write({"process": os.getpid(), "started": utc_now()})
    inner = RunRecord(str(tmp_path))
    inner.write({"process": os.getpid(), "result": "finished"})
    mine.write({"step": 5})
    assert [each.get("result") for each in attempts(tmp_path)] == ["lost"] * 2 + [None, "finished"]
    assert attempts(tmp_path)[2]["step"] == 5


@pytest.mark.parametrize("content", ["", "{", "[]", '{"attempts": 3}', '{"attempts": [1]}', "\0"])
def test_a_damaged_file_is_put_aside(tmp_path, capsys, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="run.json"):
        read_record(str(tmp_path))
    RunRecord(str(tmp_path)).write({"step": 1})
    assert [each["step"] for each in attempts(tmp_path)] == [1]
    assert (tmp_path / "run.json.corrupt").read_text() == content
    assert len(warnings_in(capsys)) == 1


def test_what_cannot_be_written_is_one_warning(tmp_path, capsys):
    record = RunRecord(str(tmp_path / "gone"))
    record.write({"step": 1})
    record.write({"step": 2})
    (line,) = warnings_in(capsys)
    assert "Cannot write" in line and "the training continues" in line


def test_fields_that_it_does_not_know_are_kept(tmp_path):
    content = {"format": 1, "attempts": [{"note": "of a user"}], "tags": ["best"]}
    (tmp_path / "run.json").write_text(json.dumps(content))
    RunRecord(str(tmp_path)).write({"odd": {1, 2}.__class__})
    record = read_record(str(tmp_path))
    assert record["tags"] == ["best"] and record["attempts"][0]["note"] == "of a user"
