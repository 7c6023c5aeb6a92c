"""`tensorpack examples` copies the example scripts."""

from tensorpack.command import examples
from tests.checks import ROOT


def test_they_are_copied_and_nothing_is_overwritten(tensorpack, tmp_path):
    target = tmp_path / "new" / "here"
    done = tensorpack("examples", target)
    assert (done.code, done.out) == (0, f"The examples are in {target}: see {target}/README.md.\n")
    ours = {path.relative_to(ROOT / "examples") for path in (ROOT / "examples").glob("*/*.py")}
    copied = {path.relative_to(target) for path in target.rglob("*.py")}
    assert {path for path in ours if path.parent.name != "train_log"} <= copied
    for path in copied:
        assert (target / path).read_bytes() == (ROOT / "examples" / path).read_bytes()

    (target / "basics" / "mnist_data.py").write_text("mine")
    (target / "basics" / "mnist_2017.py").unlink()
    again = tensorpack("examples", target)
    assert again.code == 2 and f"{target} exists, and nothing is overwritten" in again.err
    assert (target / "basics" / "mnist_data.py").read_text() == "mine"
    assert not (target / "basics" / "mnist_2017.py").exists()


def test_an_installation_without_them_says_so(tensorpack, tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "tensorpack" / "command" / "x.py"))
    done = tensorpack("examples", tmp_path / "new")
    assert done.code == 2 and "Install from a clone: pip install ." in done.err
    assert list(tmp_path.iterdir()) == []
