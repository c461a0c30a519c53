"""Does the record say which code ran, whatever state the repository is in, and never stop a run?"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import time

import orjson
import pytest

from relab import provenance


def git(folder, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", *identity, *words]
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    git(tmp_path, "add", "a.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def facts(folder):
    found = provenance.start(folder).collect()
    orjson.dumps(found)  # it goes into meta.json
    return found


def test_a_clean_repository(repo):
    found = facts(repo)
    assert found["commit"] == git(repo, "rev-parse", "HEAD")
    assert found["patch"] == {"text": "", "bytes": 0, "sha256": hashlib.sha256(b"").hexdigest(), "cut": False}
    assert found["untracked"] == {"count": 0, "files": []}


def test_uncommitted_changes_staged_or_not(repo):
    (repo / "a.py").write_text("x = 2\n")
    (repo / "b.py").write_text("y = 1\n")
    git(repo, "add", "b.py")
    (repo / "new é.py").write_text("z = 1\n")
    found = facts(repo)
    assert "+x = 2" in found["patch"]["text"]
    assert "+y = 1" in found["patch"]["text"]
    assert found["untracked"] == {"count": 1, "files": ["new é.py"]}
    sub = repo / "sub"
    sub.mkdir()
    assert facts(sub)["patch"]["sha256"] == found["patch"]["sha256"], "the patch is of the whole repository"


def test_a_big_patch_is_cut_and_says_so(repo, monkeypatch):
    monkeypatch.setattr(provenance, "PATCH_CAP", 1000)
    (repo / "a.py").write_text("".join(f"x = {i}\n" for i in range(50_000)))  # more than any pipe holds
    patch = facts(repo)["patch"]
    whole = subprocess.run(["git", "diff", "HEAD"], cwd=repo, capture_output=True, check=True).stdout
    assert (patch["cut"], patch["bytes"], len(patch["text"])) == (True, len(whole), 1000)
    assert patch["sha256"] == hashlib.sha256(whole).hexdigest()


def test_outside_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = facts(tmp_path)
    assert (found["commit"], found["patch"], found["untracked"]) == (None, None, None)
    assert found["packages"]
    assert found["machine"]["cores"] >= 1


def test_a_repository_without_commits(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    found = facts(tmp_path)
    assert (found["commit"], found["patch"]) == (None, None)
    assert found["untracked"]["files"] == ["a.py"]


def test_without_git_or_folder(tmp_path, monkeypatch):
    assert facts(tmp_path / "nowhere")["commit"] is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts(tmp_path)["commit"] is None


def test_a_git_that_hangs_is_ended(tmp_path, monkeypatch):
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pending = provenance.start(tmp_path)
    processes = [process for process, _ in pending.running.values()]
    found = pending.collect(timeout=0.05)
    assert found["commit"] is None
    assert len(processes) == 3
    assert all(process.poll() is not None for process in processes)


def test_programs_of_the_repository_do_not_run(repo):
    git(repo, "config", "diff.external", f"touch {repo}/ran")
    git(repo, "config", "core.fsmonitor", f"touch {repo}/ran")
    (repo / "a.py").write_text("x = 3\n")
    assert "+x = 3" in facts(repo)["patch"]["text"]
    assert not (repo / "ran").exists()


def test_nothing_in_the_repository_is_written(repo):
    os.utime(repo / "a.py", (time.time() + 5, time.time() + 5))  # git would refresh its index if it could
    before = {p: p.stat().st_mtime_ns for p in (repo / ".git").rglob("*")}
    assert facts(repo)["patch"]["bytes"] == 0, "touched is not changed"
    assert {p: p.stat().st_mtime_ns for p in (repo / ".git").rglob("*")} == before


def test_collecting_twice_is_harmless(repo):
    pending = provenance.start(repo)
    assert pending.collect()["commit"]
    assert pending.collect()["commit"] is None


def test_packages_are_those_installed():
    found = provenance.packages()
    for name in ("numpy", "orjson", "relab", "ruamel-yaml"):
        assert found[name if name in found else "ruamel.yaml"] == importlib.metadata.version(name)


def test_strange_entries_on_the_path(monkeypatch, tmp_path):
    (tmp_path / "Some_Thing-1.2.dist-info").mkdir()
    (tmp_path / "odd.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", ["/nowhere", "x.zip", str(tmp_path)])
    assert provenance.packages() == {"some-thing": "1.2"}


def test_the_machine():
    found = provenance.machine()
    assert found["python"] == sys.version.split()[0]
    assert set(found) == {"host", "system", "cpu", "cores", "memory_mb", "python"}
