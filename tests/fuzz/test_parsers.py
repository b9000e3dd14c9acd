"""Every parser of untrusted input gives an answer or an error of ours, quickly and in bounded memory."""

import copy
import json
import posixpath
import re
import time
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from long_ledger import lawful
from overnight.cli.propose import _proposal
from overnight.contract.read import digests, read
from overnight.contract.screen import screen
from overnight.errors import LedgerDamaged, OvernightError, Refused, UserError
from overnight.records.codec import Versioned, dumps, loads
from overnight.records.contract import Clause
from overnight.records.lifecycle import Actor
from overnight.records.paths import why_unsafe
from overnight.records.proposal import Proposal
from overnight.study import anchor, yaml
from overnight.study.anchor import GENESIS, Anchor
from overnight.study.durable import write_file
from overnight.study.fold import Fold, decode_entry
from overnight.study.layout import Root, check_id, check_slug
from overnight.study.ledger import START, RawEntry, check_anchor, scan
from overnight.study.state import Data
from overnight.study.stored import STORED
from overnight.testing.simulated import SimulatedMachine
from records.test_records import SAMPLES, draft

T = TypeVar("T")
Told = tuple[Actor, str, Data]
MANY = settings(max_examples=300, deadline=None)


def answer(parse: Callable[[], T]) -> T | None:
    """What a parser answers, or None where it refuses; anything else it raises fails, and so does a second of work."""
    began = time.process_time()
    found = None
    try:
        found = parse()
    except OvernightError as error:
        assert isinstance(error, (UserError, Refused))
        assert error.what
    assert time.process_time() - began < 1.0
    return found


# What untrusted input looks like

