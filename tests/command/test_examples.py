"""`tensorpack examples` lists and copies the example scripts."""

import json

from tests.checks import ROOT


def test_every_script_is_listed(tensorpack):
    done = tensorpack("examples")
    assert done.code == 0
    for line in [
        "DeepQNetwork/DQN.py Trains a deep Q network on an Atari game; plays",
        "basics/mnist_convnet.py Trains a convolutional network on MNIST, with layers",
    ]:
        assert line in " ".join(done.out.split())
    assert "expreplay" not in done.out
    assert "char-rnn/char_rnn.py" in json.loads(tensorpack("examples", "--json").out)["scripts"]


def test_one_is_copied_and_nothing_is_overwritten(tensorpack, tmp_path):
    target = tmp_path / "new" / "here"
    done = tensorpack("examples", target, "--only", "basics")
    assert (done.code, done.err) == (0, "")
    assert f"python {target}/basics/mnist_2017.py --fake" in done.out
    copied = sorted(path.relative_to(target) for path in target.rglob("*.py"))
    assert [str(path.parent) for path in copied] == ["basics"] * 4
    for path in copied:
        assert (target / path).read_bytes() == (ROOT / "examples" / path).read_bytes()

    (target / "basics" / "mnist_data.py").write_text("mine")
    (target / "basics" / "mnist_2017.py").unlink()
    again = tensorpack("examples", target)
    assert again.code == 2
    assert f"{target}/basics/mnist_convnet.py exists, as do 2 more files" in again.err
    assert sorted(path.name for path in target.iterdir()) == ["basics"]
    assert (target / "basics" / "mnist_data.py").read_text() == "mine"


def test_only_scripts_with_generated_data_are_said_to_have_it(tensorpack, tmp_path):
    done = tensorpack("examples", tmp_path / "new", "--only", "char-rnn")
    flags = dict(line.split("/")[-1].split() for line in done.out.splitlines() if ".py" in line)
    assert flags == {"char_rnn.py": "--fake", "char_transformer.py": "--help"}


def test_an_example_that_is_none(tensorpack, tmp_path):
    done = tensorpack("examples", tmp_path, "--only", "DeepQNetwrk")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "There is no example 'DeepQNetwrk'. Did you mean DeepQNetwork?" in done.err
