"""The JSON Schemas say what the codec does: they are generated, checked in, and compared with it case by case.

Two differences are known and meant. Rules across fields (`__post_init__`) are not in the schemas, so the
codec is stricter there. JSON itself does not tell `1.0` from `1`; the codec does, and wants whole numbers whole.
"""

import copy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it ships no types of its own

from overnight.errors import UserError
from overnight.records.codec import Versioned, decode
from overnight.records.schema import field_sentences, json_schema
from overnight.records.strict_json import pretty
from overnight.study.state import StudyState
from overnight.study.stored import STORED
from records.test_records import SAMPLES

CHECKED_IN = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    -0.5,
    10**7,
    "",
    "x",
    "c-0001",
    "../../x",
    "x" * 30_000,
    [],
    ["x"],
    [1],
    {},
    {"x": 1},
    {"x": "x"},
]
Place = tuple[str | int, ...]


def stored_file(kind: type[Versioned]) -> dict[str, Any]:
    return {"schema": kind.SCHEMA, **copy.deepcopy(SAMPLES[kind])}


def places(data: object, at: Place = ()) -> Iterator[Place]:
    """The way to every value inside plain data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield (*at, key)
        yield from places(value, (*at, key))


def holder(data: Any, place: Place) -> Any:
    for key in place[:-1]:
        data = data[key]
    return data


def mutants(kind: type[Versioned]) -> Iterator[dict[str, Any]]:
    """A stored file with one thing changed: a value dropped, doubled or replaced, or a key too many."""
    for place in places(stored_file(kind)):
        for odd in ODD_VALUES:
            data = stored_file(kind)
            holder(data, place)[place[-1]] = odd
            yield data
        data = stored_file(kind)
        del holder(data, place)[place[-1]]
        yield data
        data = stored_file(kind)
        inside = holder(data, place)[place[-1]]
        if isinstance(inside, dict):
            inside["surprise"] = 1
        elif isinstance(inside, list):
            inside += copy.deepcopy(inside) * 1001
        yield data


def codec_refuses(kind: type[Versioned], data: dict[str, Any]) -> UserError | None:
    plain = copy.deepcopy(data)
    if plain.pop("schema", None) != kind.SCHEMA:
        return UserError("file", "`schema` is another")
    try:
        decode(kind, plain, where="file")
    except UserError as error:
        return error
    return None


def is_rule_across_fields(error: UserError) -> bool:
    """Whether the refusal was raised in a record's `__post_init__`."""
    first: BaseException = error
    while first.__context__ is not None:
        first = first.__context__
    trace = first.__traceback__
    names = []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return "__post_init__" in names


def differences(kind: type[Versioned], files: Iterator[dict[str, Any]]) -> list[str]:
    validator = Draft202012Validator(json_schema(kind))
    found = []
    for data in files:
        error, fits = codec_refuses(kind, data), validator.is_valid(data)
        if fits and error is not None and not is_rule_across_fields(error):
            found.append(f"only the codec refuses: {error}")
        if not fits and error is None:
            found.append(f"only the schema refuses: {next(validator.iter_errors(data)).message[:200]}")
    return found


@pytest.mark.parametrize("kind", STORED.values(), ids=lambda kind: kind.__name__)
def test_the_checked_in_schema_is_the_generated_one(kind: type[Versioned]) -> None:
    name = kind.SCHEMA.removeprefix("overnight/").replace("/", "-")
    assert (CHECKED_IN / f"{name}.json").read_bytes() == pretty(json_schema(kind))


def test_no_schema_is_checked_in_for_a_record_that_is_gone() -> None:
    known = {name.removeprefix("overnight/").replace("/", "-") for name in STORED}
    assert {path.stem for path in CHECKED_IN.glob("*.json")} == known


@pytest.mark.parametrize("kind", STORED.values(), ids=lambda kind: kind.__name__)
def test_a_generated_schema_is_a_sound_schema(kind: type[Versioned]) -> None:
    Draft202012Validator.check_schema(json_schema(kind))


@pytest.mark.parametrize("kind", STORED.values(), ids=lambda kind: kind.__name__)
def test_a_schema_accepts_the_sample_of_its_record(kind: type[Versioned]) -> None:
    Draft202012Validator(json_schema(kind)).validate(stored_file(kind))


@pytest.mark.parametrize("kind", STORED.values(), ids=lambda kind: kind.__name__)
def test_schema_and_codec_agree_on_every_change_of_a_sample(kind: type[Versioned]) -> None:
    assert differences(kind, mutants(kind)) == []


@pytest.mark.parametrize("kind", STORED.values(), ids=lambda kind: kind.__name__)
def test_every_field_of_a_stored_record_is_described_in_one_sentence(kind: type[Versioned]) -> None:
    body = json_schema(kind)
    for record in (body, *body.get("$defs", {}).values()):
        silent = [
            name for name, field in record["properties"].items() if name != "schema" and "description" not in field
        ]
        assert silent == [], f"{record['title']}: {silent}"


def test_the_sentence_of_a_field_is_the_text_written_under_it() -> None:
    said = field_sentences(STORED["overnight/note/1"])
    assert said == {"says": "The sentence."}


SMALL = st.recursive(
    st.sampled_from(ODD_VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.data())
def test_schema_and_codec_agree_on_several_changes_at_once(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kind for kind in STORED.values() if kind is not StudyState]))
    file = stored_file(kind)
    for place in data.draw(st.lists(st.sampled_from(list(places(file))), max_size=3)):
        with suppress(LookupError, TypeError):  # an earlier change took the place away
            holder(file, place)[place[-1]] = data.draw(SMALL)
    assert differences(kind, iter([file])) == []
