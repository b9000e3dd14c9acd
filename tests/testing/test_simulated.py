"""The simulated machine keeps the same promises as the real one."""

from pathlib import Path

import pytest

from overnight.machine import RealMachine
from overnight.ports import Machine
from overnight.testing.machine_cases import MachineCases
from overnight.testing.simulated import SimulatedMachine


class TestSimulatedMachine(MachineCases):
    @pytest.fixture
    def machine(self) -> Machine:
        machine = SimulatedMachine()
        machine.make_folder("/work")
        return machine

    @pytest.fixture
    def folder(self) -> str:
        return "/work"


class TestRealMachine(MachineCases):
    @pytest.fixture
    def machine(self) -> Machine:
        return RealMachine()

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path)
