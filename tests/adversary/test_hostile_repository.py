"""A user's repository in which every program that git can be made to start leaves a mark.

Each way to start one is a trap with a name; a trap that fires leaves a file of that name
among the canaries. The traps are tried with plain git first, so that a quiet folder proves something.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from scenes import FILES, Scene, at_terminal, clean_env, complete, digest_of, git, overnight, scene_in, write_repository

HOOKS = """
applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change post-merge
post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase
pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update
"""
ATTRIBUTES = "* filter=evil diff=evil merge=evil export-subst ident eol=crlf\n*.json filter=long\n"


class Hostile(NamedTuple):
    """A hostile project, the home of a user with a hostile configuration, and the folder where traps leave marks."""

    project: Path
    home: Path
    canaries: Path

    def fired(self) -> set[str]:
        """The traps that went off."""
        return {path.name for path in self.canaries.iterdir()}

    def env(self) -> dict[str, str]:
        """The user's environment, whose git variables are traps as well."""
        names = ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "GIT_PROXY_COMMAND")
        fsmonitor = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor"}
        traps = {name: trap(self.canaries, name) for name in (*names, "GIT_CONFIG_VALUE_0")}
        return clean_env(HOME=str(self.home), XDG_CONFIG_HOME=str(self.home), **fsmonitor, **traps)


def trap(canaries: Path, name: str, *, passes: bool = True) -> str:
    """A program that leaves its mark, and passes its input on so that whoever started it goes on."""
    script = canaries.parent / "traps" / name
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\ntouch '{canaries}/{name}'\n{'cat' if passes else 'exit 1'}\n")
    script.chmod(0o755)
    return str(script)


def settings(canaries: Path, at: str) -> str:
    """A git configuration in which every setting that names a program names a trap."""

    def fires(name: str) -> str:
        return trap(canaries, f"{at}-{name}")

    return f"""
[core]
    fsmonitor = {fires("fsmonitor")}
    sshCommand = {fires("ssh")}
    pager = {fires("pager")}
    editor = {fires("editor")}
    askPass = {fires("askpass")}
    gitProxy = {fires("proxy")}
    alternateRefsCommand = {fires("alternate-refs")}
[filter "evil"]
    clean = {fires("clean")}
    smudge = {fires("smudge")}
    required = true
[filter "long"]
    process = {fires("process")}
[diff]
    external = {fires("diff-external")}
[diff "evil"]
    textconv = {fires("textconv")}
    command = {fires("diff-command")}
[merge "evil"]
    driver = {fires("merge")}
[alias]
    rev-parse = !{fires("alias-rev-parse")}
    cat-file = !{fires("alias-cat-file")}
    evil = !{fires("alias")}
[uploadpack]
    packObjectsHook = {fires("pack-objects")}
[gpg]
    program = {fires("gpg")}
[commit]
    gpgSign = true
[credential]
    helper = !{fires("credential")}
[protocol]
    allow = always
[protocol "ext"]
    allow = always
"""


def set_traps(git_dir: Path, canaries: Path, at: str) -> None:
    """Fill a git directory with traps: its configuration, an included one, every hook, and its attributes."""
    (git_dir / "hooks").mkdir(exist_ok=True)
    (git_dir / "info").mkdir(exist_ok=True)
    for hook in HOOKS.split():
        shutil.copy(trap(canaries, f"{at}-hook-{hook}"), git_dir / "hooks" / hook)
    (git_dir / "included").write_text(f"[core]\n    hooksPath = {git_dir}/hooks\n")
    with (git_dir / "config").open("a") as config:
        config.write(settings(canaries, at) + f"[include]\n    path = {git_dir}/included\n")
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES)


