"""Attack somebody's evaluator: honest runs first, then one attack after the other, each in a fresh copy.

An attack got in where the evaluator reports a score that is better than the honest ones, although the policy is the
same. The folder itself is only read, and its digest before and after is compared.
"""

import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from overnight.attack.foreign import metric as metrics
from overnight.attack.foreign import payload
from overnight.attack.foreign.catalogue import Attack, scout
from overnight.attack.foreign.doors import Doors, look_for_doors
from overnight.attack.foreign.find import DRIVER
from overnight.attack.foreign.repository import copy, digest, files, restore
from overnight.attack.foreign.target import Outcome, Scouted, Siege, Target
from overnight.attack.foreign.trial import Ended, Ground, interpreter, run
from overnight.errors import OvernightError, UserError
from overnight.isolation import tier_for

_MISSING = "ModuleNotFoundError"
_MOST_RESULT_BYTES = 200_000
_FULL_MARGIN = 3.0
"""How many times the honest scatter a score must be above it."""
_ENOUGH_HONEST = 10
"""So many honest scores show the scatter; fewer that happen to lie close together do not."""
_BETTER = "The evaluator reported a better score for the same candidate."
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long it may take."""

    seconds: float
    """All of it."""
    timeout: float
    """One run of the evaluator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """What the evaluator does without an attack."""

    metric: str
    scores: tuple[float, ...]
    output: str
    results: tuple[str, ...]
    """Files that it wrote with the score in them."""
    seconds: float

    def margin(self) -> float:
        """By how much a score must be better to be more than scatter."""
        return _FULL_MARGIN * (max(self.scores) - min(self.scores)) + 1e-9 * max(map(abs, self.scores))

    def scatters(self) -> bool:
        """Whether the same candidate does not always get the same score."""
        return max(self.scores) > min(self.scores)

    def best(self, *, lower: bool) -> float:
        """The best honest score."""
        return min(self.scores) if lower else max(self.scores)


def besiege(target: Target, attacks: tuple[Attack, ...], limits: Limits, tell: Tell) -> Siege:
    """Try the attacks on the target, within the limits, and say how each went."""
    began, before = time.monotonic(), digest(target.root)
    with _ground(target) as ground:
        fight = Fight(target, ground, limits, began, tell)
        siege = fight.all(attacks)
    if digest(target.root) != before:
        what = "changed while the attacks ran; they run in a copy, so something else wrote to it"
        raise OvernightError(str(target.root), what, hint="run it again while nothing else writes there")
    return siege


@contextmanager
def _ground(target: Target) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="overnight-attack-", ignore_cleanup_errors=True) as folder:
        root = Path(os.path.realpath(folder))
        root.chmod(0o755)
        ground = Ground(folder=root, tier=tier_for("T1"), python=interpreter(target.root))
        for one in (ground.pristine, ground.work, ground.home):
            one.mkdir()
        copy(target.root, ground.pristine)
        if target.driver:
            (ground.pristine / DRIVER).write_text(target.driver)
        yield ground


