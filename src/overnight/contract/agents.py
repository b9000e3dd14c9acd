"""The coding agents that are known by name, as the contract's own section: exact command, credentials, limits."""

import shlex
from pathlib import Path
from typing import Any

from overnight.errors import UserError
from overnight.records.agent import Agent
from overnight.records.codec import decode, encode

_CLAUDE = (
    "claude",
    "-p",
    "{brief}",
    *("--output-format", "stream-json", "--verbose"),
    *("--permission-mode", "dontAsk", "--permission-prompts", "none"),
    *("--tools", "Read,Edit,Write,Grep,Glob", "--allowedTools", "Read,Edit,Write,Grep,Glob"),
    *("--setting-sources", "user", "--strict-mcp-config"),
    *("--max-turns", "40", "--max-budget-usd", "{dollars}"),
    *("--json-schema", "{schema}", "--no-session-persistence"),
)
_CODEX = (
    *("codex", "exec", "-C", "{copy}", "-s", "workspace-write", "-c", 'approval_policy="never"'),
    *("--json", "-o", "{last}", "--output-schema", "{schema_file}"),
    *("--ephemeral", "--ignore-user-config", "--skip-git-repo-check"),
    "{brief}",
)
KNOWN: dict[str, dict[str, Any]] = {
    "claude": {
        "command": list(_CLAUDE),
        "speaks": "claude",
        "dollars_each": 1.0,
        "variables": ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"],
        "files": [".claude/.credentials.json"],
    },
    "codex": {
        "command": list(_CODEX),
        "speaks": "codex",
        "variables": ["CODEX_API_KEY", "OPENAI_API_KEY"],
        "files": [".codex/auth.json"],
    },
}
"""Who is known by name. `claude` edits and cannot run a command; both get their own credentials and nobody else's."""

DOLLARS, TOKENS = 10.0, 5_000_000
"""The ceilings that a draft puts beside an agent."""


def section(word: str) -> dict[str, Any]:
    """The section of an agent that is known by name, or of any other command line.

    Files that the line names are written with their whole path, because an agent works in a folder of its own.
    """
    if word in KNOWN:
        plain = KNOWN[word]
    else:
        try:
            words = shlex.split(word)
        except ValueError as error:
            raise UserError("--agent", f"is {word[:80]!r}, which is no command line: {error}") from error
        if not words:
            raise UserError("--agent", "is empty", hint="`claude`, `codex`, or a command line of your own")
        words[1:] = [str(Path(one).resolve()) if Path(one).is_file() else one for one in words[1:]]
        plain = {"command": words, "speaks": "plain"}
    found = encode(decode(Agent, plain, where="--agent"))
    return dict(found) if isinstance(found, dict) else plain


def ceilings(speaks: str) -> dict[str, Any]:
    """What a draft allows an agent to cost: money where the agent tells it, tokens where it counts them."""
    return {"max_dollars": DOLLARS if speaks == "claude" else 0, "max_tokens": TOKENS if speaks != "plain" else 0}
