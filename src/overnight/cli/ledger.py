"""`overnight ledger`: verify, show and follow the ledger."""

import time
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

if TYPE_CHECKING:
    from overnight.ports import Machine
    from overnight.study.layout import StudyFolder

app = verb_app("Verify, show or follow the ledger. Example: `overnight ledger verify`")
Last = Annotated[int, typer.Option("--last", "-n", min=1, help="How many of the last entries.")]


@app.command()
def verify(
    expect_head: Annotated[
        str | None, typer.Option(help="A head that you noted earlier; it must still be part of the ledger.")
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Decode the record in every entry, too.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Check every hash, the anchor, and that every entry could lawfully follow.

    Exit 3, with a sentence that says where, when anything is not as it was written.

    Example: `overnight ledger verify --expect-head 5f2c…`
    """
    from overnight.errors import LedgerDamaged, UserError
    from overnight.study.fold import Fold, decode_entry
    from overnight.study.ledger import RawEntry, read_sound

    machine, at = active(folder)
    where, entries = str(at.ledger), Fold()

    def take(entry: RawEntry, offset: int) -> None:
        entries(entry, offset)
        if deep:
            decode_entry(entry, where=where)

    found = read_sound(machine, at.folder, take)
    state = entries.state(found, where=where)
    if expect_head is not None:
        if len(expect_head) < 8:
            raise UserError("--expect-head", "needs at least the first eight digits of a head")
        if not any(one.startswith(expect_head) for one in found.hashes):
            raise LedgerDamaged(where, f"never had the head {expect_head[:64]}: it is not the ledger you noted.")
    told = {"sound": True, "entries": state.entries, "head": state.head}
    data(told, f"{at.ledger}: {state.entries:,} entries, all sound\nhead {state.head}", as_json=as_json)


@app.command()
def show(last: Last = 1_000_000, folder: Dir = HERE, as_json: Json = False) -> None:
    """Print the entries, one a line, as far as the chain is sound.

    Example: `overnight ledger show --last 20`
    """
    from overnight.study.ledger import START, RawEntry, scan

    machine, at = active(folder)
    entries: deque[RawEntry] = deque(maxlen=last)
    scan(machine.read(str(at.ledger)) or b"", START, lambda entry, _: entries.append(entry))
    data({"entries": list(entries)}, "\n".join(map(_line, entries)), as_json=as_json)


@app.command()
def tail(
    last: Last = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing entries as they are written.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Print the last entries, and with `--follow` the ones that are written from now on.

    With `--json`, one object a line.

    Example: `overnight ledger tail --follow`
    """
    machine, at = active(folder)
    entries = _read(machine, at)
    shown = max(len(entries) - last, 0)
    while True:
        for entry in entries[shown:]:
            data(entry, _line(entry), as_json=as_json)
        shown = len(entries)
        if not follow:
            return
        time.sleep(0.5)
        entries = _read(machine, at)


def _read(machine: "Machine", at: "StudyFolder") -> list[dict[str, Any]]:
    from overnight.study.ledger import read_sound

    entries: list[dict[str, Any]] = []
    read_sound(machine, at.folder, lambda entry, _: entries.append(entry))
    return entries


def _line(entry: dict[str, Any]) -> str:
    about = entry["data"]
    names = [
        str(about[key]) for key in ("id", "clause", "candidate", "run", "task", "verdict", "outcome") if about.get(key)
    ]
    says = about.get("says") or about.get("because") or "; ".join(r["says"] for r in about.get("reasons", []))
    lead = f"{entry['seq']:>6}  {str(entry['at'])[:19]}  {entry['actor']:<8}  {entry['kind']:<9}"
    return f"{lead}  {' '.join(names)}  {says}".rstrip()
