"""Finding an evaluator in a folder: which script prints the score, which files measure, which one a candidate edits.

Files are read, never run. What cannot be told is asked for by name.
"""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from overnight.attack.foreign.facts import Facts, facts_of
from overnight.attack.foreign.repository import files
from overnight.attack.foreign.target import SHAPES, Shape, Target
from overnight.errors import UserError, did_you_mean

_EVALUATOR = re.compile(
    r"eval|score|scoring|judge|referee|benchmark|bench|grade|harness|framework|prepare|measure|assess", re.IGNORECASE
)
_CANDIDATE = re.compile(
    r"candidate|agent|polic|submission|solution|student|train|actor|controller|learner|model|player|brain",
    re.IGNORECASE,
)
_METRIC = re.compile(r"score|return|reward|success|metric|accuracy|fitness|loss|win|regret|^$", re.IGNORECASE)
_TEST = re.compile(r"^(test_.*|.*_test|conftest|setup|noxfile)\.py$")
_MOST_FILES = 3000
_MOST_BYTES = 1_000_000
_SAVED = {".pkl", ".pickle", ".pt", ".pth", ".joblib"}
DRIVER = "overnight_driver.py"
HINT = "`--evaluator 'python evaluate.py' --candidate policy.py` names them, and `--shape` says how they fit together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the person said; None where nothing was said."""

    shape: str | None = None
    evaluator: str | None = None
    candidate: str | None = None
    metric: str | None = None
    lower: bool | None = None


class Code:
    """The Python files of a folder, with their facts and with who imports whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts: dict[str, Facts] = {}
        for name in files(root):
            path = root / name
            if not name.endswith(".py") or len(self.facts) >= _MOST_FILES or not path.is_file():
                continue
            if path.stat().st_size <= _MOST_BYTES and (found := facts_of(path.read_text(errors="replace"))) is not None:
                self.facts[name] = found
        self.imports = {name: self._imported(name) for name in self.facts}

    def _imported(self, name: str) -> list[str]:
        """The files of this folder that a file imports, in the order in which it does."""
        found: dict[str, None] = {}
        for module in self.facts[name].imports:
            for path in self._resolve(name, module):
                found.setdefault(path)
        return [one for one in found if one != name]

    def _resolve(self, name: str, module: str) -> list[str]:
        here = Path(name).parent
        dots = len(module) - len(module.lstrip("."))
        parts = [part for part in module.lstrip(".").split(".") if part]
        starts = [here.joinpath(*[".."] * (dots - 1))] if dots else [here, *here.parents, Path("src")]
        for start in starts:
            inside = os.path.normpath(start.joinpath(*parts)) if parts else os.path.normpath(start)
            hits = [one for one in (f"{inside}.py", os.path.normpath(f"{inside}/__init__.py")) if one in self.facts]
            if hits:
                return hits
        return []

    def below(self, name: str) -> list[str]:
        """Every file that a script pulls in, nearest first, itself included."""
        found, wanted = [name], [name]
        while wanted:
            for one in self.imports.get(wanted.pop(0), []):
                if one not in found:
                    found.append(one)
                    wanted.append(one)
        return found

    def named(self, name: str) -> list[str]:
        """The Python files that a file names in its text, as a script does that starts another one."""
        here = Path(name).parent
        found = []
        for text in sorted(self.facts[name].strings):
            for one in (os.path.normpath(here / text), os.path.normpath(text)):
                if one in self.facts and one != name and one not in found:
                    found.append(one)
                elif one not in (".", "..") and _CANDIDATE.search(text) and (self.root / one).is_dir():
                    found += [path for path in self.facts if path.startswith(f"{one}/") and path not in found]
        return found

    def saved(self, names: list[str]) -> list[str]:
        """The saved policies that files name and unpickle."""
        loading = [name for name in names if self.facts[name].loads is not None]
        paths = {os.path.normpath(Path(name).parent / text) for name in loading for text in self.facts[name].strings}
        return sorted(one for one in paths if Path(one).suffix in _SAVED and (self.root / one).is_file())


def find(root: Path, wish: Wish) -> Target:
    """The evaluator that the person named, or the most telling one of the folder."""
    if wish.shape is not None and wish.shape not in SHAPES:
        raise UserError("--shape", f"{wish.shape!r} is not a shape", hint=did_you_mean(wish.shape, SHAPES))
    code = Code(root)
    if wish.evaluator is not None:
        return _named(code, wish)
    ranked = sorted(((_telling(code, name), name) for name in code.facts if _may_run(name)), reverse=True)
    scripts = [name for worth, name in ranked if worth >= 5]
    found = [one for one in (_script(code, name, wish) for name in scripts) if one is not None]
    found += [one for one in (_function(code, name, wish) for name in sorted(code.facts)) if one is not None]
    fitting = [one for one in found if wish.shape is None or one.shape == wish.shape]
    if not fitting:
        raise _nothing(root, code, wish)
    return _with_others(fitting)


def _with_others(found: list[Target]) -> Target:
    from dataclasses import replace

    first = found[0]
    known = {*first.evaluators, *first.candidates}
    return replace(first, also=tuple(one.evaluators[0] for one in found[1:] if one.evaluators[0] not in known)[:5])


def _nothing(root: Path, code: Code, wish: Wish) -> UserError:
    if not code.facts:
        return UserError(str(root), "holds no Python file, so there is no evaluator to attack", hint=HINT)
    shape = f" of the shape `{wish.shape}`" if wish.shape else ""
    what = f"no evaluator{shape} was found among {len(code.facts)} Python files: none prints a score or takes a policy"
    return UserError(str(root), what, hint=HINT)


def _may_run(name: str) -> bool:
    path = Path(name)
    return not _TEST.match(path.name) and not {"tests", "test"} & set(path.parts) and path.name != "__init__.py"


def _metric_of(facts: Facts) -> str | None:
    """The most telling name that a file prints with a value."""
    return next((name for name in facts.prints if _METRIC.search(name)), None)


def _telling(code: Code, name: str) -> int:
    """How much a file looks like the script that prints the score; 5 is enough."""
    facts, below = code.facts[name], code.below(name)
    if not facts.runs or (_metric_of(facts) is None):
        return 0
    worth = 3
    worth += 3 * bool(_EVALUATOR.search(Path(name).stem))
    worth += 2 * bool(_metric_of(facts))
    worth += 2 * any(code.facts[one].steps for one in below)
    worth += 2 * any(_EVALUATOR.search(Path(one).stem) for one in below[1:])
    worth += 3 * (facts.sb3 is not None)
    worth += 2 * (facts.starts is not None and bool(code.named(name)))
    worth += 2 * bool(facts.evaluates())
    worth -= 2 * (len(Path(name).parts) > 3)
    return worth


def _measures(code: Code, name: str) -> bool:
    """Whether a file is on the evaluator's side."""
    stem, folder = Path(name).stem, Path(name).parent.name
    if stem == "__init__":
        return False
    if _CANDIDATE.search(folder) and not _EVALUATOR.search(stem):
        return False
    return bool(_EVALUATOR.search(stem)) or (bool(code.facts[name].evaluates()) and not _CANDIDATE.search(stem))