def write_hostile(folder: Path) -> Hostile:
    """The repository: hostile at every level at which git reads anything."""
    canaries, home = folder / "canaries", folder / "home"
    canaries.mkdir(parents=True)
    (home / "git").mkdir(parents=True)
    (home / "git" / "config").write_text(settings(canaries, "xdg"))
    (home / ".gitconfig").write_text(settings(canaries, "home"))
    more = {".gitattributes": ATTRIBUTES, "policy/id.py": "VERSION = '$Id$'\n"}
    project = write_repository(folder / "project", {**FILES, **more})
    nested = project / "nested.git"
    git(folder, "init", "--quiet", "--bare", str(nested))
    set_traps(nested, canaries, "nested")
    module = project.parent / "module"
    write_repository(module, {"module.py": "x = 1\n"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "vendored")
    git(project, "add", "nested.git")
    git(project, "commit", "--quiet", "--message=A submodule and a nested repository")
    git(project, "branch", "other")
    (project / "train.py").write_text("an edit that is not committed\n")
    (project / "untracked.txt").write_text("a file that git does not know\n")
    set_traps(project / ".git", canaries, "repository")
    set_traps(project / ".git" / "modules" / "vendored", canaries, "module")
    assert not list(canaries.iterdir())
    return Hostile(project, home, canaries)


def plain_git(hostile: Hostile, *words: str) -> None:
    """Whatever git makes of it, as a careless program would call it."""
    subprocess.run(
        ["git", *words],
        cwd=hostile.project,
        env=clean_env(HOME=str(hostile.home)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


class Night(NamedTuple):
    """A hostile project after a whole evening with Overnight, and how it was before."""

    hostile: Hostile
    before: dict[str, str]
    copy: Path
    scene: Scene


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """Every verb that touches a repository, one after another."""
    hostile = write_hostile(tmp_path_factory.mktemp("hostile"))
    project, env, copy = hostile.project, hostile.env(), hostile.project.parent / "copy"
    before = digest_of(project, without=[".overnight"])

    def verb(*words: str) -> None:
        done = overnight(*words, cwd=project, env=env)
        assert done.returncode == 0, done.stderr

    verb("init", ".")
    scene = scene_in(project)
    complete(scene)
    verb("contract", "check")
    assert at_terminal("approve", cwd=project, env=env).code == 0
    assert at_terminal("approve", "experiments", cwd=project, env=env).code == 0
    verb("propose", "--edit", str(copy))
    (copy / "train.py").write_text("SEED = 1\nLEARNING_RATE = 0.01\nprint('training')\n")
    verb("propose", "--from", str(copy), "--kind", "code", "--because", "A larger step.")
    verb("check", "candidate", "c-0001")
    verb("show", "c-0001")
    verb("candidates")
    verb("status")
    verb("ledger", "verify")
    return Night(hostile, before, copy, scene)


def test_the_traps_are_live(tmp_path: Path) -> None:
    hostile = write_hostile(tmp_path)
    touched = ("add", "train.py"), ("add", "config.json"), ("checkout", "--", "policy/net.py")
    shown = ("status",), ("diff",), ("show", "--no-ext-diff", "--textconv", "HEAD~1")
    (hostile.project / "config.json").write_text("{}\n")
    (hostile.project / "policy" / "net.py").unlink()
    for words in (*shown, *touched, ("update-ref", "refs/heads/more", "HEAD"), ("evil",)):
        plain_git(hostile, *words)
    programs = {"fsmonitor", "clean", "smudge", "process", "diff-command", "textconv", "alias"}
    hooks = {"hook-post-index-change", "hook-post-checkout", "hook-reference-transaction"}
    assert {f"repository-{name}" for name in programs | hooks} <= hostile.fired()


def test_no_trap_fires_in_a_whole_evening(night: Night) -> None:
    assert night.hostile.fired() == set()


def test_nothing_of_the_users_is_touched(night: Night) -> None:
    assert digest_of(night.hostile.project, without=[".overnight"]) == night.before


def test_the_copy_is_the_commit_byte_for_byte(night: Night) -> None:
    ours = {path.relative_to(night.copy).as_posix() for path in night.copy.rglob("*") if path.is_file()}
    assert {*FILES, ".gitattributes", ".gitmodules", "policy/id.py"} <= ours
    assert (night.copy / "policy" / "id.py").read_bytes() == b"VERSION = '$Id$'\n"
    assert not any(part == ".git" for path in ours for part in path.split("/"))
    assert not any(path.startswith("vendored/") for path in ours)


def test_the_candidate_holds_the_edit_and_nothing_else(night: Night) -> None:
    drafted = night.scene.entries("drafted")[0]
    names = night.scene.git("diff-tree", "--name-only", "-r", "--no-renames", drafted["base"], drafted["commit"])
    assert (names, drafted["changed_paths"]) == ("train.py", 1)


def test_traps_inside_the_candidate_store_do_not_fire(night: Night, tmp_path: Path) -> None:
    canaries = tmp_path / "canaries"
    canaries.mkdir()
    project = shutil.copytree(night.hostile.project, tmp_path / "project", symlinks=True)
    set_traps(project / ".overnight" / "store.git", canaries, "store")
    for words in (("check", "candidate", "c-0001"), ("show", "c-0001"), ("propose", "--edit", str(tmp_path / "copy"))):
        assert overnight(*words, cwd=project).returncode == 0
    (tmp_path / "copy" / "train.py").write_text("LEARNING_RATE = 0.1\n")
    proposal = ("propose", "--from", str(tmp_path / "copy"), "--kind", "code", "--because", "Larger still.")
    assert overnight(*proposal, cwd=project).returncode == 0
    assert list(canaries.iterdir()) == []


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Hostile]:
    """A fresh hostile repository; whatever the test did, no trap may have fired."""
    found = write_hostile(tmp_path)
    yield found
    assert found.fired() == set()


def test_a_git_file_that_points_at_an_evil_repository_starts_nothing(hostile: Hostile) -> None:
    inner = hostile.project / "inner"
    shutil.copytree(hostile.project / ".git", inner / "evil", symlinks=True)
    (inner / ".git").write_text("gitdir: ./evil\n")
    before = digest_of(hostile.project, without=[".overnight"])
    done = overnight("init", ".", cwd=inner, env=hostile.env())
    assert done.returncode == 0, done.stderr
    assert digest_of(hostile.project, without=[".overnight"]) == before


def test_a_nested_bare_repository_starts_nothing(hostile: Hostile) -> None:
    before = digest_of(hostile.project, without=[".overnight"])
    done = overnight("init", ".", cwd=hostile.project / "nested.git", env=hostile.env())
    assert done.returncode == 0, done.stderr
    assert digest_of(hostile.project, without=[".overnight"]) == before


def test_a_submodule_starts_nothing(hostile: Hostile) -> None:
    before = digest_of(hostile.project, without=[".overnight"])
    done = overnight("init", ".", cwd=hostile.project / "vendored", env=hostile.env())
    assert done.returncode == 0, done.stderr
    assert digest_of(hostile.project, without=[".overnight"]) == before


def promise_a_commit(hostile: Hostile) -> None:
    """Let HEAD name a commit that is missing here, and that a trap promises to deliver."""
    fetches = trap(hostile.canaries, "fetch", passes=False)
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::{fetches}",
    }.items():
        git(hostile.project, "config", key, value)
    (hostile.project / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")


def test_a_missing_commit_is_not_fetched_from_anywhere(hostile: Hostile) -> None:
    promise_a_commit(hostile)
    done = overnight("init", ".", cwd=hostile.project, env=hostile.env())
    assert (done.returncode, "HEAD names no commit in it" in done.stderr) == (2, True)


def test_a_plain_git_would_have_fetched_the_missing_commit(tmp_path: Path) -> None:
    hostile = write_hostile(tmp_path)
    promise_a_commit(hostile)
    plain_git(hostile, "rev-parse", "HEAD^{commit}")
    assert "fetch" in hostile.fired()


def test_a_hostile_program_called_git_in_the_project_is_not_found(hostile: Hostile) -> None:
    shutil.copy(trap(hostile.canaries, "git"), hostile.project / "git")
    (hostile.project / "git").chmod(0o755)
    done = overnight("init", ".", cwd=hostile.project, env={**hostile.env(), "PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