TEXT = st.text(max_size=60)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(["unknown", "c-0001", "r-0001", "a" * 40, "d" * 64, "x" * 3000, 0, -1, 1e300, 10**290]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
YAML_PIECES = st.sampled_from([
    "a", "b: ", "- ", "\n", "\n  ", "[", "]", "{", "}", ", ", "? ", ": ", "| ", "> ", "-", "=", "\t", "# ",
    '"', "'", "\\", "\\x", "@", "`", "%", "\x00", "\u2028", "é", "\ufeff",
    "&x ", "*x ", "!t ", "!!str ", "<<: ", "---\n", "...\n", "%YAML 1.1\n",
    "1", "1.5", "1e999", "9" * 400, "null", "~", "unknown", "schema: overnight/contract/1\n", "task:\n  ",
])  # fmt: skip
JSON_PIECES = st.sampled_from([
    "{", "}", "[", "]", ",", ":", '"', "\\", "\n", " ", "-", "//", "'a'", "\x00", "\ufeff", "é",
    '"a"', '"schema"', '"overnight/proposal/1"', "null", "true", "NaN", "-Infinity", "\\ud800", "\\u0000",
    "1", "1e999", "0.1", "9" * 400,
])  # fmt: skip


def has_no_stray_underscore(text: bytes | str) -> bool:
    """Leaves out numbers such as `1_` and `1._5`, which have cases of their own."""
    return re.search(r"[0-9.]_", text.decode("latin-1") if isinstance(text, bytes) else text) is None


def joined(pieces: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(pieces, max_size=40).map("".join)


@st.composite
def mutated(draw: st.DrawFn, whole: str, pieces: st.SearchStrategy[str]) -> str:
    """A sound text with a few slices cut out, doubled, moved, or replaced by a piece."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(whole)))
        end = min(len(whole), start + draw(st.integers(0, 80)))
        how = draw(st.sampled_from(["cut", "double", "move", "insert"]))
        middle = {"cut": "", "double": whole[start:end] * 2, "move": whole[start:end], "insert": draw(pieces)}[how]
        rest = whole[:start] + whole[end:]
        at = draw(st.integers(0, len(rest))) if how == "move" else start
        whole = rest[:at] + middle + rest[at:]
    return whole


def places(data: object, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield (*at, key)
        yield from places(value, (*at, key))


@st.composite
def changed(draw: st.DrawFn, data: Any) -> Any:
    """Sound plain data with one value dropped or replaced, or one key too many."""
    data = copy.deepcopy(data)
    *way, last = draw(st.sampled_from(list(places(data))))
    holder = data
    for key in way:
        holder = holder[key]
    match draw(st.sampled_from(["drop", "replace", "replace", "add"])):
        case "drop":
            del holder[last]
        case "add" if isinstance(holder, dict):
            holder[draw(TEXT)] = draw(PLAIN)
        case _:
            holder[last] = draw(PLAIN)
    return data


# The contract, as a person or an agent edits it

DRAFT = draft()
SECTIONS = yaml.load(DRAFT, where="draft")


def read_contract(text: bytes | str) -> None:
    """Read a contract, and do with it what every verb does."""
    reading = read(text, where="contract.yaml")
    for clause in Clause:
        assert reading.problem(clause) is None or clause not in reading.clauses
    assert digests(reading).keys() == reading.clauses.keys()
    contract = reading.contract()
    assert contract is None or screen(contract)


@MANY
@given((st.binary(max_size=300) | TEXT | joined(YAML_PIECES)).filter(has_no_stray_underscore))
@example(DRAFT)
def test_any_text_is_read_as_a_contract_or_refused(text: bytes | str) -> None:
    answer(lambda: read_contract(text))


@MANY
@given(mutated(DRAFT, YAML_PIECES).filter(has_no_stray_underscore))
def test_an_edited_contract_is_read_or_refused(text: str) -> None:
    answer(lambda: read_contract(text))


@MANY
@given(changed(SECTIONS))
def test_a_contract_with_another_value_is_read_or_refused(data: object) -> None:
    answer(lambda: read_contract(json.dumps(data)))


# Proposals and every other stored record


@MANY
@given(st.binary(max_size=300) | TEXT | joined(JSON_PIECES))
def test_any_text_is_read_as_a_proposal_or_refused(text: bytes | str) -> None:
    answer(lambda: loads(Proposal, text, where="proposal.json"))


@MANY
@given(mutated(json.dumps({"schema": Proposal.SCHEMA, **SAMPLES[Proposal]}), JSON_PIECES))
def test_an_edited_proposal_is_read_or_refused(text: str) -> None:
    answer(lambda: loads(Proposal, text, where="proposal.json"))


@MANY
@given(st.data())
def test_a_stored_record_with_one_change_is_read_or_refused(data: st.DataObject) -> None:
    kind: type[Versioned] = data.draw(st.sampled_from(list(STORED.values())))
    text = json.dumps(data.draw(changed({"schema": kind.SCHEMA, **SAMPLES[kind]})))
    record: Versioned | None = answer(lambda: loads(kind, text, where="record.json"))
    assert record is None or loads(kind, dumps(record), where="record.json") == record


@MANY
@given(st.lists(st.tuples(TEXT, TEXT | joined(YAML_PIECES)).map("=".join).filter(has_no_stray_underscore), min_size=1))
def test_any_value_that_is_set_on_the_command_line_is_taken_or_refused(words: list[str]) -> None:
    answer(lambda: _proposal(words, None, "Why not?", "It rises.", "hyperparameter", bundle=len(words) > 1))


# The ledger and its anchor

LAWFUL = lawful(16)


def line(head: str, body: str) -> tuple[str, bytes]:
    """The next head of a chain, and the line that leads to it, whatever its body says."""
    following = sha256(f"{head}\n{body}".encode()).hexdigest()
    return following, f'{{"h":"{following}","e":{body}}}\n'.encode()


def chained(told: list[Told]) -> bytes:
    """A ledger whose hashes are all in order, whatever its entries say."""
    head, lines = GENESIS, []
    for seq, (actor, kind, data) in enumerate(told):
        body = json.dumps({"seq": seq, "epoch": 1, "at": "now", "actor": str(actor), "kind": kind, "data": data})
        head, written = line(head, body)
        lines.append(written)
    return b"".join(lines)


WHOLE = chained(LAWFUL)
HASHES = scan(WHOLE).hashes


def fold_and_decode(data: bytes) -> None:
    """Read a ledger as `overnight ledger verify` does: follow, fold and decode."""
    fold, entries = Fold(), list[RawEntry]()

    def take(entry: RawEntry, offset: int) -> None:
        entries.append(entry)
        fold(entry, offset)

    found = scan(data, START, take)
    fold.state(found, where="ledger")
    for entry in entries:
        decode_entry(entry, where="ledger")


@MANY
@given(st.binary(max_size=400), st.integers(0, len(LAWFUL)))
def test_whatever_follows_a_sound_ledger_the_sound_part_is_found(tail: bytes, keep: int) -> None:
    lines = WHOLE.splitlines(keepends=True)
    start = b"".join(lines[:keep])
    found = scan(start + tail)
    assert (found.hashes, found.good_bytes) == (HASHES[:keep], len(start))
    assert bool(found.broken) is bool(tail)


@MANY
@given(st.data())
def test_a_ledger_with_any_bytes_changed_is_sound_only_before_the_change(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(WHOLE)))
    end = data.draw(st.integers(start, min(len(WHOLE), start + 200)))
    edited = WHOLE[:start] + data.draw(st.binary(max_size=100)) + WHOLE[end:]
    found = scan(edited)
    assert found.hashes == HASHES[: len(found.hashes)]
    assert edited[: found.good_bytes] == WHOLE[: found.good_bytes]


@MANY
@given(st.data())
def test_a_ledger_that_was_written_by_other_means_is_lawful_or_damaged(data: st.DataObject) -> None:
    told = list(LAWFUL)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(told) - 1))
        actor, kind, payload = told[at]
        match data.draw(st.sampled_from(["payload", "payload", "payload", "actor", "kind", "drop", "double", "swap"])):
            case "payload" if payload:
                told[at] = (actor, kind, data.draw(changed(payload)))
            case "actor":
                told[at] = (data.draw(st.sampled_from(Actor)), kind, payload)
            case "kind":
                told[at] = (actor, data.draw(st.sampled_from([one for _, one, _ in LAWFUL]) | TEXT), payload)
            case "drop" if len(told) > 1:
                del told[at]
            case "double":
                told.insert(at, told[at])
            case _:
                told[0], told[at] = told[at], told[0]
    answer(lambda: fold_and_decode(chained(told)))


def anchored(data: bytes) -> Anchor | None:
    """Read an anchor from a disk that holds exactly these bytes."""
    machine = SimulatedMachine()
    machine.make_folder("/s")
    write_file(machine, Path("/s/head.json"), data)
    return anchor.read(machine, "/s/head.json")


OLDER, NEWER = Anchor(16, 15, HASHES[14], 1), Anchor(17, 16, HASHES[15], 1)
SLOTS = anchor._slot(OLDER) + anchor._slot(NEWER)


@MANY
@given(st.binary(max_size=1200))
def test_any_bytes_in_place_of_an_anchor_are_refused(data: bytes) -> None:
    with pytest.raises(LedgerDamaged, match="holds no readable anchor"):
        anchored(data)


@MANY
@given(st.integers(0, len(SLOTS)), st.integers(0, 600), st.binary(max_size=600))
def test_a_damaged_anchor_is_one_of_those_written_or_none(start: int, length: int, junk: bytes) -> None:
    found = answer(lambda: anchored(SLOTS[:start] + junk + SLOTS[start + length :]))
    assert found in (OLDER, NEWER, None)


COUNT = st.integers(min_value=0)
HEAD = st.text("0123456789abcdefx", max_size=64) | st.sampled_from([*HASHES, GENESIS])


@MANY
@given(st.builds(Anchor, COUNT, COUNT | st.integers(0, 17), HEAD, COUNT), st.integers(0, 16))
def test_a_forged_anchor_vouches_for_the_ledger_or_is_refused(mark: Anchor, keep: int) -> None:
    start = b"".join(WHOLE.splitlines(keepends=True)[:keep])
    answer(lambda: check_anchor("ledger", scan(start), anchored(anchor._slot(mark) * 2)))


# Names that become paths

ODD_NAMES = (
    st.text(max_size=60)
    | st.from_regex(r"\A[a-z0-9-]{0,45}\n?\Z")
    | st.from_regex(r"\A[cr]-[0-9]{0,12}\n?\Z")
    | st.sampled_from(
        ["", ".", "..", "../x", "a/b", "-rf", "a\x00", "a\n", "c-٠٠٠١", "C-0001", "c-0001/..", "x" * 4096]
    )
)


@MANY
@given(ODD_NAMES, ODD_NAMES)
def test_no_name_of_a_task_or_study_leaves_the_folder(task: str, study: str) -> None:
    root = Root(Path("/project/.overnight"))
    at = answer(lambda: root.task(task).study(study))
    if at is not None:
        assert posixpath.normpath(str(at.folder)) == f"/project/.overnight/tasks/{task}/studies/{study}"
        assert set(task + study) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert not task.startswith("-")


@MANY
@given(ODD_NAMES, st.sampled_from("cr"))
def test_no_id_leaves_the_folder(text: str, letter: str) -> None:
    found = answer(lambda: check_id(text, letter=letter, called="id"))
    if found is not None:
        lead, _, digits = text.partition("-")
        assert (found, lead) == (text, letter)
        assert 4 <= len(digits) <= 9
        assert set(digits) <= set("0123456789")


@MANY
@given(ODD_NAMES)
def test_a_slug_is_returned_as_it_is_or_refused(text: str) -> None:
    assert answer(lambda: check_slug(text, called="task")) in (text, None)


PATH_PIECES = st.sampled_from([
    "a", "B", "é", "日", "😀", "/", "/", "/", ".", "..", "/../", "./", " ", "\\", ":", "~", "-", "x" * 300, "é" * 200,
    "\n", "\x00", "\x1b", "\u200c", "\ufeff", "\u202e", "\ud800", "\udc80", "\ue000", "e\u0301", "\u212b",
    ".git", ".GIT", ".gIt", "git~1", "GIT~9", ".gitignore",
    "con", "CON", "aux", "nul.txt", "com1", "COM9", "lpt0", "prn.",
])  # fmt: skip
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}
FOR_GIT = {".git", *(f"git~{digit}" for digit in range(10))}


def is_unsafe_by_the_model(path: str) -> bool:
    """The same question, asked of the standard library in other words."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return True
    parts = path.split("/")
    return (
        posixpath.isabs(path)
        or posixpath.normpath(path) != path
        or ".." in parts
        or path == "."
        or size > 1024
        or not unicodedata.is_normalized("NFC", path)
        or any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"} or char in {"\\", ":"} for char in path)
        or any(part[0].isspace() or part[-1].isspace() or part[-1] == "." for part in parts)
        or any(part.casefold() in FOR_GIT or part.casefold().split(".")[0] in DEVICES for part in parts)
    )


@settings(max_examples=1500, deadline=None)
@given(st.text(st.characters(), max_size=20) | st.lists(PATH_PIECES, max_size=8).map("".join))
def test_a_path_is_unsafe_exactly_where_the_model_says_so(path: str) -> None:
    assert (why_unsafe(path) is not None) is is_unsafe_by_the_model(path)


@MANY
@given(st.lists(PATH_PIECES, max_size=8).map("".join))
def test_a_safe_path_stays_inside_its_folder(path: str) -> None:
    if why_unsafe(path) is None:
        assert posixpath.normpath(posixpath.join("/copy", path)) == f"/copy/{path}"
        assert path.encode().decode() == path


# Bombs: small inputs that others blow up on

FULL = 256 * 1024
LEVELS = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
BOMBS = {
    "alias bomb": "l0: &l0 [x, x]\n" + "\n".join(LEVELS),
    "deep lists": "[" * (FULL - 1),
    "deep mappings": '{"a":' * (FULL // 6),
    "deep block": "".join("  " * n + "a:\n" for n in range(500)),
    "deep dashes": "- " * (FULL // 2 - 1),
    "deep keys": "? " * (FULL // 2 - 1),
    "unbalanced": "]" * (FULL // 2 - 1) + "[" * (FULL // 2 - 1),
    "5,000 digits": "9" * 5000,
    "5,000 digits in a list": "[" + "9" * 5000 + "]",
    "full of digits": "9" * (FULL - 1),
    "full of decimals": "0." + "9" * (FULL - 10),
    "full of numbers": "[" + "1," * (FULL // 2 - 2) + "1]",
    "full of mappings": "[" + "{}," * (FULL // 3 - 2) + "{}]",
    "full of keys": "{" + ",".join(f'"{n}":0' for n in range(22_000)) + "}",
    "one long key": '{"' + "k" * (FULL - 10) + '":0}',
    "one long text": '"' + "t" * (FULL - 10) + '"',
    "escapes": '"' + "\\u0000" * (FULL // 6 - 2) + '"',
    "quotes": '"' * (FULL - 1),
    "backslashes": '"' + "\\" * (FULL - 10),
    "anchors": "- &a a\n" * (FULL // 7),
    "comments": "#\n" * (FULL // 2 - 1),
    "blank": " " * (FULL - 1),
    "newlines": "\n" * (FULL - 1),
    "colons": "a:" * (FULL // 2 - 1),
    "brackets and commas": "[," * (FULL // 2 - 1),
    "too much": "x" * (FULL + 1),
    "far too much": "x" * (40 * FULL),
}
PARSERS: dict[str, Callable[[str], object]] = {
    "contract": read_contract,
    "proposal": lambda text: loads(Proposal, text, where="proposal.json"),
    "proposal, as bytes": lambda text: loads(Proposal, text.encode(), where="proposal.json"),
    "set": lambda text: _proposal([f"key={text}"], None, "Why not?", "It rises.", "hyperparameter", bundle=False),
    "ledger": lambda text: fold_and_decode(text.encode() + b"\n"),
    "chained ledger": lambda text: fold_and_decode(line(GENESIS, text.replace("\n", " "))[1]),
    "anchor": lambda text: anchored(text.encode()),
    "slug": lambda text: check_slug(text, called="task"),
    "path": lambda text: why_unsafe(text),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("parser", PARSERS)
def test_a_bomb_costs_less_than_a_second_and_256_megabytes(parser: str, bomb: str) -> None:
    answer(lambda: PARSERS[parser](BOMBS[bomb]))  # timed by itself, because tracing is slow
    tracemalloc.start()
    try:
        with suppress(UserError, Refused):
            PARSERS[parser](BOMBS[bomb])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 256 * 1024 * 1024
