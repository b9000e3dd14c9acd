"""What a coding agent's output amounts to, whichever way it speaks: message, cost, trouble, and until when to wait."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from overnight.errors import UserError
from overnight.records import strict_json

Trouble = Literal["refusal", "limited", "broken", "spent", "unclear"]
"""Why there is no answer: it would not, its service turned it away, it failed, its ceiling was reached, it gave up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the events of one asking say."""

    said: str = ""
    """Its last message."""
    answer: object = None
    """The object that it answered with; null where there is none."""
    tokens: int = 0
    """Tokens read and written, without those from a cache."""
    dollars: float | None = None
    """What it told that it cost."""
    trouble: Trouble | None = None
    """Why there is no answer; null where nothing went wrong."""
    because: str = ""
    """The trouble in its own words."""
    until: float | None = None
    """Until when its service turns everybody away."""
    ended: bool = False
    """Whether the stream came to its own end."""


def events(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The objects of a stream of JSON lines; a line that is none, or is broken in two, is passed over."""
    for line in lines:
        try:
            found = strict_json.parse(line, where="event") if line.lstrip().startswith(b"{") else None
        except UserError:
            continue
        if isinstance(found, dict):
            yield found


def number(value: object) -> float:
    """A count or a price of an event, which may say anything; 0 where it is no such thing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return 0.0
    return min(max(float(value), 0.0), 1e15)


def text(value: object) -> str:
    """A text of an event, or nothing."""
    return value if isinstance(value, str) else ""


def object_in(message: str) -> object:
    """The last JSON object that a message holds, alone, in a fence or after some words; null where there is none."""
    fences = re.findall(r"```(?:json)?\s*\n(.*?)```", message, re.DOTALL)
    start = message.find("{")
    for piece in (message, *reversed(fences), message[start : message.rfind("}") + 1] if start >= 0 else ""):
        try:
            found = strict_json.parse(piece.strip().encode(), where="answer")
        except UserError:
            continue
        if isinstance(found, dict):
            return found
    return None


# Until when


_IN = re.compile(
    r"(?:again|resets?) in ((?:[0-9.]+ ?(?:days?|hours?|minutes?|seconds?|d|h|m|s)\b[ ,]*(?:and )?)+)", re.I
)
_PART = re.compile(r"([0-9.]+) ?(d|h|m|s)", re.I)
_AT = re.compile(
    r"(?:again at|resets?(?: at)?) (?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>[0-9]{1,2})(?:st|nd|rd|th)?,? )?"
    r"(?:(?P<year>20[0-9]{2}),? )?(?:at )?(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))? ?(?P<half>am|pm)?"
    r"(?: ?\((?P<zone>[A-Za-z_/+-]+)\))?",
    re.I,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def reset_time(message: str, now: float) -> float | None:
    """When a service says that it takes questions again, in seconds since 1970; null where it does not say."""
    if stamp := re.search(r"\|([0-9]{10})\b", message):
        return float(stamp.group(1))
    if found := _IN.search(message):
        parts = _PART.findall(found.group(1))
        return now + sum(float(amount) * _SECONDS[unit.lower()] for amount, unit in parts if amount.count(".") < 2)
    found = _AT.search(message)
    return _moment(found, now) if found is not None else None


def _moment(found: "re.Match[str]", now: float) -> float | None:
    """The next moment that fits what was said; a time of day without a zone is this machine's own."""
    here = datetime.fromtimestamp(now, _zone(found["zone"], now))
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        moment = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            moment = moment.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
    except ValueError:
        return None
    if not found["month"] and moment <= here:
        moment += timedelta(days=1)
    return moment.timestamp()


def _zone(name: str | None, now: float) -> tzinfo:
    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return UTC
    return datetime.fromtimestamp(now, UTC).astimezone().tzinfo or UTC


# What went wrong, in words that services use


_LIMITED = re.compile(
    r"usage limit|hit your limit|rate.?limit|quota|too many requests|\b429\b|overloaded|\b529\b", re.I
)
_SIGNED_OUT = re.compile(r"\b401\b|\b403\b|unauthori[sz]ed|invalid api key|not logged in|/login|authentication", re.I)
_POLICY = re.compile(r"usage policy|content policy|safety|violat|invalid_prompt|cannot assist|flagged", re.I)


def trouble_in(message: str) -> Trouble:
    """What sort of trouble an error message tells of; whatever is not known is a breakdown."""
    if _LIMITED.search(message):
        return "limited"
    return "refusal" if _POLICY.search(message) and not _SIGNED_OUT.search(message) else "broken"
