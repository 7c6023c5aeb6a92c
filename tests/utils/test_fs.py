"""Tests of `tensorpack.utils.fs`."""

import hashlib
import os
import re

import pytest

from tensorpack.utils import change_env
from tensorpack.utils.fs import download, get_dataset_path, mkdir_p, normpath, recursive_walk


def names(path):
    return sorted(os.listdir(str(path)))


def test_mkdir_p(tmp_path):
    target = str(tmp_path / "a" / "b")
    mkdir_p(target)
    mkdir_p(target)
    mkdir_p("")
    assert os.path.isdir(target)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        mkdir_p(str(tmp_path / "file"))


def test_normpath():
    assert normpath("a//b/../c/") == os.path.join("a", "c")
    assert normpath("gs://bucket/a//b") == "gs://bucket/a//b"


def test_recursive_walk(tmp_path):
    files = ["b", "c", os.path.join("a", "z"), os.path.join("a", "d", "e")]
    for name in files:
        mkdir_p(str((tmp_path / name).parent))
        (tmp_path / name).write_text("")
    found = [os.path.relpath(path, str(tmp_path)) for path in recursive_walk(str(tmp_path))]
    assert found == files


def test_the_dataset_folder_of_the_variable(tmp_path):
    with change_env("TENSORPACK_DATASET", str(tmp_path / "data")):
        assert get_dataset_path("a", "b") == str(tmp_path / "data" / "a" / "b")
        assert get_dataset_path() == str(tmp_path / "data")
    assert names(tmp_path) == [], "nothing is made"


def test_the_dataset_folder_in_the_home_directory_is_named_once(run_python, tmp_path):
    code = (
        "from tensorpack.utils.fs import get_dataset_path\n"
        "print(get_dataset_path('mnist')); get_dataset_path()"
    )
    done = run_python(code, env={"HOME": str(tmp_path), "TENSORPACK_DATASET": ""})
    warning, path = done.stdout.splitlines()
    root = tmp_path / "tensorpack_data"
    assert re.fullmatch(
        rf"\[.*\] WRN Env var \$TENSORPACK_DATASET not set, using {root} for datasets\.",
        warning,
    )
    assert path == str(root / "mnist") and names(tmp_path) == []


@pytest.fixture
def source(tmp_path):
    """A file with content, as (address, content, sha256)."""
    content = bytes(range(256)) * 1000
    path = tmp_path / "the source.bin"
    path.write_bytes(content)
    return path.as_uri(), content, hashlib.sha256(content).hexdigest()


def test_download(tmp_path, source):
    url, content, sha256 = source
    path = download(url, str(tmp_path / "to"), sha256=sha256.upper(), expect_size=len(content))
    assert path == str(tmp_path / "to" / "the source.bin")
    assert (tmp_path / "to" / "the source.bin").read_bytes() == content
    assert download(url, str(tmp_path / "to"), filename="b") == str(tmp_path / "to" / "b")
    assert names(tmp_path / "to") == ["b", "the source.bin"]


def test_what_is_there_and_right_is_kept_and_what_is_wrong_is_not(tmp_path, source):
    url, content, sha256 = source
    target = tmp_path / "the target"
    target.write_bytes(content)
    before = target.stat().st_mtime_ns
    download("https://invalid.invalid/x", str(tmp_path), "the target", sha256=sha256)
    assert target.stat().st_mtime_ns == before
    target.write_bytes(b"wrong")
    download(url, str(tmp_path), "the target", sha256=sha256)
    assert target.read_bytes() == content
    for known in {"sha256": "0" * 64}, {"expect_size": 3}:
        with pytest.raises(ValueError, match="instead of"):
            download(url, str(tmp_path / "to"), **known)
    assert names(tmp_path / "to") == []
