"""The events of `claude -p --output-format stream-json --verbose`, read into what they amount to.

One `system` event begins, `assistant` and `user` events follow, `rate_limit_event` tells how the account stands, and
one `result` ends. An error may come as `subtype: success` with `is_error: true`, so only `is_error` is believed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from overnight.adapters.proposers.events import Told, Trouble, events, number, object_in, reset_time, text, trouble_in

_SUBTYPES: dict[str, Trouble] = {
    "error_max_budget_usd": "spent",
    "error_max_turns": "unclear",
    "error_max_structured_output_retries": "unclear",
}
_TURNED_AWAY = (429, 529)


class _Stream:
    """What was read so far."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.said = ""
        self.tokens: dict[str, int] = {}
        self.until: float | None = None
        self.refused = False
        self.result: Mapping[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event in."""
        match event.get("type"):
            case "assistant":
                self._message(event.get("message"))
            case "rate_limit_event":
                self._limit(event.get("rate_limit_info"))
            case "result":
                self.result = event

    def _message(self, message: object) -> None:
        if not isinstance(message, dict):
            return
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "text":
                self.said = text(part.get("text")) or self.said
        self.tokens[text(message.get("id"))] = _tokens(message.get("usage"))  # one message comes in several events
        self.refused = self.refused or message.get("stop_reason") == "refusal"

    def _limit(self, info: object) -> None:
        if isinstance(info, dict) and info.get("status") in ("rejected", "denied"):
            self.until = number(info.get("resetsAt")) or None


def read(lines: Iterable[bytes], now: float) -> Told:
    """Read a whole stream, or as much of it as there is."""
    stream = _Stream(now)
    for event in events(lines):
        stream.take(event)
    result = stream.result
    said = text(result.get("result")) or stream.said
    trouble, because = _trouble(stream, said)
    until = (stream.until or reset_time(said, now)) if trouble == "limited" else None
    answer = result.get("structured_output")
    return Told(
        said=said,
        answer=answer if isinstance(answer, dict) else object_in(said),
        tokens=_tokens(result.get("usage")) or sum(stream.tokens.values()),
        dollars=number(result["total_cost_usd"]) if "total_cost_usd" in result else None,
        trouble=trouble,
        because=because,
        until=until,
        ended=bool(result),
    )


def _trouble(stream: _Stream, said: str) -> tuple[Trouble | None, str]:
    result = stream.result
    subtype = text(result.get("subtype"))
    if subtype in _SUBTYPES:
        return _SUBTYPES[subtype], f"It ended with {subtype}."
    if stream.refused:
        return "refusal", said
    if not result or not result.get("is_error"):
        return None, ""
    if result.get("api_error_status") in _TURNED_AWAY or stream.until is not None:
        return "limited", said
    errors = result.get("errors")
    listed = " ".join(text(one) for one in errors) if isinstance(errors, list) else ""
    told = said or listed or f"It ended with {subtype or 'an error'}."
    return trouble_in(told), told


def _tokens(usage: object) -> int:
    if not isinstance(usage, dict):
        return 0
    names = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
    return int(sum(number(usage.get(name)) for name in names))
