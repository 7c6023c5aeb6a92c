import json


def test_a_page_about_one_or_several_runs(tensorpack, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        epochs = [{"epoch_num": 1, "global_step": 1, "cost": 1}]
        (tmp_path / name / "stats.json").write_text(json.dumps(epochs))
    done = tensorpack("report", tmp_path / "a")
    assert (done.code, done.out) == (0, f"{tmp_path / 'a' / 'report.html'}\n")
    out = tmp_path / "other.html"
    assert tensorpack("report", tmp_path / "a", tmp_path / "b", "--out", out).code == 0
    assert "<title>a, b</title>" in out.read_text()


def test_what_cannot_be_used_is_said(tensorpack, tmp_path):
    done = tensorpack("report", tmp_path)
    assert done.code == 2 and "has no run.json, stats.json or log.log" in done.err
