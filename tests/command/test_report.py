import json


def test_a_page_is_written(tensorpack, tmp_path):
    epochs = [{"epoch_num": 1, "global_step": 1, "cost": 1}]
    (tmp_path / "stats.json").write_text(json.dumps(epochs))
    done = tensorpack("report", tmp_path)
    assert (done.code, done.out) == (0, f"{tmp_path / 'report.html'}\n")
    out = tmp_path / "other.html"
    assert tensorpack("report", tmp_path, "--out", out).code == 0
    assert "cost" in out.read_text()


def test_what_cannot_be_used_is_said(tensorpack, tmp_path):
    done = tensorpack("report", tmp_path)
    assert done.code == 2 and "has no run.json, stats.json or log.log" in done.err
    (tmp_path / "log.log").write_text("")
    done = tensorpack("report", tmp_path, "--out", tmp_path / "no" / "x.html")
    assert done.code == 2 and "Give another --out" in done.err
