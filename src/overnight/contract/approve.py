"""Who may approve what, and which approvals are in force.

An approval is bound to the digest of one clause. Editing the clause voids exactly that
one. What is recorded is how the word was given; only a signature proves by whom.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from overnight.contract.read import Reading, digests
from overnight.records.approval import Approval, Strength
from overnight.records.codec import digest, encode, frozen
from overnight.records.contract import CALLED, Clause, Contract
from overnight.records.refusal import Reason
from overnight.records.standing import ClauseStanding, Standing

AGENT_HOSTS: dict[str, str] = {
    "CLAUDECODE": "Claude Code",
    "CLAUDE_CODE_ENTRYPOINT": "Claude Code",
    "CLAUDE_CODE_SESSION_ID": "Claude Code",
    "CODEX_SANDBOX": "Codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "Codex",
    "CODEX_THREAD_ID": "Codex",
    "CODEX_CI": "Codex",
    "CURSOR_AGENT": "Cursor",
    "GEMINI_CLI": "Gemini CLI",
    "OPENCODE": "OpenCode",
    "GOOSE_TERMINAL": "Goose",
    "AMP_CURRENT_THREAD_ID": "Amp",
    "AI_AGENT": "a coding agent",
}
"""Environment variables by which the known agent hosts show themselves."""


def agent_host(env: Mapping[str, str]) -> str | None:
    """The agent host that this process runs in, as far as it shows itself."""
    return next((host for name, host in AGENT_HOSTS.items() if env.get(name)), None)


def standings(
    reading: Reading, approvals: Mapping[Clause, Mapping[str, Any]], flaws: Mapping[Clause, str]
) -> tuple[ClauseStanding, ...]:
    """Compare the contract as it stands with what was approved, clause by clause.

    `flaws` says of each approval what is wrong with its signature, where it needs one.
    """
    now = digests(reading)
    found = [_standing(clause, now.get(clause), reading, approvals.get(clause)) for clause in Clause]
    return tuple(_proven(one, flaws.get(one.clause, "")) for one in found)


def _proven(one: ClauseStanding, flaw: str) -> ClauseStanding:
    if not flaw or one.standing is not Standing.IN_FORCE:
        return one
    says = f"The approval of the {CALLED[one.clause]} (`{one.clause}`) does not count. {flaw}"
    return ClauseStanding(one.clause, Standing.UNPROVEN, says)


def _standing(clause: Clause, now: str | None, reading: Reading, approval: Mapping[str, Any] | None) -> ClauseStanding:
    called = CALLED[clause]
    if approval is None:
        problem = reading.problem(clause)
        says = f"The {called} (`{clause}`) is not approved."
        return ClauseStanding(clause, Standing.MISSING, f"{says} {problem}" if problem else says)
    if now != approval["digest"]:
        how = reading.problem(clause) or "It was edited after it was approved."
        return ClauseStanding(clause, Standing.VOID, f"The approval of the {called} (`{clause}`) is void. {how}")
    strength, who = approval["strength"], approval["approver"]
    return ClauseStanding(clause, Standing.IN_FORCE, f"The {called} is approved by {who} ({strength}).")


class Given(NamedTuple):
    """A word as it was given, with the signed text and the signature where there is one."""

    approver: str
    strength: Strength
    signed: str | None = None
    signature: str | None = None


def approval(
    contract_clause: object,
    clause: Clause,
    *,
    given: Given,
    before: Mapping[str, Any] | None,
) -> Approval:
    """Approve one clause as it stands, naming what it replaces."""
    terms = frozen(encode(contract_clause))
    if not isinstance(terms, Mapping):
        raise TypeError("a clause is a record")
    return Approval(
        clause=clause,
        digest=digest(contract_clause),
        terms=terms,
        approver=given.approver,
        strength=given.strength,
        replaces=before["digest"] if before else None,
        signed=given.signed,
        signature=given.signature,
    )


_BY_STRENGTH = (Strength.UNATTENDED, Strength.TERMINAL, Strength.SIGNED)


def stronger(strength: Strength, before: Mapping[str, Any]) -> bool:
    """Whether a word is stronger than the one that stands."""
    return _rank(strength) > _rank(Strength(before["strength"]))


def weakens(strength: Strength, before: Mapping[str, Any] | None, now: str) -> bool:
    """Whether a word about changed text is weaker than the one that it would replace."""
    return before is not None and before["digest"] != now and _rank(strength) < _rank(Strength(before["strength"]))


def _rank(strength: Strength) -> int:
    return _BY_STRENGTH.index(strength)


def against_unattended(contract: Contract) -> tuple[Reason, ...]:
    """Why this contract needs a person: only our own trainer on plain parameters may start unattended."""
    found = []
    if contract.baseline.trainer != "built-in":
        found.append("The baseline command is not a built-in trainer.")
    if contract.scope.preset != "params":
        found.append(f"The scope `{contract.scope.preset}` lets candidates bring code.")
    if set(contract.experiments.kinds) & {"code", "environment"}:
        found.append("The class of experiments includes code or environments.")
    if contract.experiments.permissions.network:
        found.append("Candidates would get the network.")
    if contract.experiments.permissions.trackers:
        found.append("Candidates would write to experiment trackers.")
    if contract.budget.max_dollars or contract.budget.max_tokens:
        found.append("The budget pays for a coding agent.")
    if contract.experiments.agent is not None:
        found.append("A coding agent would be started, with the network and credentials of its own.")
    return tuple(Reason(rule="unattended", says=says) for says in found)
