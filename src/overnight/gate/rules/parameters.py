"""Refuse a parameter that the contract does not open, the trainer does not know, or that is out of its range."""

from collections.abc import Mapping

from overnight.errors import UserError
from overnight.gate.case import Admission
from overnight.records import strict_json
from overnight.records.refusal import Reason


def refuse(case: Admission) -> tuple[Reason, ...]:
    """Every changed JSON file is compared key by key where the contract names keys."""
    if not case.contract.scope.keys:
        return ()
    found = [
        f"The candidate removes {change.path}, which holds the parameters."
        for change in case.changes
        if change.new_mode == "000000" and change.path.endswith(".json")
    ]
    for path, data in case.after.items():
        if path.endswith(".json"):
            found += _file(case, path, data)
    return tuple(Reason(rule="parameters", says=says[:2000]) for says in found[:20])


def changed_keys(case: Admission) -> dict[str, object]:
    """The parameters that differ, over all changed JSON files, with their new values."""
    found: dict[str, object] = {}
    for path, data in case.after.items():
        if path.endswith(".json"):
            try:
                new, old = _mapping(data, path), _mapping(case.before.get(path, b"{}"), path)
            except UserError:
                continue
            found |= {key: new.get(key) for key in new.keys() | old.keys() if _differs(new, old, key)}
    return found


def _file(case: Admission, path: str, data: bytes) -> list[str]:
    try:
        new, old = _mapping(data, path), _mapping(case.before.get(path, b"{}"), path)
    except UserError as error:
        return [f"{path} cannot be read: {error.what}."]
    found = []
    for key in sorted(new.keys() | old.keys()):
        if not _differs(new, old, key):
            continue
        if key not in case.contract.scope.keys:
            found.append(f"{path} changes `{key[:80]}`, which is not among the keys that the contract opens.")
        elif key not in new:
            found.append(f"{path} drops `{key[:80]}`, and a parameter may change but not disappear.")
        elif (wrong := _why_not(case, key, new[key])) is not None:
            found.append(f"{path}: `{key[:80]}` {wrong}.")
    return found


def _why_not(case: Admission, key: str, value: object) -> str | None:
    parameter = case.space.find(key) if case.space is not None else None
    return parameter.why_not(value) if parameter is not None else None


def _mapping(data: bytes, path: str) -> Mapping[str, object]:
    found = strict_json.parse(data, where=path)
    if not isinstance(found, dict):
        raise UserError(path, "is not a mapping of names to values")
    return found


def _differs(new: Mapping[str, object], old: Mapping[str, object], key: str) -> bool:
    same = key in new and key in old and new[key] == old[key] and type(new[key]) is type(old[key])
    return not same
