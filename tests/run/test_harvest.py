"""What may be taken out of a trainer's folder: plain files of bounded size, reached without a link."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from overnight.errors import UserError
from overnight.run import harvest as module
from overnight.run.harvest import harvest
from overnight.sandbox.beneath import open_beneath, open_step_by_step

Opener = Callable[[int, str, int], int]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy folder as a trainer leaves it, with a secret beside the run."""
    folder = tmp_path / "run" / "out" / "policy"
    folder.mkdir(parents=True)
    (folder / "policy.json").write_text("{}")
    (tmp_path / "secret").write_text("swordfish")
    return folder


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def a_sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


EVIL: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link": (lambda path: path.symlink_to("../../../secret"), "cannot be opened"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot be opened"),
    "a second name of another file": (lambda path: path.hardlink_to(path.parents[3] / "secret"), "one name"),
    "a pipe": (lambda path: os.mkfifo(path), "not a plain file"),
    "a socket": (a_socket, "cannot be opened"),
    "a folder": (lambda path: path.mkdir(), "not a plain file"),
    "a terabyte of nothing": (a_sparse_file, "larger than 268,435,456 bytes"),
}


@pytest.mark.parametrize("kind", EVIL)
def test_nothing_but_a_plain_file_of_its_own_is_taken(policy: Path, kind: str) -> None:
    make, says = EVIL[kind]
    make(policy / "evil")
    with pytest.raises(UserError, match=says):
        harvest(policy, policy.parents[1] / "policy")
    assert not [path for path in (policy.parents[1] / "policy").glob("*") if "swordfish" in path.read_text()]


@pytest.mark.parametrize("part", ["policy", "out"])
def test_a_link_on_the_way_is_not_followed(policy: Path, part: str) -> None:
    link = policy if part == "policy" else policy.parent
    link.rename(link.with_name("elsewhere"))
    link.symlink_to("elsewhere")
    with pytest.raises(UserError, match="there is no policy folder"):
        harvest(policy, policy.parents[1] / "policy")


def test_what_lay_at_the_target_is_not_written_through(policy: Path) -> None:
    target = policy.parents[1] / "policy"
    (policy.parents[2] / "precious").mkdir()
    target.symlink_to(policy.parents[2] / "precious")
    harvest(policy, target)
    assert not target.is_symlink() and [path.name for path in target.iterdir()] == ["policy.json"]
    assert not list((policy.parents[2] / "precious").iterdir())


def test_the_whole_policy_counts_and_the_copy_is_exact(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(3_000_001)
    (policy / "model").write_bytes(data)
    first = harvest(policy, policy.parents[1] / "policy")
    assert (policy.parents[1] / "policy" / "model").read_bytes() == data
    assert harvest(policy, policy.parents[1] / "again") == first
    monkeypatch.setattr(module, "MAX_BYTES", 3_000_002)
    with pytest.raises(UserError, match="larger than"):
        harvest(policy, policy.parents[1] / "policy")


@pytest.mark.parametrize("opener", [open_beneath, open_step_by_step])
def test_both_ways_to_open_refuse_the_same(tmp_path: Path, opener: Opener) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "file").write_text("mine")
    (tmp_path / "file").write_text("secret")
    (tmp_path / "in" / "link").symlink_to("deep")
    (tmp_path / "in" / "out").symlink_to("..")
    folder = os.open(tmp_path / "in", os.O_RDONLY)
    try:
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(opener(folder, "deep/file", flags)) as file:
            assert file.read() == "mine"
        for name in ("link/file", "out/file", "../file", "deep/../../file", str(tmp_path / "file"), "link", "none"):
            with pytest.raises(OSError, match=r"\[Errno"):
                opener(folder, name, flags)
    finally:
        os.close(folder)
