import shutil
import subprocess

import pytest

from tensorpack.runs.git import GitFacts

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *args):
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


@pytest.fixture
def checkout(tmp_path):
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "checkout", "-q", "-b", "topic/one")
    (top / "sub" / "train.py").write_text("pass\n")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "first")
    return top


def facts_of(path):
    return GitFacts(str(path)).close()


def test_the_commit_the_branch_and_whether_a_file_has_changed(checkout):
    script = checkout / "sub" / "train.py"
    commit = git(checkout, "rev-parse", "HEAD")
    assert facts_of(script) == {"commit": commit, "branch": "topic/one", "dirty": False}
    (checkout / "new.txt").write_text("not tracked")
    assert facts_of(script)["dirty"] is False
    script.write_text("changed\n")
    assert facts_of(script)["dirty"] is True
    git(checkout, "add", ".")
    assert facts_of(script)["dirty"] is True


def test_packed_references_a_detached_head_and_a_worktree(checkout, tmp_path):
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    assert not (checkout / ".git" / "refs" / "heads" / "topic" / "one").exists()
    assert facts_of(checkout / "x.py")["commit"] == commit
    git(checkout, "worktree", "add", "-q", "-b", "two", str(tmp_path / "other"))
    expected = {"commit": commit, "branch": "two", "dirty": False}
    assert facts_of(tmp_path / "other" / "x.py") == expected
    git(checkout, "checkout", "-q", "--detach")
    assert facts_of(checkout / "x.py") == {"commit": commit, "branch": None, "dirty": False}


def test_outside_of_a_checkout_and_without_git(checkout, tmp_path, monkeypatch):
    assert facts_of(tmp_path / "train.py") is None
    assert GitFacts(None).close() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = facts_of(checkout / "x.py")
    assert facts["dirty"] is None and len(facts["commit"]) == 40


def test_a_checkout_without_a_commit_or_with_damage_is_no_error(checkout, tmp_path):
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    facts = facts_of(tmp_path / "new" / "x.py")
    assert (facts["commit"], facts["dirty"]) == (None, None)
    (checkout / ".git" / "HEAD").write_bytes(b"\xff" * 100)
    assert facts_of(checkout / "x.py") == {"commit": None, "branch": None, "dirty": None}


def test_a_git_that_hangs_is_ended(checkout, tmp_path, monkeypatch):
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr("tensorpack.runs.git.shutil.which", lambda name: str(slow))
    monkeypatch.setattr("tensorpack.runs.git._ANSWER_SECONDS", 0.1)
    facts = GitFacts(str(checkout / "x.py"))
    assert facts.known()["dirty"] is None
    assert facts.close()["dirty"] is None  # and the process has gone, or the test would fail
