import json


def test_a_table_and_json(tensorpack, tmp_path):
    for name, result in [("one", "finished"), ("t\x1bwo", "failed")]:
        folder = tmp_path / name
        folder.mkdir()
        sitting = {"result": result, "step": 1200, "best": ["min-e (e 0.5 at step 3)"]}
        (folder / "run.json").write_text(json.dumps({"sittings": [sitting]}))
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
