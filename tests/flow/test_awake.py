"""What may end a night is seen on a machine's own files, and what keeps it awake ends with whoever asked for it."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from overnight import awake
from overnight.awake import kept_awake, risks
from scenes import Scene, at_terminal, overnight


def write(root: Path, **files: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_text(text)


def names(root: Path) -> set[str]:
    return {one.name for one in risks(root)}


def test_a_server_without_battery_lid_or_restarts_has_no_risks(tmp_path: Path) -> None:
    assert risks(tmp_path) == ()


def test_a_battery_that_runs_down_is_a_risk_and_one_that_is_charged_is_none(tmp_path: Path) -> None:
    supply = tmp_path / "sys/class/power_supply/BAT0"
    write(supply, type="Battery", status="Discharging", capacity="81")
    found = next(one for one in risks(tmp_path) if one.name == "battery")
    assert found.says == "The machine runs on its battery (81 %), which may not last a night."
    write(supply, status="Charging")
    assert "battery" not in names(tmp_path)


def test_a_lid_is_a_risk_where_nothing_holds_its_switch_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/acpi/button/lid/LID0").mkdir(parents=True)
    assert "lid" in names(tmp_path)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "lid" not in names(tmp_path)


def test_updates_that_restart_the_machine_are_a_risk(tmp_path: Path) -> None:
    folder = tmp_path / "etc/apt/apt.conf.d"
    write(folder, upgrades='// Unattended-Upgrade::Automatic-Reboot "true";\n')
    assert names(tmp_path) == set(), "a comment sets nothing"
    write(folder, upgrades='Unattended-Upgrade::Automatic-Reboot "true";\n')
    assert names(tmp_path) == {"updates"}


def test_a_system_that_ends_what_a_user_left_running_is_a_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        pw_name = "walker"

    monkeypatch.setattr("overnight.awake.pwd.getpwuid", lambda _: Entry)
    folder = tmp_path / "etc/systemd/logind.conf.d"
    folder.mkdir(parents=True)
    (folder / "own.conf").write_text("[Login]\n#KillUserProcesses=yes\n")
    assert names(tmp_path) == set()
    (folder / "own.conf").write_text("[Login]\nKillUserProcesses=yes\n")
    assert [one.command for one in risks(tmp_path)] == ["loginctl enable-linger"]
    write(tmp_path / "var/lib/systemd/linger", walker="")
    assert names(tmp_path) == set()


def test_the_doctor_and_the_screen_of_approval_name_the_risks_of_this_machine(drafted: Scene) -> None:
    seen = risks()
    doctor = overnight("doctor", cwd=drafted.project).stdout
    screen = at_terminal("approve", cwd=drafted.project).terminal
    assert all(one.says in doctor and one.says in screen for one in seen)
    assert ("What may end the night" in screen) is bool(seen)
    assert ("nothing was seen that would put this machine to sleep" in doctor) is not bool(seen)


def test_what_keeps_the_machine_awake_ends_with_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in that does what `systemd-inhibit` does: it runs the command that follows its options."""
    tool, note = tmp_path / "systemd-inhibit", tmp_path / "pid"
    tool.write_text(f'#!/bin/sh\necho $$ $* > {note}\nwhile [ $# -gt 1 ]; do shift; done\nexec "$1"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(awake, "_SYSTEMD", tmp_path)
    with kept_awake() as says:
        assert says == "systemd-inhibit keeps this machine awake."
        pid, *words = note.read_text().split()
        assert "--what=sleep:idle:handle-lid-switch" in words and Path(f"/proc/{pid}").is_dir()
    assert not Path(f"/proc/{pid}").is_dir()


def test_nothing_is_started_where_nobody_wants_the_machine_kept_awake() -> None:
    with kept_awake(wanted=False) as says:
        assert says == ""
