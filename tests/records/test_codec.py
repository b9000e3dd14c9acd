"""The codec is strict: nothing is coerced, nothing is dropped, and every error names its key."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import UserError
from overnight.records.codec import Misfit, decode, digest, dumps, encode, loads, show
from overnight.records.limits import Above, AtLeast, AtMost, Items, Length, Scalar, Shape


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    size: Annotated[int, AtLeast(1), AtMost(9)]
    weight: Annotated[float, Above(0)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    SCHEMA: ClassVar[str] = "overnight/thing/2"

    name: Annotated[str, Length(8, 1)]
    code: Annotated[str, Shape(r"[a-z]{2}", "two letters")]
    colour: Colour
    mode: Literal["slow", "fast"]
    sure: bool
    parts: Annotated[tuple[Part, ...], Items(1, 3)]
    sizes: Mapping[str, float]
    any: Scalar = None
    more: object = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.mode == "fast" and not self.sure:
            raise Misfit(("mode",), "is `fast`, but nobody is sure", hint="be sure")


PLAIN: dict[str, Any] = {
    "name": "lamp",
    "code": "ab",
    "colour": "red",
    "mode": "slow",
    "sure": True,
    "parts": [{"size": 3, "weight": 0.5}],
    "sizes": {"wide": 2.0},
    "any": "x",
    "more": {"deep": [1, {"er": None}]},
    "limit": 4,
}


def thing(**changes: object) -> Thing:
    return decode(Thing, {**PLAIN, **changes}, where="thing.json")


def refusal(**changes: object) -> UserError:
    with pytest.raises(UserError) as caught:
        thing(**changes)
    return caught.value


def test_what_was_encoded_is_decoded_to_the_same_record() -> None:
    assert decode(Thing, encode(thing()), where="thing.json") == thing()


def test_plain_data_is_encoded_in_the_order_of_the_fields() -> None:
    assert list(encode(thing())) == list(PLAIN)


def test_an_absent_key_takes_its_default() -> None:
    plain = {key: value for key, value in PLAIN.items() if key != "limit"}
    assert decode(Thing, plain, where="thing.json").limit is None


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UserError, match=r"thing\.json: `code` is missing"):
        decode(Thing, {"name": "lamp"}, where="thing.json")


def test_an_unknown_key_is_named_with_the_nearest_known_one() -> None:
    error = refusal(collour="red")
    assert (error.what, error.hint) == ("`collour` is not a known key", "did you mean `colour`?")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("name", 5, "is 5, but text is needed"),
        ("name", "", "is empty, but text is needed"),
        ("name", "chandelier", "is 10 characters long, but at most 8 are allowed"),
        ("code", "abc", "is 'abc', but two letters is needed"),
        ("code", "ab\n", "is 'ab\\n', but two letters is needed"),
        ("colour", "blue", "is 'blue', but `red` or `green` is needed"),
        ("colour", 0, "is 0, but `red` or `green` is needed"),
        ("mode", "Slow", "is 'Slow', but `slow` or `fast` is needed"),
        ("mode", ["slow"], 'is ["slow"], but `slow` or `fast` is needed'),
        ("sure", 1, "is 1, but true or false is needed"),
        ("sure", "yes", "is 'yes', but true or false is needed"),
        ("parts", {}, "is {}, but a list is needed"),
        ("parts", [], "has 0 items, but at least 1 is needed"),
        ("parts", [{"size": 1}] * 4, "has 4 items, but at most 3 are allowed"),
        ("sizes", [], "is [], but a mapping is needed"),
        ("any", [1], "is [1], but text, a number, true or false is needed"),
        ("limit", 4.0, "is 4.0, but a whole number is needed"),
        ("limit", True, "is true, but a whole number is needed"),
        ("limit", "4", "is '4', but a whole number is needed"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_what_is_needed(key: str, value: object, says: str) -> None:
    assert refusal(**{key: value}).what == f"`{key}` {says}"


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (5, "`parts.1` is 5, but a mapping is needed"),
        ({}, "`parts.1.size` is missing"),
        ({"size": 0}, "`parts.1.size` is 0, but at least 1 is needed"),
        ({"size": 10}, "`parts.1.size` is 10, but at most 9 is allowed"),
        ({"size": 1, "weight": 0}, "`parts.1.weight` is 0.0, but more than 0 is needed"),
        ({"size": 1, "weight": "heavy"}, "`parts.1.weight` is 'heavy', but a number is needed"),
        ({"size": 1, "weight": True}, "`parts.1.weight` is true, but a number is needed"),
    ],
)
def test_an_error_inside_a_list_names_the_item(part: object, says: str) -> None:
    assert refusal(parts=[{"size": 1}, part]).what == says


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("key", ["any", "sizes"])
def test_a_number_that_is_not_finite_is_refused(key: str, odd: float) -> None:
    error = refusal(**{key: odd if key == "any" else {"wide": odd}})
    assert error.what.endswith(f"is {odd}, but a finite number is needed")


def test_a_whole_number_too_large_for_a_decimal_one_is_refused() -> None:
    assert refusal(sizes={"wide": 10**400}).what == "`sizes.wide` is a number too large to use"


def test_a_whole_number_stands_where_a_decimal_one_is_wanted() -> None:
    wide = thing(sizes={"wide": 2}).sizes["wide"]
    assert (wide, type(wide)) == (2.0, float)


@pytest.mark.parametrize("value", ["text", 7, 0.5, True, None])
def test_a_scalar_keeps_its_own_type(value: Scalar) -> None:
    assert (thing(any=value).any, type(thing(any=value).any)) == (value, type(value))


def test_a_rule_across_fields_is_told_like_any_other_mistake() -> None:
    error = refusal(mode="fast", sure=False)
    assert (error.what, error.hint) == ("`mode` is `fast`, but nobody is sure", "be sure")


def test_a_mapping_cannot_be_changed_after_it_was_read() -> None:
    with pytest.raises(TypeError):
        thing().sizes["wide"] = 3.0  # type: ignore[index]


def test_plain_data_of_any_shape_is_frozen_all_the_way_down() -> None:
    more: Any = thing().more
    assert more["deep"][0] == 1
    with pytest.raises(TypeError):
        more["deep"][1]["er"] = 5


def test_the_data_that_was_read_can_be_changed_without_changing_the_record() -> None:
    plain = {**PLAIN, "sizes": {"wide": 2.0}}
    record = decode(Thing, plain, where="thing.json")
    plain["sizes"]["wide"] = 99.0
    assert record.sizes["wide"] == 2.0


def test_a_file_names_its_schema_first() -> None:
    assert dumps(thing()).startswith(b'{\n  "schema": "overnight/thing/2",\n')


def test_a_file_is_read_back_as_the_record_it_was_written_from() -> None:
    assert loads(Thing, dumps(thing()), where="thing.json") == thing()


@pytest.mark.parametrize("text", ["[]", "null", '"overnight/thing/2"', "{}"])
def test_a_file_without_a_schema_is_refused_with_the_key_it_needs(text: str) -> None:
    with pytest.raises(UserError, match="has no `schema` key") as caught:
        loads(Thing, text, where="thing.json")
    assert caught.value.hint == 'its first key should be "schema": "overnight/thing/2"'


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ('"overnight/thing/3"', "it was written by another version of Overnight"),
        ('"overnight/other/2"', ""),
        ("2", ""),
        ("null", ""),
    ],
)
def test_a_file_of_another_schema_is_refused(schema: str, hint: str) -> None:
    with pytest.raises(UserError, match="but `overnight/thing/2` is needed") as caught:
        loads(Thing, f'{{"schema": {schema}}}', where="thing.json")
    assert caught.value.hint == hint


def test_the_digest_of_a_record_is_the_sha_256_of_its_canonical_form() -> None:
    # printf '{"size":3,"weight":0.5}' | sha256sum
    assert digest(Part(size=3, weight=0.5)) == "2c51d07c17913551d2e78f66d06ac622548d9593cfba6110546c8fc5ba96c918"


@pytest.mark.parametrize("change", [{"name": "lamps"}, {"sure": False}, {"parts": ()}, {"more": None}])
def test_the_digest_changes_with_any_field(change: dict[str, Any]) -> None:
    assert digest(replace(thing(), **change)) != digest(thing())


def test_a_quoted_value_is_shortened() -> None:
    assert len(show("x" * 10_000)) == 78


@given(
    name=st.text(min_size=1, max_size=8),
    sizes=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    scalar=st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    parts=st.lists(st.builds(Part, size=st.integers(1, 9), weight=st.floats(0.001, 1e9)), min_size=1, max_size=3),
)
def test_any_record_survives_its_file(name: str, sizes: dict[str, float], scalar: Scalar, parts: list[Part]) -> None:
    record = replace(thing(), name=name, sizes=sizes, any=scalar, parts=tuple(parts))
    assert loads(Thing, dumps(record), where="thing.json") == record
