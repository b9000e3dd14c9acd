"""What one Python file says about itself: what it imports, prints, calls and defines. Read with `ast`, never run."""

import ast
import re
from dataclasses import dataclass, field

_EVALUATES = re.compile(r"^_?(?:eval|evaluate|score|benchmark|judge|assess|measure|grade|rollout|test)", re.IGNORECASE)
_POLICY = re.compile(r"policy|agent|model|actor|act|controller|player|candidate|predict", re.IGNORECASE)
_METRIC = re.compile(r"([A-Za-z][\w./-]*)[\"']?\s*[:=]\s*$")
_LOADS = {"load", "loads", "Unpickler", "read_pickle"}
_LOADERS = {"pickle", "cloudpickle", "dill", "joblib", "torch"}
_STARTS = {"run", "Popen", "check_output", "check_call", "call", "start", "start_process", "system", "run_process"}


@dataclass(slots=True)
class Facts:
    """Facts of one file. Lines count from 1."""

    imports: dict[str, int] = field(default_factory=dict)
    """Every module that is imported, in dotted form as written, with its first line."""
    prints: dict[str, int] = field(default_factory=dict)
    """Names that are printed with a value, with the line; an empty name where only a value is printed."""
    functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Functions of the top level with their parameters."""
    required: dict[str, int] = field(default_factory=dict)
    """How many arguments each function or class of the top level needs."""
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Classes of the top level with their methods."""
    strings: set[str] = field(default_factory=set)
    ids: set[int] = field(default_factory=set)
    """Whole numbers that stand in the file, such as seeds."""
    steps: bool = False
    """Whether it steps an environment."""
    runs: bool = False
    """Whether something happens when it is run as a script."""
    sb3: int | None = None
    loads: int | None = None
    """The line that loads a pickle."""
    starts: int | None = None
    """The line that starts a process."""
    seeds: int | None = None
    """The line that resets with a seed."""
    times: bool = False
    """Whether it reads a clock."""

    def evaluates(self) -> tuple[str, ...]:
        """The functions of the top level that take a policy and are named like a measurement."""
        return tuple(
            name
            for name, parameters in self.functions.items()
            if _EVALUATES.match(name) and any(_POLICY.search(one) for one in parameters)
        )


def facts_of(source: str) -> Facts | None:
    """The facts of a file, or None where it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = Facts()
    _top_level(tree, found)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(node, found)
        elif isinstance(node, ast.Call):
            _call(node, found)
        elif isinstance(node, ast.Constant):
            _constant(node, found)
    return found


def _top_level(tree: ast.Module, found: Facts) -> None:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            found.functions[node.name] = tuple(names)
            found.required[node.name] = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            found.classes[node.name] = tuple(one.name for one in methods)
            needs = [len(one.args.args) - 1 - len(one.args.defaults) for one in methods if one.name == "__init__"]
            found.required[node.name] = max(needs, default=0)
        elif isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            found.runs = True


def _import(node: ast.Import | ast.ImportFrom, found: Facts) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            found.imports.setdefault(alias.name, node.lineno)
        return
    module = "." * node.level + (node.module or "")
    found.imports.setdefault(module, node.lineno)
    for alias in node.names:
        found.imports.setdefault(f"{module}.{alias.name}" if node.module else f"{module}{alias.name}", node.lineno)


def _call(node: ast.Call, found: Facts) -> None:
    function = node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if name == "print" or (name in ("write", "info") and owner in ("", "logging", "logger", "log")):
        _print(node, found)
    elif name == "step":
        found.steps = True
    elif name == "evaluate_policy":
        found.sb3 = found.sb3 or node.lineno
    elif name == "reset" and any(one.arg == "seed" for one in node.keywords):
        found.seeds = found.seeds or node.lineno
    elif name in _LOADS and (owner in _LOADERS or _allows_pickle(node)):
        found.loads = found.loads or node.lineno
    elif name in _STARTS and (owner in ("subprocess", "os", "multiprocessing", "sandbox") or name == "Popen"):
        found.starts = found.starts or node.lineno
    elif owner == "time" and name in ("time", "monotonic", "perf_counter", "process_time"):
        found.times = True


def _allows_pickle(node: ast.Call) -> bool:
    return any(one.arg == "allow_pickle" and getattr(one.value, "value", False) is True for one in node.keywords)


def _print(node: ast.Call, found: Facts) -> None:
    """Names in front of a value: in an f-string, in a list of arguments, as keys of a dictionary made on the spot."""
    for one in node.args:
        if isinstance(one, ast.JoinedStr):
            _joined(one, found)
        elif isinstance(one, ast.BinOp) and isinstance(one.left, ast.Constant):
            found.prints.setdefault(_name(str(one.left.value).split("%")[0]), node.lineno)
        elif isinstance(one, ast.Constant):
            if hit := re.match(r"([A-Za-z][\w./-]*)\s*[:=]\s*[-+.\d]", str(one.value)):
                found.prints.setdefault(hit[1], node.lineno)
        else:
            found.prints.setdefault("", node.lineno)
        for below in ast.walk(one):
            if isinstance(below, ast.Dict):
                keys = [key.value for key in below.keys if isinstance(key, ast.Constant)]
                found.prints.update({str(key): node.lineno for key in keys if str(key) not in found.prints})
    first = node.args[0] if node.args else None
    if len(node.args) > 1 and isinstance(first, ast.Constant) and isinstance(first.value, str):
        found.prints.setdefault(first.value.strip().rstrip(":= "), node.lineno)


def _joined(node: ast.JoinedStr, found: Facts) -> None:
    if isinstance(node.values[0], ast.FormattedValue) and len(node.values) > 1:
        found.prints.setdefault("", node.lineno)  # the name is a value, too
    for before, value in zip(node.values, node.values[1:], strict=False):
        if isinstance(value, ast.FormattedValue) and isinstance(before, ast.Constant):
            found.prints.setdefault(_name(str(before.value)), node.lineno)


def _name(text: str) -> str:
    hit = _METRIC.search(text)
    return hit[1] if hit else ""


def _constant(node: ast.Constant, found: Facts) -> None:
    if isinstance(node.value, str) and len(node.value) < 200:
        found.strings.add(node.value)
    elif isinstance(node.value, int) and not isinstance(node.value, bool) and 0 <= node.value < 1 << 31:
        found.ids.add(node.value)
