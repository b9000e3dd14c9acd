"""Reading a score out of what a program printed, and saying which of two scores is better.

The rule is the one that most loops use: the last line with the metric's name counts.
"""

import json
import math
import re

NUMBER = r"[-+]?(?:\d[\d_,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf(?:inity)?|nan)"
_PAIR = re.compile(rf"(?P<name>[A-Za-z][\w./%-]*)[\"']?\s*[:=]\s*(?P<value>{NUMBER})(?![\w.])", re.IGNORECASE)
_ALONE = re.compile(rf"\s*(?P<value>{NUMBER})\s*", re.IGNORECASE)
_LIKED = (
    *("score", "final_score", "avg_return", "mean_return", "eval_return", "mean_eval_return", "mean_reward"),
    *("episode_return", "average_return", "avg_reward", "average_reward", "return", "reward", "success_rate"),
    *("win_rate", "accuracy", "metric", "val_loss", "loss"),
)
"""Names that a score usually has, the most telling first."""
_TELLING = re.compile(r"score|return|reward|success|fitness|accuracy|loss", re.IGNORECASE)
_LOWER = re.compile(r"loss|err|bpb|regret|cost|perplex|rmse|mse|mae|latency|penalt", re.IGNORECASE)
_SHARE = re.compile(r"rate|accuracy|success|win|fraction|share|auc", re.IGNORECASE)
ALONE = "(the last line)"
"""What a score is called that is printed without a name."""


def read(text: str, name: str) -> float | None:
    """The last value of a metric, or None."""
    if name == ALONE:
        return _alone(text)
    found = None
    for line in text.splitlines():
        for key, value in _pairs(line):
            if key.lower() == name.lower():
                found = value
    return found if found is not None else _loosely(text, name)


def choose(text: str) -> str | None:
    """The name under which a program most probably prints its score."""
    names = list(dict.fromkeys(key for line in text.splitlines() for key, _ in _pairs(line)))
    by_lower = {key.lower(): key for key in names}
    for liked in _LIKED:
        if liked in by_lower:
            return by_lower[liked]
    for word in ("score", "return", "reward", "success", "metric", "fitness", "accuracy", "loss"):
        for key in names:
            if word in key.lower() and not re.match(r"(std|min|max|num|n)[_.-]", key, re.IGNORECASE):
                return key
    if _alone(text) is not None:
        return ALONE
    return names[0] if len(names) == 1 else None


def names(text: str) -> tuple[str, ...]:
    """Every name that has a number, in the order of first sight."""
    return tuple(dict.fromkeys(key for line in text.splitlines() for key, _ in _pairs(line)))


def is_lower_better(name: str) -> bool:
    """Whether a metric with this name is usually made small."""
    return bool(_LOWER.search(name))


def is_better(one: float, other: float, *, lower: bool, margin: float = 0.0) -> bool:
    """Whether one score beats another by more than a margin. What is not a number beats everything it is kept from."""
    if math.isnan(one):
        return False
    return one < other - margin if lower else one > other + margin


def forged(honest: float, name: str, *, lower: bool) -> float:
    """A score that is much better than the honest one, and would still be believed."""
    if lower:
        return round(honest / 10, 6) if honest > 0 else honest - 100.0
    if _SHARE.search(name) and 0 <= honest < 1:
        return 1.0
    return round(honest + max(100.0, 2 * abs(honest)), 3)


def _pairs(line: str) -> list[tuple[str, float]]:
    stripped = line.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        try:
            loaded = json.loads(stripped)
        except ValueError:
            loaded = None
        if isinstance(loaded, dict):
            return _numbers(loaded)
    found, since = [], 0
    for pair in _PAIR.finditer(line):
        found.append((_name(line[since : pair.start()], pair["name"]), _number(pair["value"])))
        since = pair.end()
    return found


def _name(before: str, word: str) -> str:
    """The word before a number; with all words before it where only those tell, as in `Mean reward of 4 runs: 9`."""
    if _TELLING.search(word) or not _TELLING.search(before):
        return word
    return re.sub(r"^[^A-Za-z]+", "", before) + word


def _numbers(loaded: dict[str, object]) -> list[tuple[str, float]]:
    found = []
    for key, value in loaded.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.append((key, float(value)))
        elif isinstance(value, dict):
            found += _numbers(value)
    return found


def _loosely(text: str, name: str) -> float | None:
    """A value that follows its name with anything but letters and digits between, as `mean reward (eval) 12.5`."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}[^\w\n+-]{{1,40}}(?P<value>{NUMBER})", re.IGNORECASE)
    hits = [_number(hit["value"]) for hit in pattern.finditer(text)]
    return hits[-1] if hits else None


def _alone(text: str) -> float | None:
    lines = [line for line in text.splitlines() if line.strip()]
    hit = _ALONE.fullmatch(lines[-1]) if lines else None
    return _number(hit["value"]) if hit else None


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("_", "").rstrip("."))
