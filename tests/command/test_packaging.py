"""A wheel and an sdist are built, and the wheel works in an environment that has only it."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest
import setuptools

from tensorpack._version import __version__
from tests.checks import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.one_row]

OURS = ["tensorpack", "examples", "docs", "tests", "scripts", "benchmarks", ".ci", ".github"]
NOT_OURS = shutil.ignore_patterns("__pycache__", "train_log", "*.pyc", ".venv*", "*.egg-info")
# Version 64 builds from pyproject.toml; an older one is left to pip, which fetches a newer one.
IS_NEW = int(setuptools.__version__.split(".")[0]) >= 64


def run(*command, **keywords):
    done = subprocess.run(
        [str(each) for each in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        **keywords,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the sources, for building writes beside them."""
    folder = tmp_path_factory.mktemp("source")
    for name in OURS:
        shutil.copytree(str(ROOT / name), str(folder / name), ignore=NOT_OURS)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(str(path), str(folder / path.name))
    return folder


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    has_wheel = IS_NEW and importlib.util.find_spec("wheel") is not None
    isolation = ["--no-build-isolation"] if has_wheel else []  # otherwise pip fetches both
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", *isolation, "-w", folder, "."]
    run(*wheel, cwd=str(source))
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_has_the_library_and_the_examples(wheel):
    assert wheel.name == f"tensorpack-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(str(wheel)) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
    assert {"tensorpack/py.typed", "tensorpack/__init__.pyi", "tensorpack/__main__.py"} <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"tensorpack", metadata.split("/")[0]}
    for name in "tensorpack", "examples":
        ours = [path.relative_to(ROOT) for path in (ROOT / name).rglob("*.py")]
        expected = {str(path).replace("examples/", "tensorpack/_examples/") for path in ours}
        assert {each for each in expected if "train_log" not in each} <= names
    assert "tensorpack/_examples/DeepQNetwork/published.json" in names
    assert "\nDescription-Content-Type: text/markdown\n" in text
    assert "\nSummary: " in text and re.search(r"\nRequires-Dist: msgpack ?\(?>=", text)
    assert not re.search(r"^Home-page|^Project-URL", text, re.MULTILINE)  # there is none yet


@pytest.mark.skipif(not IS_NEW, reason="setuptools cannot build an sdist from pyproject.toml")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git says what belongs to the project")
def test_the_sdist_has_everything(source, tmp_path):
    code = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, tmp_path, cwd=str(source))
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(str(path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = run("git", "ls-files", cwd=str(ROOT)).splitlines()
    missing = {name for name in listed if (ROOT / name).exists()} - names - {".gitignore"}
    assert missing == set()
    built = {"PKG-INFO", "setup.cfg"}
    extra = {name for name in names if name and name not in built and "egg-info" not in name}
    assert not [name for name in extra if not (ROOT / name).exists()]


def test_the_wheel_alone_works(wheel, tmp_path):
    env = tmp_path / "env"
    run(sys.executable, "-m", "venv", env)
    run(env / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    # numpy and the like come from here; a package installed in place does not, by PYTHONPATH.
    clean = {name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}
    clean["PYTHONPATH"] = sysconfig.get_paths()["purelib"]
    where = {"cwd": str(tmp_path), "env": clean}
    python, program = env / "bin" / "python", env / "bin" / "tensorpack"
    home = run(python, "-c", "import tensorpack; print(tensorpack.__file__)", **where)
    assert home.startswith(str(env))
    assert run(program, "--help", **where).startswith("usage: tensorpack")
    run(program, "examples", "mine", **where)
    copied = {path.relative_to(tmp_path / "mine") for path in (tmp_path / "mine").rglob("*.*")}
    assert {path.relative_to(ROOT / "examples") for path in (ROOT / "examples").glob("*/*.py")} <= (
        copied
    )
    probe = "import tensorpack.dataflow as d; print(d.BatchData(d.FakeData([[2]], 8), 4).size())"
    assert run(python, "-c", probe, **where) == "2\n"
