"""Which line of an evaluator lets an attack in: seen by the scout where it could see, else read from the files."""

import csv
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from overnight.attack.foreign.facts import Facts, facts_of
from overnight.attack.foreign.repository import files
from overnight.attack.foreign.target import Line, Scouted, Target

_EARLY = {"sys", "os", "builtins", "io", "abc", "codecs", "site", "stat", "posixpath", "time", "__future__"}
"""Modules that are there before a script begins, so that no file can stand in their place."""
_MOST_SHADOWS = 3
_MOST_TABLE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The lines that matter, by kind, and what an attacker learns by reading."""

    lines: dict[str, Line]
    has: dict[str, bool]
    called: bool
    modules: tuple[str, ...]
    strings: tuple[str, ...]
    numbers: tuple[int, ...]
    tables: tuple[str, ...]
    imported: tuple[str, ...]
    """The evaluator's modules, as the candidate's own file imports them."""

    def line(self, kinds: tuple[str, ...]) -> Line | None:
        """The first known line of these kinds; None where none was determined."""
        return next((self.lines[kind] for kind in kinds if kind in self.lines), None)


def look_for_doors(target: Target, root: Path, seen: Scouted, metric: str) -> Doors:
    """Read the files of both sides, and join that with what the scout saw."""
    evaluators = _facts(root, target.evaluators)
    both = evaluators | _facts(root, target.candidates)
    lines = _read_lines(target, evaluators, both, metric)
    scouted = {"import": seen.imported, "call": seen.called, "print": seen.printed}
    lines |= {kind: line for kind, line in scouted.items() if line is not None}
    if "import" not in lines and "start" in lines:
        lines["import"] = lines["start"]
    modules = _shadowable(evaluators)
    for name, facts in evaluators.items():
        if modules and modules[0] in facts.imports:
            lines.setdefault("shadow", Line(name, facts.imports[modules[0]]))
    tables = tuple(_tables(root, metric))
    every = both.values()
    return Doors(
        lines=lines,
        called=seen.is_called(),
        has={
            "gym": any(one.split(".")[0] in ("gymnasium", "gym") for facts in every for one in facts.imports),
            "time": any(facts.times for facts in every),
            "pickle": any(facts.loads for facts in evaluators.values()),
            "process": any(facts.starts for facts in evaluators.values()),
            "table": bool(tables),
        },
        modules=modules,
        strings=tuple(sorted({text for facts in every for text in facts.strings if len(text) < 60})),
        numbers=tuple(sorted({number for facts in every for number in facts.ids})),
        tables=tables,
        imported=_imported_by(target, both),
    )


def line_in(told: object, work: Path) -> Line | None:
    """A line that the scout told, where it is one of the copy's files."""
    if not isinstance(told, list) or len(told) != 2 or not isinstance(told[0], str) or not isinstance(told[1], int):
        return None
    path = os.path.realpath(told[0])
    if not path.startswith(f"{work}{os.sep}"):
        return None
    return Line(os.path.relpath(path, work), told[1])


def _facts(root: Path, names: tuple[str, ...]) -> dict[str, Facts]:
    found = {}
    for name in names:
        if name.endswith(".py") and (facts := facts_of((root / name).read_text(errors="replace"))) is not None:
            found[name] = facts
    return found


def _read_lines(target: Target, evaluators: dict[str, Facts], both: dict[str, Facts], metric: str) -> dict[str, Line]:
    """The lines that can be told from the text alone."""
    lines: dict[str, Line] = {}
    modules = {Path(name).stem for name in target.candidates}
    for name, facts in evaluators.items():
        for kind, number in (("load", facts.loads), ("start", facts.starts), ("seed", facts.seeds)):
            if number is not None:
                lines.setdefault(kind, Line(name, number))
        for module, number in facts.imports.items():
            if modules & set(module.split(".")):
                lines.setdefault("import", Line(name, number))
    for name, facts in both.items():
        if metric in facts.prints:
            lines.setdefault("print", Line(name, facts.prints[metric]))
        for module, number in facts.imports.items() if name in target.candidates else ():
            if {Path(one).stem for one in target.evaluators} & set(module.split(".")):
                lines.setdefault("import", Line(name, number))
    return lines


def _imported_by(target: Target, both: dict[str, Facts]) -> tuple[str, ...]:
    stems = {Path(one).stem for one in target.evaluators}
    facts = both.get(target.candidates[0])
    return tuple(one for one in facts.imports if one.split(".")[-1] in stems) if facts is not None else ()


def _shadowable(evaluators: dict[str, Facts]) -> tuple[str, ...]:
    """Modules that the evaluator imports and that a file in its folder could stand for."""
    local = {Path(name).stem for name in evaluators} | {Path(name).parts[0] for name in evaluators}
    found: dict[str, None] = {}
    for facts in evaluators.values():
        for module in facts.imports:
            top = module.split(".")[0]
            if top and top not in local | _EARLY and top not in sys.builtin_module_names:
                found.setdefault(top)
    return tuple(found)[:_MOST_SHADOWS]


def _tables(root: Path, metric: str) -> list[str]:
    """Tables of earlier results that have a column for the metric."""
    found = []
    for name in files(root):
        path = root / name
        if path.suffix not in (".tsv", ".csv") or path.is_symlink() or path.stat().st_size > _MOST_TABLE_BYTES:
            continue
        with path.open(errors="replace", newline="") as file:
            first = next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","), [])
        if metric in first:
            found.append(name)
    return found