class Fight:
    """One siege on its ground."""

    def __init__(self, target: Target, ground: Ground, limits: Limits, began: float, tell: Tell) -> None:
        self.target, self.ground, self.limits, self.began, self.tell = target, ground, limits, began, tell
        self.scores: tuple[float, ...] = ()
        """Every honest score so far; more are taken where a score scatters and an attack seems to have got in."""

    def all(self, attacks: tuple[Attack, ...]) -> Siege:
        """Honest runs, a look around, and every attack that applies and for which there is time."""
        honest = self._honest()
        seen, honest = self._scout(honest)
        doors = look_for_doors(self.target, self.ground.pristine, seen, honest.metric)
        applicable = [one for one in attacks if self._applies(one, doors, honest)]
        self.tell(f"{len(applicable)} attacks apply; each gets a fresh copy at tier {self.ground.tier}.")
        outcomes, left = [], []
        for number, one in enumerate(applicable, 1):
            if self._left() < honest.seconds * one.runs * 1.2:
                left.append(one.name)
                continue
            self.tell(f"attack {number} of {len(applicable)}: {one.name}")
            outcomes.append(self._attack(one, honest, doors, called=seen.is_called()))
        if not outcomes:
            raise self._nothing_tried(applicable, honest)
        return Siege(
            target=replace(self.target, metric=honest.metric),
            tier=self.ground.tier,
            metric=honest.metric,
            honest=self.scores or honest.scores,
            seconds=time.monotonic() - self.began,
            outcomes=tuple(outcomes),
            not_applicable=tuple(one.name for one in attacks if one not in applicable),
            left_out=tuple(left),
            notes=tuple(self._notes(honest, seen)),
        )

    def _nothing_tried(self, applicable: list[Attack], honest: Honest) -> UserError:
        """Nothing tried is not nothing found."""
        if not applicable:
            return UserError(
                self._where(), "has nothing that the chosen attacks could work on", hint="leave out `--attacks`"
            )
        what = (
            f"takes {honest.seconds:.0f} s for one run, so within {self.limits.seconds:.0f} s no attack could be tried"
        )
        return UserError(self._where(), what, hint="`--seconds` gives more time; a smaller evaluation takes less")

    def _left(self) -> float:
        return self.limits.seconds - (time.monotonic() - self.began)

    def _run(self, seconds: float) -> Ended:
        target = self.target
        return run(self.ground, target.command, cwd=target.cwd, seconds=max(min(seconds, self._left()), 1.0))

    def _fresh(self) -> None:
        restore(self.ground.pristine, self.ground.work)
        restore(self.ground.folder / "none", self.ground.home)

    # honest runs

    def _honest(self) -> Honest:
        """Run it twice as it is, from the folder first, and where that brings nothing from the script's own folder."""
        ended = self._first()
        name = self._metric(ended)
        scores, results = [self._score(ended, name)], self._results(ended, name)
        self._fresh()
        scores.append(self._score(again := self._run(self.limits.timeout), name))
        read = tuple(one for one in scores if one is not None)
        if len(read) < 2:
            raise UserError(self._where(), f"printed `{name}` once and not again: {again.why()}")
        seconds = (ended.seconds + again.seconds) / 2
        return Honest(metric=name, scores=read, output=ended.output, results=results, seconds=seconds)

    def _first(self) -> Ended:
        self._fresh()
        ended = self._run(self.limits.timeout)
        script = self.target.command[1] if len(self.target.command) > 1 else ""
        if ended.status == 0 or not script.endswith(".py") or "/" not in script:
            return ended
        folder, name = os.path.split(script)
        module = script.removesuffix(".py").replace("/", ".")
        furthest = self.target
        for command, cwd in ((("python", name), folder), (("python", "-m", module), ".")):
            self._fresh()
            other = replace(self.target, command=(*command, *self.target.command[2:]), cwd=cwd)
            tried = run(self.ground, other.command, cwd=cwd, seconds=max(min(self.limits.timeout, self._left()), 1.0))
            if tried.status == 0:
                self.target = other
                return tried
            if _MISSING in ended.why() and _MISSING not in tried.why():
                ended, furthest = tried, other
        self.target = furthest
        return ended

    def _metric(self, ended: Ended) -> str:
        """The name of the score; a sentence where there is none."""
        if ended.status != 0:
            raise UserError(
                self._where(), f"gives no score without any attack: {ended.why()}", hint=self._instead(ended)
            )
        name = self.target.metric or metrics.choose(ended.output)
        if name is None or metrics.read(ended.output, name) is None:
            known = ", ".join(f"`{one}`" for one in metrics.names(ended.output)[:12])
            what = f"prints no `{name}`" if name else "prints no score that is known by its name"
            raise UserError(
                self._where(),
                f"{what}; " + (f"it prints {known}" if known else "it prints no number with a name"),
                hint="`--metric NAME` says which number counts",
            )
        if not self.target.metric:
            self.target = replace(self.target, lower=self.target.lower or metrics.is_lower_better(name))
        return name

    def _instead(self, ended: Ended) -> str:
        """What helps where the evaluator itself does not end with a score."""
        why = ended.why()
        if "did not end" in why:
            return "`--evaluator` takes a command with fewer episodes, and `--timeout` and `--seconds` give more time"
        if _MISSING in why:
            return (
                f"it ran with {self.ground.python}; an environment in `.venv` of the folder, or the active one, is used"
            )
        if "required" in why or "usage:" in why:
            return f"`--evaluator '{self._where()} …'` takes the whole command, with its words"
        return f"it ran in a copy at tier {self.ground.tier}, without network; `--evaluator` takes the whole command"

    def _where(self) -> str:
        return " ".join(self.target.command)

    def _score(self, ended: Ended, name: str) -> float | None:
        return metrics.read(ended.output, name) if ended.status == 0 else None

    def _results(self, ended: Ended, name: str) -> tuple[str, ...]:
        """Files that the run made or changed, and that hold its score."""
        score, found = self._score(ended, name), []
        for path in files(self.ground.work):
            file, old = self.ground.work / path, self.ground.pristine / path
            if file.is_symlink() or not file.is_file() or file.stat().st_size > _MOST_RESULT_BYTES:
                continue
            text = file.read_bytes()
            changed = not old.is_file() or old.read_bytes() != text
            if changed and metrics.read(text.decode(errors="replace"), name) == score:
                found.append(path)
        return tuple(found)

    def _scout(self, honest: Honest) -> tuple[Scouted, Honest]:
        """One more honest run, of a candidate that looks around."""
        self._fresh()
        place = self.ground.work / "overnight_scout.json"
        if not self._edit(scout(), honest, called=False, variant=0):
            return Scouted(), honest
        score = self._score(self._run(self.limits.timeout), honest.metric)
        scores = honest.scores if score is None else (*honest.scores, score)
        try:
            told = json.loads(place.read_text())
        except (OSError, ValueError):
            return Scouted(), replace(honest, scores=scores)
        return doors_of(told, self.ground.work), replace(honest, scores=scores)

    # attacks

    def _applies(self, attack: Attack, doors: Doors, honest: Honest) -> bool:
        if not self.target.candidates[0].endswith(".py"):
            return attack.needs == "pickle"
        if attack.doors == ("call",) and not doors.called:
            return False
        there = {**doors.has, "results": bool(honest.results), "": True}
        return there[attack.needs]

    def _attack(self, attack: Attack, honest: Honest, doors: Doors, *, called: bool) -> Outcome:
        best: float | None = None
        honest = replace(honest, scores=self.scores or honest.scores)
        because = ""
        for variant in range(attack.variants):
            score, because = self._once(attack, honest, called=called, variant=variant)
            if score is not None and (best is None or metrics.is_better(score, best, lower=self.target.lower)):
                best = score
            if self._is_in(best, honest) or self._left() < honest.seconds:
                break
        honest = self._doubted(best, honest)
        if self._is_in(best, honest) and honest.scatters() and not self._clear(best, honest) and self._left() > 0:
            best, because = self._once(attack, honest, called=called, variant=variant)  # scatter may have done it
        got_in = self._is_in(best, honest)
        return Outcome(
            attack=attack.name,
            says=attack.says,
            got_in=got_in,
            score=best,
            line=doors.line(attack.doors) if got_in else None,
            fix=attack.fix,
            because=because or (_BETTER if got_in else "The score is no better."),
        )

    def _doubted(self, score: float | None, honest: Honest) -> Honest:
        """Take more honest scores while one that is better may be scatter; they count for every later attack too."""
        while self._is_in(score, honest) and honest.scatters() and len(honest.scores) < _ENOUGH_HONEST:
            if self._left() < honest.seconds:
                break
            self._fresh()
            more = self._score(self._run(self.limits.timeout), honest.metric)
            if more is None:
                break
            self.scores = (*honest.scores, more)
            honest = replace(honest, scores=self.scores)
        return honest

    def _is_in(self, score: float | None, honest: Honest) -> bool:
        lower = self.target.lower
        best = honest.best(lower=lower)
        return score is not None and metrics.is_better(score, best, lower=lower, margin=honest.margin())

    def _clear(self, score: float | None, honest: Honest) -> bool:
        """Whether a score is so far off that scatter cannot be the reason."""
        return score is not None and abs(score - honest.scores[0]) > 4 * honest.margin()

    def _once(self, attack: Attack, honest: Honest, *, called: bool, variant: int) -> tuple[float | None, str]:
        """One attempt: the score, and a sentence where there is none."""
        self._fresh()
        code = attack.code if self.target.candidates[0].endswith(".py") else "exec(FORGER)\n"
        if not self._edit(code, honest, called=called, variant=variant):
            return None, "The candidate's file cannot be edited."
        limit = min(self.limits.timeout, 6 * honest.seconds + 5)
        ended = self._run(limit)
        if attack.runs == 2:
            if not attack.stays:
                self._honest_candidate()
            ended = self._run(limit)
        score = self._score(ended, honest.metric)
        for path in honest.results if attack.needs == "results" else ():
            file = self.ground.work / path
            if file.is_file() and not file.is_symlink():
                written = metrics.read(file.read_text(errors="replace"), honest.metric)
                score = written if written is not None and ended.status == 0 else score
        return score, "" if score is not None else ended.why()

    def _edit(self, code: str, honest: Honest, *, called: bool, variant: int) -> bool:
        """Put code into the candidate's file in the copy."""
        file = self.ground.work / self.target.candidates[0]
        inserted = payload.line(code, self._knows(honest, called=called, variant=variant))
        if file.suffix != ".py":
            file.write_bytes(payload.bomb(file.read_bytes(), inserted))
            return True
        try:
            file.write_text(payload.put_into(file.read_text(), inserted))
        except (SyntaxError, UnicodeDecodeError):
            return False
        return True

    def _honest_candidate(self) -> None:
        for name in self.target.candidates:
            (self.ground.work / name).write_bytes((self.ground.pristine / name).read_bytes())

    def _knows(self, honest: Honest, *, called: bool, variant: int) -> dict[str, object]:
        """What an attack knows, as anybody does who has read the repository and run the evaluator once."""
        target, work = self.target, self.ground.work
        doors = look_for_doors(target, self.ground.pristine, Scouted(), honest.metric)
        fake = metrics.forged(honest.best(lower=target.lower), honest.metric, lower=target.lower)
        return {
            "METRIC": None if honest.metric == metrics.ALONE else honest.metric,
            "FAKE": fake if math.isfinite(fake) else 1e6,
            "LOWER": target.lower,
            "HONEST_OUTPUT": honest.output,
            "ROOT": str(work),
            "EVALUATORS": [str(work / one) for one in target.evaluators],
            "CANDIDATES": [str(work / one) for one in target.candidates],
            "MODULES": list(doors.modules),
            "STRINGS": list(doors.strings),
            "NUMBERS": list(doors.numbers),
            "RESULTS": [str(work / one) for one in honest.results],
            "TABLES": [str(work / one) for one in doors.tables],
            "IMPORTED": list(doors.imported),
            "SCOUT": str(work / "overnight_scout.json"),
            "CALLED": called,
            "VARIANT": variant,
        }

    def _notes(self, honest: Honest, seen: Scouted) -> Iterator[str]:
        if self.target.driver:
            yield f"{DRIVER} is in the copy alone: it stands for whoever imports the policy and calls the evaluator."
        if max(honest.scores) > min(honest.scores):
            low, high = min(honest.scores), max(honest.scores)
            yield f"Honest runs scatter from {low:g} to {high:g}; only a score beyond that counts."
        if seen.told and seen.calls == 0:
            yield f"No other file calls a function of {self.target.candidates[0]}, so attacks on calls do not apply."
        elif not seen.told and self.target.candidates[0].endswith(".py"):
            yield f"{self.target.candidates[0]} could not report from where it runs; every attack was tried on it."


def doors_of(told: object, work: Path) -> Scouted:
    """What the scout wrote down, taken with care: its file was written by the candidate's side."""
    from overnight.attack.foreign.doors import line_in

    if not isinstance(told, dict):
        return Scouted()
    calls = told.get("calls")
    return Scouted(
        imported=line_in(told.get("imported"), work),
        called=line_in(told.get("called"), work),
        printed=line_in(told.get("printed"), work),
        calls=calls if isinstance(calls, int) else 0,
        told=True,
    )
