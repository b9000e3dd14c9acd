"""Bytes that nobody vouches for become plain data or one clear sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.errors import UserError
from overnight.records.strict_json import MAX_BYTES, canonical, parse, pretty

FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 10**299, 10**299 - 1) | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def refusal(text: bytes | str) -> str:
    with pytest.raises(UserError) as caught:
        parse(text, where="file")
    return caught.value.what


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("null", None),
        ("true", True),
        ("-0", 0),
        ("1e3", 1000.0),
        ('"\\u00e9"', "é"),
        ('"\\ud83d\\ude00"', "😀"),
        (' [1, {"a": []}]\n', [1, {"a": []}]),
        (b'{"a": "\xc3\xa9"}', {"a": "é"}),
    ],
)
def test_plain_json_is_read_as_it_stands(text: bytes | str, found: object) -> None:
    assert parse(text, where="file") == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param('{"a": 1, "a": 2}', "has the key `a` twice", id="a key twice"),
        pytest.param('[{"b": {"a": 1, "\\u0061": 2}}]', "has the key `a` twice", id="a key twice, spelt otherwise"),
        pytest.param("NaN", "holds NaN, which is not a number", id="NaN"),
        pytest.param("[Infinity]", "holds Infinity, which is not a number", id="Infinity"),
        pytest.param('{"a": -Infinity}', "holds -Infinity, which is not a number", id="-Infinity"),
        pytest.param("1e999", "holds the number 1e999, which is too large", id="a decimal that overflows"),
        pytest.param("-1e999", "holds the number -1e999, which is too large", id="one below zero"),
        pytest.param("9" * 5000, "holds a number of 5,000 digits", id="5,000 digits"),
        pytest.param('"\\ud800"', "holds half of a surrogate pair, which is not text", id="half a surrogate pair"),
        pytest.param('{"\\udc00": 1}', "holds half of a surrogate pair, which is not text", id="half a pair as a key"),
        pytest.param("\ud800", "is not JSON: Expecting value (line 1)", id="half a pair outside a string"),
        pytest.param(b'"\xff"', "is not UTF-8 text (byte 1)", id="not UTF-8"),
        pytest.param("", "is not JSON: Expecting value (line 1)", id="nothing"),
        pytest.param("[1]\n[2]", "is not JSON: Extra data (line 2)", id="two values"),
        pytest.param("{'a': 1}", "is not JSON: ", id="single quotes"),
        pytest.param("[1,]", "is not JSON: ", id="a comma too many"),
        pytest.param("// hi\n1", "is not JSON: ", id="a comment"),
        pytest.param("\ufeff1", "is not JSON: ", id="a byte-order mark"),
    ],
)
def test_what_the_standard_parser_lets_through_is_refused(text: bytes | str, says: str) -> None:
    assert refusal(text).startswith(says)


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")], ids=["lists", "mappings"])
def test_thirty_two_levels_are_read_and_one_more_is_refused(before: str, after: str) -> None:
    text = before * 32 + "1" + after * 32
    assert parse(text, where="file")
    assert refusal(f"[{text}]") == "is nested more than 32 levels deep"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "]" * 100_000 + "[" * 100_000])
def test_endless_nesting_is_refused_before_it_is_parsed(text: str) -> None:
    assert refusal(text) in ("is nested more than 32 levels deep", "is not JSON: Expecting value (line 1)")


def test_brackets_inside_text_are_not_nesting() -> None:
    text = '["' + "[" * 1000 + '\\"' + "{" * 1000 + '"]'
    assert parse(text, where="file") == ["[" * 1000 + '"' + "{" * 1000]


def test_many_lists_beside_each_other_are_not_nesting() -> None:
    assert parse("[" + "[{}]," * 100 + "[]]", where="file") == [[{}]] * 100 + [[]]


def test_three_hundred_digits_are_still_a_number() -> None:
    assert parse("9" * 300, where="file") == 10**300 - 1


def test_more_bytes_than_are_read_are_refused_with_both_numbers() -> None:
    assert refusal(b" " * (MAX_BYTES + 1)) == "is 262,145 bytes long, but at most 262,144 are read"


def test_the_canonical_form_is_sorted_dense_ascii() -> None:
    assert canonical({"b": [1.5, None], "a": "é"}) == b'{"a":"\\u00e9","b":[1.5,null]}'


@pytest.mark.parametrize("write", [canonical, pretty])
def test_a_number_that_is_not_finite_is_never_written(write: object) -> None:
    assert callable(write)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write([float("nan")])


def test_a_file_for_people_keeps_the_order_and_ends_in_a_newline() -> None:
    assert pretty({"b": 1, "a": "é"}) == '{\n  "b": 1,\n  "a": "é"\n}\n'.encode()


@given(PLAIN)
def test_what_was_written_is_read_back(data: object) -> None:
    assert parse(canonical(data), where="file") == data
    assert parse(pretty(data), where="file") == data


@given(st.dictionaries(st.text(), PLAIN, max_size=5), st.randoms(use_true_random=False))
def test_the_canonical_form_does_not_depend_on_the_order_of_keys(data: dict[str, object], luck: object) -> None:
    keys = list(data)
    luck.shuffle(keys)  # type: ignore[attr-defined]
    assert canonical({key: data[key] for key in keys}) == canonical(data)
