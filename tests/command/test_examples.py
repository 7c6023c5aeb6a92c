"""`tensorpack examples` copies the example scripts."""

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
    again = tensorpack("examples", target)
    assert again.code == 2 and f"File exists: '{target}'" in again.err
    assert (target / "basics" / "mnist_data.py").read_text() == "mine"
