"""The events of `codex exec --json`, read into what they amount to.

`thread.started` and `turn.started` begin, `item.completed` brings messages, changes and commands, `turn.completed` ends
with the tokens, and `turn.failed` ends with an error. An `error` event alone may be a connection that is tried again,
so it counts only where no turn was completed after it. No event tells dollars.
"""

from collections.abc import Iterable

from overnight.adapters.proposers.events import Told, events, number, object_in, reset_time, text, trouble_in


def read(lines: Iterable[bytes], now: float) -> Told:
    """Read a whole stream, or as much of it as there is."""
    said, wrong, tokens, ended = "", "", 0, False
    for event in events(lines):
        match event.get("type"):
            case "item.completed":
                item = event.get("item")
                if isinstance(item, dict) and item.get("type") == "agent_message":
                    said = text(item.get("text")) or said
            case "turn.completed":
                tokens, wrong, ended = tokens + _tokens(event.get("usage")), "", True
            case "turn.failed":
                error = event.get("error")
                wrong, ended = text(error.get("message")) if isinstance(error, dict) else "It failed.", True
            case "error":
                wrong = text(event.get("message"))
    trouble = trouble_in(wrong) if wrong else None
    return Told(
        said=said,
        answer=object_in(said),
        tokens=tokens,
        trouble=trouble,
        because=wrong,
        until=reset_time(wrong, now) if trouble == "limited" else None,
        ended=ended,
    )


def _tokens(usage: object) -> int:
    """Codex counts what came from its cache as read, too; and what it thought as written."""
    if not isinstance(usage, dict):
        return 0
    read_anew = number(usage.get("input_tokens")) - number(usage.get("cached_input_tokens"))
    return int(max(read_anew, 0.0) + number(usage.get("output_tokens")))
