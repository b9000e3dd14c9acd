"""From `contract.yaml` to the eight clauses, as far as they are known and sound."""

from collections.abc import Mapping
from dataclasses import dataclass

from overnight.errors import UserError, did_you_mean
from overnight.records.codec import check_schema, decode, digest
from overnight.records.contract import CALLED, CLAUSE_TYPES, Clause, Clauses, Contract
from overnight.study import yaml

UNKNOWN = "unknown"
"""What stands in the file where nobody has stated a value and no file proves one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a contract file says: each clause is sound, unknown in places, or wrong."""

    clauses: Mapping[Clause, Clauses]
    unknown: Mapping[Clause, tuple[str, ...]]
    """The keys of a clause that still say `unknown`."""
    wrong: Mapping[Clause, UserError]

    def contract(self) -> Contract | None:
        """The whole contract, once every clause is sound."""
        if len(self.clauses) < len(Clause):
            return None
        return Contract(**{str(name): clause for name, clause in self.clauses.items()})  # type: ignore[arg-type]

    def problem(self, clause: Clause) -> str | None:
        """One sentence on what keeps a clause from being approved, or None."""
        if clause in self.unknown:
            keys = [f"`{clause}.{key}`" if key else f"`{clause}`" for key in self.unknown[clause]]
            are = "is" if len(keys) == 1 else "are"
            return f"{', '.join(keys)} {are} still unknown, so the {CALLED[clause]} cannot be approved."
        if clause in self.wrong:
            return f"{self.wrong[clause].what[0].upper()}{self.wrong[clause].what[1:]}."
        return None


def read(text: bytes | str, *, where: str) -> Reading:
    """Read a contract file. A clause that is wrong or unknown does not hide the others."""
    data = yaml.load(text, where=where)
    if not isinstance(data, dict):
        raise UserError(where, "is not a mapping of clauses", hint="`overnight init` drafts one")
    sections = dict(data)
    check_schema(sections.pop("schema", None), Contract.SCHEMA, where=where)
    names = {str(clause) for clause in Clause}
    for key in sections:
        if key not in names:
            raise UserError(where, f"`{key[:80]}` is not a clause", hint=did_you_mean(key[:80], names))
    clauses: dict[Clause, Clauses] = {}
    unknown: dict[Clause, tuple[str, ...]] = {}
    wrong: dict[Clause, UserError] = {}
    for clause in Clause:
        keys = tuple(_unknowns(sections.get(clause, UNKNOWN), ""))
        if keys:
            unknown[clause] = keys
            continue
        try:
            kind: type[Clauses] = CLAUSE_TYPES[clause]
            clauses[clause] = decode(kind, sections[clause], where=where)
        except UserError as error:
            wrong[clause] = _under(clause, error, where)
    return Reading(clauses, unknown, wrong)


def digests(reading: Reading) -> dict[Clause, str]:
    """The digest of every sound clause: what an approval is bound to."""
    return {name: digest(clause) for name, clause in reading.clauses.items()}


def _unknowns(value: object, path: str) -> list[str]:
    if value == UNKNOWN:
        return [path]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _unknowns(item, f"{path}.{key}" if path else key)]
    if isinstance(value, list):
        return [found for item in value for found in _unknowns(item, path)]
    return []


def _under(clause: Clause, error: UserError, where: str) -> UserError:
    what = error.what
    named = what.replace("`", f"`{clause}.", 1) if what.startswith("`") else f"`{clause}` {what}"
    return UserError(where, named, hint=error.hint)
