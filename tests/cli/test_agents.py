"""A coding agent on the command line: drafted, shown, never approved by itself, looked for, and added up."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asking import Asking, with_agent
from nights import params_study
from overnight.contract import agents
from overnight.contract.screen import screen
from overnight.errors import UserError
from overnight.study import yaml
from overnight.study.study import Study
from scenes import MACHINE, Said, Scene, overnight, scene_in

Verb = Callable[..., Said]
EXAMPLE = Path(__file__).parents[2] / "examples" / "agent.py"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "keys"))


def drafted(verb: Verb, project: Path, agent: str) -> dict[str, Any]:
    project.mkdir()
    said = verb("init", "CartPole-v1", "--agent", agent, "--dir", str(project))
    assert said.code == 0, said.stderr
    found: Any = yaml.load(scene_in(project).at.contract.read_bytes(), where="contract")
    return dict(found)


@pytest.mark.parametrize(
    ("agent", "dollars", "tokens"), [("claude", 10, 5_000_000), ("codex", 0, 5_000_000), ("my-agent --fast", 0, 0)]
)
def test_an_agent_is_drafted_with_its_exact_command_and_its_ceilings(
    verb: Verb, tmp_path: Path, agent: str, dollars: float, tokens: int
) -> None:
    terms = drafted(verb, tmp_path / "project", agent)
    assert terms["experiments"]["proposers"] == ["search", "human", "agent"]
    assert terms["experiments"]["agent"]["command"][0] == agent.split(maxsplit=1)[0]
    assert terms["experiments"]["agent"]["share"] == 0.25
    assert (terms["budget"]["max_dollars"], terms["budget"]["max_tokens"]) == (dollars, tokens)
    assert scene_in(tmp_path / "project").terms().contract() is not None


def test_the_command_of_claude_code_streams_edits_only_and_holds_its_own_ceiling() -> None:
    words = agents.section("claude")["command"]
    assert words[:3] == ["claude", "-p", "{brief}"] and "--verbose" in words
    assert words[words.index("--output-format") + 1] == "stream-json"
    assert words[words.index("--max-budget-usd") + 1] == "{dollars}"
    assert "Bash" not in words[words.index("--tools") + 1]
    assert words[words.index("--setting-sources") + 1] == "user", "what a candidate writes into its copy sets nothing"


def test_the_command_of_codex_names_no_flag_that_is_gone() -> None:
    words = agents.section("codex")["command"]
    assert words[:2] == ["codex", "exec"] and "--full-auto" not in words and "-a" not in words
    assert "--json" in words and words[-1] == "{brief}"


def test_a_file_that_a_command_names_is_written_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("")
    assert agents.section("python agent.py --fast")["command"] == ["python", str(tmp_path / "agent.py"), "--fast"]


@pytest.mark.parametrize("line", ["", "   ", 'python "agent.py'])
def test_what_is_no_command_line_is_said_so(line: str) -> None:
    with pytest.raises(UserError, match="--agent"):
        agents.section(line)


def test_no_agent_is_approved_unattended(verb: Verb, tmp_path: Path) -> None:
    drafted(verb, tmp_path / "project", "my-agent")
    said = verb("approve", "--yes", "--dir", str(tmp_path / "project"))
    assert said.code == 3 and "A coding agent would be started" in said.stderr


def test_the_approval_screen_says_what_an_agent_gets_and_costs(verb: Verb, tmp_path: Path) -> None:
    drafted(verb, tmp_path / "project", "claude")
    shown = " ".join(says for _, says in screen(scene_in(tmp_path / "project").contract()))
    assert "A coding agent proposes: `claude -p" in shown
    assert "ANTHROPIC_API_KEY" in shown and "at most $10, 5,000,000 tokens" in shown


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"proposers": ["search"]}, "does not name `agent`", id="an agent nobody lets propose"),
        pytest.param({"agent": None}, "`agent` says nothing", id="a proposer nobody described"),
    ],
)
def test_a_contract_names_its_agent_and_lets_it_propose_or_does_neither(
    verb: Verb, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    drafted(verb, tmp_path / "project", "codex")
    scene = scene_in(tmp_path / "project")
    scene.rewrite(lambda terms: terms["experiments"].update(change))
    said = verb("contract", "check", "--dir", str(scene.project))
    assert said.code != 0 and says in said.stdout + said.stderr


def test_the_doctor_says_whether_agents_are_here_and_what_the_contract_names_is_not(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\necho codex-cli 9.9.9\n")
    (programs / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("CODEX_API_KEY", "a-key-that-is-not-shown")
    drafted(verb, tmp_path / "project", "no-such-agent-anywhere")
    said = verb("doctor", "--json", "--dir", str(tmp_path / "project"))
    found = {one["name"]: one for one in json.loads(said.stdout)["findings"]}
    assert found["codex"]["says"] == "codex-cli 9.9.9; credentials in CODEX_API_KEY"
    assert found["claude"]["standing"] == "note" and "npm install" in found["claude"]["command"]
    assert found["agent"]["standing"] == "problem" and "not on the PATH" in found["agent"]["says"]
    assert "a-key-that-is-not-shown" not in said.stdout


def asked_once(scene: Scene) -> None:
    with scene.open() as study:
        engine = Asking(scene, study)
        assert engine.take().refused == ()


def test_the_status_adds_up_what_an_agent_cost(verb: Verb, tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    with_agent(scene, [{"params": {"gamma": 0.95}}])
    asked_once(scene)
    said = verb("status", "--dir", str(scene.project))
    assert "asked 1 times (1 proposal), $0.25, 1,000 tokens" in said.stdout


def test_the_example_is_an_agent(tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    command = [sys.executable, str(EXAMPLE)]
    with_agent(scene, [{}], speaks="plain", command=command, readable=[])
    asked_once(scene)
    proposal = scene.entries("drafted")[-1]["proposal"]
    assert list(proposal["params"]) == ["learning_rate"] and proposal["proposer"] == "agent"


def test_a_proposal_while_the_study_is_held_is_handed_in_and_not_lost(tmp_path: Path) -> None:
    scene = params_study(tmp_path / "project")
    scene.approve()
    words = ("propose", "--set", "gamma=0.95", "--because", "Shorter sight.", "--wait", "0", "--json")
    with Study.open(MACHINE, scene.at, doing="overnight start"):
        done = overnight(*words, cwd=scene.project)
    assert done.returncode == 0 and json.loads(done.stdout)["state"] == "handed over", done.stderr
    assert len(list(scene.at.inbox.glob("[0-9]*/proposal.json"))) == 1