def _script(code: Code, name: str, wish: Wish) -> Target | None:
    """A target around the script that prints the score."""
    sides = _sides(code, name, wish)
    if sides is None:
        return None
    evaluators, candidates = sides
    facts = code.facts[name]
    together = bool(set(candidates) & set(code.below(name))) and len(code.below(name)) > 1
    shape: Shape = "sb3" if _uses_sb3(code, name) else "in-process" if together else "script"
    metric = wish.metric or _metric_of(facts) or None
    return Target(
        root=code.root,
        shape=shape,
        command=("python", name),
        evaluators=evaluators,
        candidates=candidates,
        metric=wish.metric,
        lower=_lower(wish, metric),
    )


def _uses_sb3(code: Code, name: str) -> bool:
    modules = [module for one in code.below(name) for module in code.facts[one].imports]
    return any(module.startswith("stable_baselines3") and "evaluate_policy" in module for module in modules)


def _sides(code: Code, name: str, wish: Wish) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Who measures and who is measured, among the files that a script pulls in or starts."""
    below = code.below(name)
    if wish.candidate is not None:
        given = _inside(code.root, wish.candidate)
        rest = [one for one in below if one != given and Path(one).name != "__init__.py"]
        return tuple(sorted(rest, key=lambda one: not _measures(code, one))) or (name,), (given,)
    measuring = [one for one in below if _measures(code, one)]
    itself = code.facts[name].steps or code.facts[name].sb3 is not None
    if (measuring or (itself and len(below) > 1)) and name not in measuring and not _CANDIDATE.search(Path(name).stem):
        measuring.append(name)
    edited = [one for one in below if one not in measuring and _is_edited(code, one, measuring)]
    for one in edited:  # grows while it is read: what a candidate's file imports is the candidate's, too
        edited += [more for more in code.imports[one] if more not in (*edited, *measuring)]
    if not edited:
        edited = [one for one in code.named(name) if one not in measuring] or code.saved(below)
    if not edited and name not in measuring:
        edited = [name]
    if not edited:
        edited = [one for one in below[1:] if one not in measuring] or [name]
    evaluators = (
        [one for one in measuring if one not in edited] or [one for one in below if one not in edited] or [name]
    )
    if name in below and name not in (*evaluators, *edited):
        evaluators.append(name)
    return tuple(evaluators), _first_is_whole(edited)


def _is_edited(code: Code, name: str, measuring: list[str]) -> bool:
    """Whether a file is the candidate's: the evaluator imports it, or it is named so and imports the evaluator."""
    by_evaluator = any(name in code.imports[one] for one in measuring)
    imports_it = any(one in measuring for one in code.imports[name])
    named = bool(_CANDIDATE.search(name))
    if imports_it and by_evaluator:
        return named
    return by_evaluator or (imports_it and named and not any(_is_fed(code, one, measuring) for one in measuring))


