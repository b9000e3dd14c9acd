"""What every machine must do. Subclass, supply `machine` and `folder` fixtures, and run pytest."""

import os

import pytest

from overnight.ports import Machine


class MachineCases:
    """The promises of `ports.Machine` that can be observed without pulling a plug."""

    @pytest.fixture
    def machine(self) -> Machine:
        """The machine under test."""
        raise NotImplementedError("supply a `machine` fixture")

    @pytest.fixture
    def folder(self) -> str:
        """A folder that exists on that machine, as a plain string."""
        raise NotImplementedError("supply a `folder` fixture")

    def test_what_is_written_in_pieces_is_read_back_whole(self, machine: Machine, folder: str) -> None:
        """Short writes are the caller's to finish."""
        fd = machine.open(f"{folder}/a", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        data, done = b"x" * 500 + b"y" * 500, 0
        while done < len(data):
            done += machine.write(fd, data[done:])
        machine.sync(fd)
        assert machine.size(fd) == 1000
        machine.close(fd)
        assert machine.read(f"{folder}/a") == data

    def test_a_missing_file_reads_as_none(self, machine: Machine, folder: str) -> None:
        """Absence is an answer, not an error."""
        assert machine.read(f"{folder}/absent") is None

    def test_writing_in_place_changes_only_those_bytes(self, machine: Machine, folder: str) -> None:
        """`pwrite` leaves the rest alone."""
        fd = machine.open(f"{folder}/b", os.O_RDWR | os.O_CREAT)
        for offset, data in ((0, b"........"), (2, b"ab")):
            done = 0
            while done < len(data):
                done += machine.pwrite(fd, data[done:], offset + done)
        machine.close(fd)
        assert machine.read(f"{folder}/b") == b"..ab...."

    def test_truncate_cuts_the_end_off(self, machine: Machine, folder: str) -> None:
        """What is cut is gone."""
        fd = machine.open(f"{folder}/c", os.O_RDWR | os.O_CREAT)
        machine.pwrite(fd, b"z", 0)
        machine.truncate(fd, 0)
        assert machine.size(fd) == 0
        machine.close(fd)

    def test_replace_puts_one_file_in_the_place_of_another(self, machine: Machine, folder: str) -> None:
        """The source name is gone afterwards."""
        for name in ("old", "new"):
            fd = machine.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT)
            machine.pwrite(fd, name[:1].encode(), 0)
            machine.close(fd)
        machine.replace(f"{folder}/new", f"{folder}/old")
        machine.sync_folder(folder)
        assert machine.read(f"{folder}/old") == b"n"
        assert machine.read(f"{folder}/new") is None

    def test_a_file_has_one_lock_and_closing_lets_it_go(self, machine: Machine, folder: str) -> None:
        """Two descriptors of one file cannot both hold it."""
        first = machine.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT)
        second = machine.open(f"{folder}/lock", os.O_RDWR)
        assert machine.lock(first)
        assert not machine.lock(second)
        machine.close(first)
        assert machine.lock(second)
        machine.close(second)

    def test_removing_a_missing_name_is_no_error(self, machine: Machine, folder: str) -> None:
        """`unlink` may be repeated."""
        machine.unlink(f"{folder}/absent")
        assert machine.read(f"{folder}/absent") is None

    def test_time_does_not_go_back(self, machine: Machine, folder: str) -> None:
        """The monotonic clock only rises."""
        assert machine.monotonic() <= machine.monotonic()

    def test_sleeping_takes_running_time_and_is_no_standstill(self, machine: Machine, folder: str) -> None:
        """Whoever sleeps on purpose has not stood still."""
        before = machine.running()
        machine.sleep(0.05)
        assert 0.04 < machine.running() - before < 30
        assert machine.stood_still() == 0
