import json
import os
import socket

import pytest

EPOCHS = [
    {"epoch_num": 1, "global_step": 10, "error": 0.5, "aux": 9},
    {"epoch_num": 2, "global_step": 20, "error": 0.25, "aux": 9},
    {"epoch_num": 3, "global_step": 30, "error": 0.4, "aux": 9},
]


def make(folder, attempt=None, epochs=None, age=0):
    folder.mkdir(parents=True)
    if attempt is not None:
        (folder / "run.json").write_text(json.dumps({"attempts": [attempt]}))
    if epochs is not None:
        (folder / "stats.json").write_text(json.dumps(epochs))
    for each in folder.iterdir():
        os.utime(str(each), (1000 - age, 1000 - age))


@pytest.fixture
def listed(tensorpack, tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1000.0)

    def runs():
        return {
            each["run"]: each for each in json.loads(tensorpack("runs", tmp_path, "--json").out)
        }

    return runs


def test_runs_are_sorted_by_age_and_have_a_state(listed, tmp_path):
    here = {"host": socket.gethostname()}
    make(tmp_path / "a" / "done", {"result": "finished", "step": 30, "epoch": 3}, age=50)
    make(tmp_path / "dead", {**here, "process": 2**31 - 1}, EPOCHS, age=20)
    make(tmp_path / "lost", {"result": "lost"}, age=30)
    make(tmp_path / "alive", {**here, "process": os.getpid()}, EPOCHS, age=10)
    make(tmp_path / "old", None, EPOCHS, age=40)
    (tmp_path / "nothing").mkdir()
    found = listed()
    assert list(found) == ["alive", "dead", "lost", "old", os.path.join("a", "done")]
    states = [each["state"] for each in found.values()]
    assert states == ["running", "died", "died", "unknown", "finished"]
    assert [each["age"] for each in found.values()] == [10, 20, 30, 40, 50]
    assert (found["alive"]["step"], found["alive"]["epoch"]) == (30, 3)
    assert (found["a/done"]["step"], found["lost"]["step"]) == (30, None)


def test_links_in_the_directory_are_followed_to_other_places(tensorpack, tmp_path):
    for name in ("data/run", "data/more/deep", "log/here"):
        make(tmp_path / name, {"result": "finished"})
    links = {"link": "data/run", "all": "data/more", "latest": "log/here", "up": ".", "bad": "no"}
    (tmp_path / "log" / "loop").symlink_to(tmp_path / "log" / "loop")
    for name, target in links.items():
        (tmp_path / "log" / name).symlink_to(tmp_path / target)
    found = json.loads(tensorpack("runs", tmp_path / "log", "--json").out)
    assert sorted(each["run"] for each in found) == ["all/deep", "here", "link"]


@pytest.mark.parametrize(
    "attempt, epochs, best",
    [
        ({"best": ["min-e (e 0.1 at step 7)", "odd"]}, EPOCHS, "e 0.1 at step 7, odd"),
        ({"best": []}, EPOCHS, "error 0.25 at step 20"),
        ({}, [{**each, "x_score": each["error"]} for each in EPOCHS], "x_score 0.5 at step 10"),
        ({"best": {"a": 1}}, [{"global_step": 3, "error": None}], ""),
        ({}, [], ""),
    ],
)
def test_the_best_is_what_was_kept_or_of_the_first_curve(listed, tmp_path, attempt, epochs, best):
    make(tmp_path / "run", attempt, epochs)
    assert listed()["run"]["best"] == best


def test_what_is_damaged_is_left_out_and_links_are_not_followed(listed, tmp_path):
    make(tmp_path / "run", {"step": "7", "epoch": True}, EPOCHS)
    (tmp_path / "run" / "run.json").write_text("{")
    os.symlink(str(tmp_path), str(tmp_path / "run" / "again"))
    os.symlink("/dev/zero", str(tmp_path / "stats.json"))
    found = listed()
    assert sorted(found) == [".", "run"]
    assert found["run"]["state"] == "unknown"
    assert found["run"]["best"] == "error 0.25 at step 20" and found["."]["best"] == ""


def test_a_table_and_json(tensorpack, tmp_path):
    for name, result in [("one", "finished"), ("t\x1bwo", "failed")]:
        folder = tmp_path / name
        folder.mkdir()
        attempt = {"result": result, "step": 1200, "best": ["min-e (e 0.5 at step 3)"]}
        (folder / "run.json").write_text(json.dumps({"attempts": [attempt]}))
    done = tensorpack("runs", tmp_path)
    assert done.code == 0, done.err
    head, _, *rows = done.out.splitlines()
    assert head.split() == ["run", "state", "step", "epoch", "best", "age"]
    cells = sorted(row.split()[:3] for row in rows)
    assert cells == [["one", "finished", "1200"], ["t\\x1bwo", "failed", "1200"]]
    assert "e 0.5 at step 3" in rows[0]
    found = json.loads(tensorpack("runs", tmp_path, "--json").out)
    assert sorted(each["state"] for each in found) == ["failed", "finished"]


def test_nothing_is_said_and_a_wrong_directory_is_an_error(tensorpack, tmp_path):
    done = tensorpack("runs", tmp_path)
    assert done.code == 0 and done.out.startswith("There is no run in ")
    done = tensorpack("runs", tmp_path / "no")
    assert done.code == 2 and "is not a directory" in done.err
