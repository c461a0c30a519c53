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

from relab.record import provenance


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
    collected = provenance.start(folder).collect()
    orjson.dumps(collected)  # it goes into meta.json
    return collected


def test_a_clean_repository(repo):
    collected = facts(repo)
    assert collected["commit"] == git(repo, "rev-parse", "HEAD")
    assert collected["patch"] == {"text": "", "bytes": 0, "sha256": hashlib.sha256(b"").hexdigest(), "cut": False}
    assert collected["untracked"] == {"count": 0, "files": []}


def test_uncommitted_changes_staged_or_not(repo):
    (repo / "a.py").write_text("x = 2\n")
    (repo / "b.py").write_text("y = 1\n")
    git(repo, "add", "b.py")
    (repo / "new é.py").write_text("z = 1\n")
    collected = facts(repo)
    assert "+x = 2" in collected["patch"]["text"]
    assert "+y = 1" in collected["patch"]["text"]
    assert collected["untracked"] == {"count": 1, "files": ["new é.py"]}
    sub = repo / "sub"
    sub.mkdir()
    assert facts(sub)["patch"]["sha256"] == collected["patch"]["sha256"], "the patch is of the whole repository"


def test_a_big_patch_is_cut_and_says_so(repo, monkeypatch):
    monkeypatch.setattr(provenance, "PATCH_CAP", 1000)
    (repo / "a.py").write_text("".join(f"x = {i}\n" for i in range(50_000)))  # more than any pipe holds
    patch = facts(repo)["patch"]
    whole = subprocess.run(["git", "diff", "HEAD"], cwd=repo, capture_output=True, check=True).stdout
    assert (patch["cut"], patch["bytes"], len(patch["text"])) == (True, len(whole), 1000)
    assert patch["sha256"] == hashlib.sha256(whole).hexdigest()


def test_outside_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    collected = facts(tmp_path)
    assert (collected["commit"], collected["patch"], collected["untracked"]) == (None, None, None)
    assert collected["packages"]
    assert collected["machine"]["cores"] >= 1


