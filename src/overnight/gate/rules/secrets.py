"""Refuse a change that brings a key, a token or a password along.

Does not find a secret that has no known shape, is encoded, or is spread over several lines.
"""

import re

from overnight.gate.case import Admission
from overnight.records.refusal import Reason

_SHAPES: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("a private key", re.compile(rb"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")),
    ("an Anthropic key", re.compile(rb"\bsk-ant-[A-Za-z0-9_-]{16,}")),
    ("an OpenAI key", re.compile(rb"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}")),
    ("a GitHub token", re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})")),
    ("a GitLab token", re.compile(rb"\bglpat-[A-Za-z0-9_-]{16,}")),
    ("an AWS key", re.compile(rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a Google key", re.compile(rb"\bAIza[0-9A-Za-z_-]{30,}")),
    ("a Slack token", re.compile(rb"\bxox[abeprs]-[A-Za-z0-9-]{10,}")),
    ("a Hugging Face token", re.compile(rb"\bhf_[A-Za-z0-9]{30,}")),
    ("a signed token", re.compile(rb"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    (
        "a password or key",
        re.compile(
            rb"(?i)(?:api_?key|secret|passw(?:or)?d|auth_?token)[\"']?\s*[:=]\s*[\"'][A-Za-z0-9+/_.-]{16,}[\"']"
        ),
    ),
)


def refuse(case: Admission) -> tuple[Reason, ...]:
    """One reason for each changed file whose new lines hold something that looks like a secret."""
    found = [says for path, data in case.after.items() if (says := leak(path, case.before.get(path, b""), data))]
    return tuple(Reason(rule="secrets", says=says) for says in found[:20])


def leak(path: str, before: bytes, after: bytes) -> str:
    """What a file's new lines give away, as a sentence that does not repeat it; empty where that is nothing."""
    known = set(before.split(b"\n"))
    for number, line in enumerate(after.split(b"\n"), 1):
        for called, shape in _SHAPES if line not in known else ():
            if shape.search(line):
                return (
                    f"{path[:200]} holds what looks like {called} in line {number}, and a candidate carries no secrets."
                )
    return ""