def _is_fed(code: Code, evaluator: str, measuring: list[str]) -> bool:
    """Whether an evaluator imports a candidate by itself, so that a script around it is not one."""
    return any(one not in measuring and _CANDIDATE.search(one) for one in code.imports[evaluator])


def _first_is_whole(edited: list[str]) -> tuple[str, ...]:
    """Put the file first into which attacks go: not a package's front door, and named like a candidate."""
    return tuple(
        sorted(edited, key=lambda one: (Path(one).name == "__init__.py", not _CANDIDATE.search(one), edited.index(one)))
    )


def _function(code: Code, name: str, wish: Wish) -> Target | None:
    """A target around a function that takes a policy, called by a driver of ours."""
    functions = [one for one in code.facts[name].evaluates() if code.facts[name].required[one] <= 1]
    if not functions or not _may_run(name) or any(char in name for char in "- "):
        return None
    policy = _policy(code, name, wish)
    if policy is None:
        return None
    path, expression = policy
    module = Path(name).with_suffix("").as_posix().replace("/", ".")
    other = Path(path).with_suffix("").as_posix().replace("/", ".")
    driver = f"""import importlib, numbers, os, sys
sys.path[:0] = [os.getcwd(), {str(Path(name).parent)!r}, {str(Path(path).parent)!r}, "src"]
evaluator = importlib.import_module({module.removeprefix("src.")!r})
candidate = importlib.import_module({other.removeprefix("src.")!r})
found = evaluator.{functions[0]}(candidate.{expression})
while isinstance(found, (tuple, list)):
    found = found[0]
if isinstance(found, dict):
    for name, value in found.items():
        print(f"{{name}}: {{value}}")
else:
    print(f"{{'{functions[0]}'}}: {{found}}")
"""
    return Target(
        root=code.root,
        shape="function",
        command=("python", DRIVER),
        evaluators=(name,),
        candidates=(path,),
        metric=wish.metric,
        lower=_lower(wish, wish.metric),
        driver=driver,
    )


def _policy(code: Code, evaluator: str, wish: Wish) -> tuple[str, str] | None:
    """Where a policy is, and the expression that gives it: a function of that name, or a class that needs nothing."""
    given = _inside(code.root, wish.candidate) if wish.candidate else None
    names = [given] if given in code.facts else [one for one in code.facts if one != evaluator and _may_run(one)]
    names.sort(key=lambda one: not _CANDIDATE.search(one))
    for name in (*names, *([evaluator] if given is None else [])):
        facts = code.facts[name]
        for made in facts.functions:
            if re.match(r"(make|build|load|get|create)_(policy|agent|model)", made) and facts.required[made] == 0:
                return name, f"{made}()"
        for made in facts.functions:
            if re.fullmatch(r"policy|act|agent|predict|get_action|choose_action|controller", made):
                return name, made
        for made in facts.classes:
            if _CANDIDATE.search(made) and facts.required[made] <= 0:
                return name, f"{made}()"
    return None


def _named(code: Code, wish: Wish) -> Target:
    """The target that the person's own command runs."""
    try:
        command = tuple(shlex.split(wish.evaluator or ""))
    except ValueError as error:
        raise UserError("--evaluator", f"cannot be read as a command: {error}") from None
    if not command:
        raise UserError("--evaluator", "is empty", hint="give a command, such as `python evaluate.py`")
    script = _script_of(code, command)
    sides = _sides(code, script, wish) if script is not None else None
    if sides is None and wish.candidate is None:
        raise UserError("--evaluator", "names no Python file of this folder, so the candidate is unknown", hint=HINT)
    given = (_inside(code.root, wish.candidate),) if wish.candidate else ()
    evaluators, candidates = sides or ((), given)
    shape: Shape = "in-process" if script is not None and len(code.below(script)) > 1 else "script"
    return Target(
        root=code.root,
        shape=_shape(wish.shape) or shape,
        command=command,
        evaluators=evaluators,
        candidates=candidates,
        metric=wish.metric,
        lower=_lower(wish, wish.metric),
    )


def _shape(word: str | None) -> Shape | None:
    return next((shape for shape in SHAPES if shape == word), None)


def _script_of(code: Code, command: tuple[str, ...]) -> str | None:
    for at, word in enumerate(command):
        name = os.path.normpath(word)
        if name in code.facts:
            return name
        if word == "-m" and at + 1 < len(command):
            inside = command[at + 1].replace(".", "/")
            return next((one for one in (f"{inside}.py", f"{inside}/__main__.py") if one in code.facts), None)
    return None


def _inside(root: Path, name: str) -> str:
    """A path that the person gave, relative to the folder."""
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise UserError("--candidate", f"{name!r} is not a file of {root}")
    return os.path.relpath(path, root)


def _lower(wish: Wish, metric: str | None) -> bool:
    from overnight.attack.foreign.metric import is_lower_better

    return wish.lower if wish.lower is not None else is_lower_better(metric or "")