def test_a_repository_without_commits(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    collected = facts(tmp_path)
    assert (collected["commit"], collected["patch"]) == (None, None)
    assert collected["untracked"]["files"] == ["a.py"]


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
    while pending.process is None:
        time.sleep(0.001)
    process = pending.process
    collected = pending.collect(timeout=0.05)
    assert collected["commit"] is None
    assert process.poll() is not None, "it is ended, and no other is started"
    assert pending.process in (None, process)


def test_an_answer_without_end_is_cut(repo, monkeypatch):
    monkeypatch.setattr(provenance, "MAX_BYTES", 5000)
    (repo / "a.py").write_text("".join(f"x = {i}\n" for i in range(50_000)))
    assert facts(repo)["patch"]["bytes"] == 5000


def test_a_secret_in_the_patch_is_masked_also_at_the_cut(repo, monkeypatch):
    (repo / "a.py").write_text("api_key = 'Zq7hunter2Xy'\nx = 'ghp_" + "a1B2" * 10 + "'\n")
    whole = facts(repo)["patch"]
    assert "+api_key = ***\n" in whole["text"]
    monkeypatch.setattr(provenance, "PATCH_CAP", whole["text"].index("+x = '") + 14)
    assert "ghp_" not in facts(repo)["patch"]["text"]
    assert facts(repo)["patch"]["sha256"] == whole["sha256"], "the hash is of the real patch"


# ---- A repository that somebody sent

PROCESS = "filter.x.process"
PLANTED = {  # configuration that runs a program; {} is a command that leaves a trace
    "fsmonitor": {"core.fsmonitor": "{}"},
    "external diff": {"diff.external": "{}"},
    "diff driver": {"diff.x.command": "{}"},
    "textconv": {"diff.x.textconv": "{}"},
    "clean filter": {"filter.x.clean": "{}; cat"},
    "required filter": {"filter.x.clean": "{}; cat", "filter.x.required": "true"},
    "smudge filter": {"filter.x.smudge": "{}; cat"},
    "process filter": {PROCESS: "{}"},
    "filter with dots": {"filter.x.y.z.clean": "{}; cat"},
    "filter with =": {"filter.x=y.clean": "{}; cat"},
    "filter in capitals": {"FILTER.X.CLEAN": "{}; cat"},
    "hooks path": {"core.hooksPath": "{hooks}"},
    "pager": {"core.pager": "{}", "pager.diff": "{}", "pager.ls-files": "true"},
    "editor and askpass": {"core.editor": "{}", "core.askPass": "{}", "credential.helper": "!{}", "gpg.program": "{}"},
    "alias": {"alias.diff": "!{}", "alias.ls-files": "!{}", "alias.rev-parse": "!{}"},
    "partial clone over ssh": {"remote.o.url": "ssh://x/y", "core.sshCommand": "{}", "remote.o.promisor": "true",
                               "core.repositoryFormatVersion": "1", "extensions.partialClone": "o"},
    "partial clone by ext": {"remote.o.url": "ext::sh -c '{}'", "protocol.ext.allow": "always",
                             "remote.o.promisor": "true", "core.repositoryFormatVersion": "1",
                             "extensions.partialClone": "o"},
    "partial clone of a folder": {"remote.o.url": "file:///tmp", "remote.o.uploadpack": "{}",
                                  "protocol.allow": "always", "remote.o.promisor": "true",
                                  "core.repositoryFormatVersion": "1", "extensions.partialClone": "o"},
}  # fmt: skip
REFUSED = {"filter with ="}  # cannot be switched off: the patch is not asked for
LACKS = {name for name in PLANTED if name.startswith("partial")}  # git needs an object that is not there


def planted(repo, name: str, values: dict[str, str]):
    """A repository with a change, and a configuration that runs a program; the folder of the traces."""
    canary = repo / "canary"
    canary.mkdir()
    trace = f"touch {canary}/ran"
    hooks = repo / "hooks"
    hooks.mkdir()
    for folder in (hooks, repo / ".git" / "hooks"):
        for hook in ("post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
            (folder / hook).write_text(f"#!/bin/sh\n{trace}\n")
            (folder / hook).chmod(0o755)
    driver = {"filter with =": "x=y", "filter with dots": "x.y.z", "filter in capitals": "X"}.get(name, "x")
    (repo / ".gitattributes").write_text(f"*.py filter={driver} diff=x\n")
    if name in LACKS:
        blob = git(repo, "rev-parse", "HEAD:a.py")
        (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (repo / "a.py").write_text("x = 3\n")
    for key, value in values.items():
        git(repo, "config", key, value.replace("{hooks}", str(hooks)).replace("{}", trace))
    return canary


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("included", [False, True], ids=["", "included"])
def test_no_program_of_a_strangers_repository_runs(repo, name, included):
    canary = planted(repo, name, PLANTED[name])
    if included:  # the same from another file that the configuration names
        (repo / ".git" / "config").rename(repo / "theirs")
        (repo / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = ../theirs\n")
    before = {p: p.stat().st_mtime_ns for p in (repo / ".git").rglob("*")}
    collected = facts(repo)
    assert list(canary.iterdir()) == []
    assert collected["commit"]
    assert {p: p.stat().st_mtime_ns for p in (repo / ".git").rglob("*")} == before
    if name in REFUSED:
        assert collected["patch"] is None
    elif name not in LACKS:
        assert "+x = 3" in collected["patch"]["text"]


REAL = ("fsmonitor", "external diff", "textconv", "clean filter", "filter with =", "hooks path", "process filter")


@pytest.mark.parametrize("name", [*REAL, *sorted(LACKS)])
def test_the_traps_are_real(repo, name):
    canary = planted(repo, name, PLANTED[name])
    subprocess.run(["git", "status"], cwd=repo, capture_output=True, check=False)
    subprocess.run(["git", "diff", "HEAD"], cwd=repo, capture_output=True, check=False)
    until = time.monotonic() + 30  # git does not wait for the program of an ext:: address
    while not any(canary.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert [path.name for path in canary.iterdir()] == ["ran"]


def test_programs_of_a_submodule_do_not_run(repo, tmp_path):
    inner = repo / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "b.py").write_text("y = 1\n")
    git(inner, "add", "b.py")
    git(inner, "commit", "-q", "-m", "inner")
    git(repo, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    git(repo, "commit", "-q", "-m", "with inner")
    canary = planted(inner, "clean filter", PLANTED["clean filter"] | PLANTED["fsmonitor"])
    git(repo, "config", "diff.submodule", "diff")
    git(repo, "config", "diff.ignoreSubmodules", "none")
    assert facts(repo)["patch"]["bytes"] == 0
    assert list(canary.iterdir()) == []


def test_files_of_another_folder_are_not_read(repo, tmp_path):
    other = tmp_path / "home"
    other.mkdir()
    (other / "a.py").write_text("private\n")
    git(repo, "config", "core.worktree", str(other))
    collected = facts(repo)
    assert collected["commit"]
    assert (collected["patch"], collected["untracked"]) == (None, None)


def test_a_repository_without_a_folder_of_its_own_is_not_asked(tmp_path):
    """A folder with HEAD, objects and config lies in what was sent: git would take it for a bare repository."""
    git(tmp_path, "init", "-q", "--bare", "sent")
    git(tmp_path / "sent", "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    assert facts(tmp_path / "sent")["commit"] is None
    assert not (tmp_path / "ran").exists()


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
    versions = provenance.packages()
    for name in ("numpy", "orjson", "relab", "ruamel-yaml"):
        assert versions[name if name in versions else "ruamel.yaml"] == importlib.metadata.version(name)


def test_strange_entries_on_the_path(monkeypatch, tmp_path):
    (tmp_path / "Some_Thing-1.2.dist-info").mkdir()
    (tmp_path / "odd.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", ["/nowhere", "x.zip", str(tmp_path)])
    assert provenance.packages() == {"some-thing": "1.2"}


def test_the_machine():
    machine = provenance.machine()
    assert machine["python"] == sys.version.split()[0]
    assert set(machine) == {"host", "system", "cpu", "cores", "memory_mb", "python"}
