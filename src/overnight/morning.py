"""The morning: from the ledger and the runs to the facts of a report, and the report itself.

Everything here can be rebuilt at any time. The same ledger gives the same report, except for
what the referee must play again: the reference scores and the two recorded episodes, which are
the same too wherever the environment is deterministic.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from overnight import total
from overnight.ablating import stack_of, why_not
from overnight.admission import drafted, read_terms
from overnight.claims import claims, completed_runs, incumbent, median_run
from overnight.contract.trainers import what_search_knows
from overnight.curves import curve_of
from overnight.decide.certify import MEANING
from overnight.errors import OvernightError
from overnight.evaluate.measure import measure_reference, record
from overnight.evaluate.seeds import Seeds
from overnight.ports import Machine
from overnight.records.contract import Contract, Plant
from overnight.records.lifecycle import State
from overnight.records.proposal import Proposal
from overnight.report import facts as told
from overnight.report.exports import results_tsv
from overnight.report.html import render_html
from overnight.report.journal import Experiment, experiments, render_journal
from overnight.report.markdown import render_markdown
from overnight.report.png import encode_png
from overnight.report.score_graph import score_graph
from overnight.shortfall import shortfall
from overnight.study.artifacts import read_bytes
from overnight.study.durable import make_folder, write_file
from overnight.study.layout import StudyFolder
from overnight.study.ledger import RawEntry, read_sound
from overnight.study.state import CandidateState, StudyState
from overnight.study.study import read_entry, studies

_FRAMES = 200
_PACKAGES = ("overnight", "gymnasium", "jax", "envpool", "numpy")


class Morning:
    """One study, read for its report."""

    def __init__(
        self,
        machine: Machine,
        at: StudyFolder,
        state: StudyState,
        contract: Contract,
        seeds: Seeds,
        *,
        program: str = "overnight",
    ) -> None:
        self.machine, self.at, self.state, self.seeds = machine, at, state, seeds
        self.whole, self.contract = contract, contract.at(state.rung)
        self.program = program
        """How the command is called where the next commands will be pasted."""
        self.entries: list[RawEntry] = []
        read_sound(machine, at.folder, lambda entry, _: self.entries.append(entry))

    def write(self) -> told.Facts:
        """Write the report in both forms, with the table of results, and return what it says."""
        found, folder = self.facts(), self.at.report
        make_folder(self.machine, folder)
        write_file(self.machine, self.at.report_text, render_markdown(found).encode())
        write_file(self.machine, self.at.report_page, render_html(found).encode())
        write_file(self.machine, self.at.results, results_tsv(found).encode())
        experiments = tuple(self._experiments())
        write_file(self.machine, self.at.journal, render_journal(found, experiments).encode())
        if any(one.score is not None for one in experiments):
            write_file(self.machine, self.at.score_graph, score_graph(experiments))
        if self.contract.scope.preset == "single-file":  # where whoever reads such a repository looks for it
            write_file(self.machine, self._table_beside_the_code(), results_tsv(found).encode())
        return found

    def _table_beside_the_code(self) -> Path:
        """The table of the repository's first environment, or one of its own for another."""
        root, env = self.at.task.root, self.contract.task.env.id
        begun = [one for one in studies(root) if one.ledger.exists()]
        first = min(begun, key=lambda one: str(read_entry(self.machine, one, 0)["at"]))
        terms = read_terms(self.machine, first).contract()
        if terms is None or terms.task.env.id == env:
            return root.project / self.at.results.name
        return root.project / f"results_{re.sub('[^A-Za-z0-9.-]+', '-', env)}.tsv"

    def facts(self) -> told.Facts:
        """Everything that the report says."""
        state, contract = self.state, self.contract
        claims = tuple(self._claims())
        unit = contract.budget.stop_unit.replace("_", " ")
        counted = ", counted by a broker" if contract.budget.metered else ""
        return told.Facts(
            study=state.study,
            task=state.task,
            environment=contract.task.env.id,
            metric=told.Metric(
                name=contract.metric.name,
                unit=contract.metric.unit,
                direction=contract.metric.direction,
                solved=contract.metric.solved,
            ),
            budget=self._budget(f"{unit}{counted}"),
            hardware=f"{contract.hardware.device}, {contract.hardware.cores_per_run} core a run.",
            isolation=self._isolation(),
            baseline=self._baseline(),
            night=self._night(),
            claims=claims,
            shortfall=None if claims else self._shortfall(),
            candidates=tuple(self._line(one) for one in state.candidates.values() if _is_shown(state, one)),
            curves=tuple(self._curves()),
            replays=self._replays(),
            references=tuple(self._references()),
            versions=tuple(_versions()),
            next_commands=self._commands(),
            ledger_head=state.head,
            ledger_entries=state.entries,
            error=self._error(),
            search=what_search_knows(contract),
            behaviour=self._behaviour(),
            attribution=self._attribution(),
            total=total.says(state, contract),
        )

    def _experiments(self) -> Iterator[Experiment]:
        """The baseline and every decided candidate, in the order in which they were decided."""
        yield from experiments(self.state, self.whole, self.entries, self._proposal)

    def _proposal(self, one: CandidateState) -> Proposal:
        return drafted(self.machine, self.at, one).proposal

    def _budget(self, unit: str) -> str:
        budget, rung = self.whole.budget, self.state.rung
        if rung:
            return (
                f"Runs began with {budget.amount(0):,.0f} and trained for {budget.amount(rung):,.0f} {unit} at the end."
            )
        return f"Each run trained for {budget.amount(0):,.0f} {unit}."

    def _isolation(self) -> str:
        """Every tier that a run or a measurement of the ledger was held at."""
        told_by = [entry["data"] for entry in self.entries if entry["kind"] in ("ended", "measured")]
        return ", ".join(sorted({data.get("tier") or "T1" for data in told_by})) or "T1"

    # Claims

    def _claims(self) -> Iterator[told.Claim]:
        """Every certified gain, newest first, told by the same computation that certified it."""
        for one in claims(self.state, self.entries, self.contract):
            yield told.Claim(
                sentence=one.sentence,
                fixed_line=MEANING,
                before=_mean(one.found.incumbent.scores),
                after=_mean(one.found.candidate.scores),
                gain=one.decision["gain"],
                low=one.decision["gain_low"],
                high=one.decision["gain_high"],
                seeds_each=len(one.found.candidate.scores),
                candidates=one.stack,
                evidence=tuple(self._evidence(one.runs)),
                command=self._command("reproduce", one.candidate),
                guardrails=tuple((it["name"], it["worse_by"], it["margin"]) for it in one.decision["guardrails"]),
                details=one.decision.get("details", ""),
            )

    def _evidence(self, runs: tuple[str, ...]) -> Iterator[told.EvidenceFile]:
        for entry in self.entries:
            if entry["kind"] == "measured" and entry["data"]["run"] in runs:
                digest = entry["data"]["artefact"]
                yield told.EvidenceFile(path=f"objects/{digest}", digest=digest)

    def _shortfall(self) -> told.Shortfall:
        decided = [entry["data"] for entry in self.entries if entry["kind"] == "decided"]
        return shortfall(self.state, self.contract, decided)

    def _error(self) -> str:
        """How much of the allowed chance of a false claim each attempt was given."""
        spent = [data["error_spent"] for data in self._attempts() if data.get("error_spent") is not None]
        total = self.contract.evaluation.max_false_claims
        told_of = ", ".join(f"{one:.2g}" for one in spent) or "none"
        return f"Error given to each attempt so far: {told_of}; all attempts of this study together own {total:g}."

    def _attempts(self) -> list[dict[str, Any]]:
        ours = [entry["data"] for entry in self.entries if entry["kind"] == "decided"]
        return [data for data in ours if data["evidence"] and self.state.runs[data["evidence"][0]].phase == "confirm"]

    def _behaviour(self) -> tuple[str, ...]:
        seen = [entry["data"]["behaviour"] for entry in self.entries if entry["kind"] == "verified"]
        return tuple(seen[-1]) if seen else ()

    def _attribution(self) -> tuple[str, ...]:
        """Which parts of the certified stack carry the gain, or why that was not tested."""
        stack = stack_of(self.state, self._proposal)
        if stack is None:
            return ()
        for entry in reversed(self.entries):
            if entry["kind"] == "ablated" and entry["data"]["candidate"] == stack.tip:
                return (entry["data"]["says"], *(part["says"] for part in entry["data"]["parts"]))
        return (why_not(self.state, stack),)

    # What was tried

    def _baseline(self) -> told.Baseline:
        scores = self._scores(self.state.baseline)
        return told.Baseline(
            name="The baseline",
            source=self.contract.baseline.source,
            command=" ".join(self.contract.baseline.command),
            commit=self.state.candidates[self.state.baseline].commit if self.state.baseline else self.state.incumbent,
            score=fmean(scores) if scores else None,
        )

    def _scores(self, candidate: str) -> list[float]:
        return [
            run.score
            for run in self.state.runs.values()
            if run.candidate == candidate and run.phase == "screen" and run.score is not None
        ]

    def _line(self, one: CandidateState) -> told.CandidateLine:
        proposal = drafted(self.machine, self.at, one).proposal
        scores = self._scores(one.id)
        tip = next(
            (other.id for other in self.state.candidates.values() if other.commit == one.base), self.state.baseline
        )
        tips = self._scores(tip)
        screened = self._screening(one.id)
        return told.CandidateLine(
            id=one.id,
            commit=one.commit,
            hypothesis=one.hypothesis,
            proposer=proposal.proposer,
            state=one.state,
            kept=one.kept,
            verdict=screened["because"] if screened is not None else one.failure,
            gain=screened["gain"] if screened is not None else None,
            score=fmean(scores) if scores else None,
            luckiest=max(scores, default=None),
            tip_mean=fmean(tips) if tips else None,
            crashed=bool(one.failure) and not scores,
            plant=_plant(one.plant),
            refusals=tuple(one.refused),
        )

    def _screening(self, candidate: str) -> dict[str, Any] | None:
        """The verdict on one candidate by itself; what a certification says is about the whole stack."""
        about = [
            entry["data"]
            for entry in self.entries
            if entry["kind"] == "decided" and entry["data"]["candidate"] == candidate
        ]
        plant = bool(self.state.candidates[candidate].plant)
        own = [data for data in about if plant or self.state.runs[data["evidence"][0]].phase == "screen"]
        return own[-1] if own else None

    def _night(self) -> told.Night:
        state = self.state
        times = [entry["at"] for entry in self.entries if entry["kind"] in ("entered", "launched", "ended", "decided")]
        ended = Counter(one.outcome or "open" for one in state.asks.values())
        return told.Night(
            started=times[0][:16] if times else "",
            ended=times[-1][:16] if times else "",
            hours=_hours(times),
            runs=state.paid_runs,
            lost_runs=state.lost_runs,
            candidates=sum(_is_shown(state, one) for one in state.candidates.values()),
            wall_seconds=state.wall_seconds,
            cpu_seconds=state.cpu_seconds,
            asks=len(state.asks),
            answers=", ".join(f"{count} {outcome}" for outcome, count in ended.most_common()),
            dollars=state.dollars,
            tokens=state.tokens,
            gaps=tuple(
                (entry["data"]["until"], entry["data"]["seconds"])
                for entry in self.entries
                if entry["kind"] == "stood_still"
            ),
        )

    # What can be seen

    def _arms(self) -> list[tuple[told.Arm, str]]:
        winner = next((one.id for one in self.state.candidates.values() if one.commit == self.state.tip), "")
        arms: list[tuple[told.Arm, str]] = [("baseline", self.state.baseline)]
        return [*arms, ("winner", winner)] if winner and winner != self.state.baseline else arms

    def _curves(self) -> Iterator[told.Curve]:
        for arm, candidate in self._arms():
            series = tuple(curve_of(self.machine, self.at, name) for name, _ in completed_runs(self.state, candidate))
            if any(series):
                yield told.Curve(arm=arm, seeds=tuple(one for one in series if one))

    def _replays(self) -> tuple[told.Replay, told.Replay] | None:
        """The median episode of the median run of each arm, played again by the referee at equal seeds."""
        arms = self._arms()
        if len(arms) < 2:
            return None
        try:
            return (self._replay(*arms[0]), self._replay(*arms[1]))
        except (OvernightError, ValueError, IndexError):
            return None  # an environment that cannot draw itself here: the report is whole without pictures

    def _replay(self, arm: str, candidate: str) -> told.Replay:
        name = median_run(self.state, candidate)
        if name is None:
            raise ValueError(f"No run of {candidate} was completed.")
        entry = next(one["data"] for one in self.entries if one["kind"] == "measured" and one["data"]["run"] == name)
        episodes = json.loads(read_bytes(self.machine, self.at.objects, entry["artefact"]))["episodes"]
        seed = sorted(episodes, key=lambda episode: episode[1])[len(episodes) // 2][0]
        target = self.at.report / f"{arm}.npy"
        make_folder(self.machine, target.parent)
        played = record(self.machine, self.contract.task.env, self.at.runs / name, seed, target)
        frames: Any = np.load(target, allow_pickle=False)
        target.unlink()
        step = max(len(frames) // _FRAMES, 1)
        return told.Replay(
            title=f"{arm}: the median episode of the median run",
            seed=self.state.runs[name].train_seed,
            score=played.score(),
            frames=tuple(encode_png(frame) for frame in frames[::step]),
            seconds_per_frame=0.04 * step,
        )

    def _references(self) -> Iterator[told.Reference]:
        seeds = self.seeds.episodes("dev", 0, 20)
        for name in ("random", "no-op"):
            try:
                found = measure_reference(self.machine, self.contract.task.env, name, seeds)
            except OvernightError:
                continue
            if not found.error:
                yield told.Reference(name=name, score=found.score())

    def _commands(self) -> tuple[told.NextCommand, told.NextCommand, told.NextCommand]:
        tip = self._arms()[-1][1]
        more = told.NextCommand(says="See what was changed, and why.", command=self._command("show", tip))
        if incumbent(self.state) != self.state.baseline:
            home = self._command("take", "--policy", "policy")
            again = self._command("reproduce", incumbent(self.state))
            return (
                told.NextCommand(says="Take the policy home: weights, normaliser, and an act.py.", command=home),
                told.NextCommand(says="Train and measure it again, and compare every episode.", command=again),
                more,
            )
        return (
            told.NextCommand(
                says="Go on searching, with one more hour.",
                command=self._command("extend", "--hours 1 --candidates 20"),
            ),
            told.NextCommand(says="Then go on where the night ended.", command=self._command("start")),
            more,
        )

    def _command(self, verb: str, *words: str) -> str:
        """A command that works wherever it is pasted."""
        return " ".join((self.program, verb, *words, "--dir", shlex.quote(str(self.at.task.root.project))))


def _is_shown(state: StudyState, one: CandidateState) -> bool:
    """Whether a candidate is told of: neither the baseline, nor a knock-out that did not become the tip."""
    return one.id != state.baseline and (not one.ablates or one.kept or one.state is State.REVERTED)


def _plant(name: str) -> Plant | None:
    return "placebo" if name == "placebo" else "cheat" if name == "cheat" else None


def _mean(scores: tuple[float | None, ...]) -> float:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else 0.0


def _hours(times: list[str]) -> float:
    if len(times) < 2:
        return 0.0
    return (datetime.fromisoformat(times[-1]) - datetime.fromisoformat(times[0])).total_seconds() / 3600


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
