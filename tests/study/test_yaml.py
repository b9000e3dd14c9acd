"""The one YAML loader takes the plain part of the language, and means by it what people mean."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overnight.errors import UserError
from overnight.study import yaml


def refusal(text: bytes | str) -> UserError:
    with pytest.raises(UserError) as caught:
        yaml.load(text, where="contract.yaml")
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "no", "No", "NO", "yes", "on", "off", "y", "n", "True", "FALSE", "Null", "NULL",
        "1:30", "12:30:45", "010", "0o10", "0x10", "0b1", "00", "08", "-01", "01.5",
        "2024-01-01", "2024-01-01T10:00:00Z", "1.2.3", "v1",
        ".inf", "-.inf", ".nan", "inf", "nan", "Infinity",
        "1.", "e5", "+.e5", "1e", "1e+", ".", "+", "..", "_1", "1,000", "١٢", "²",
        "=", "a b", "hello world", "a:b", "http://x.y/z",
    ],
)  # fmt: skip
def test_what_only_looks_like_something_else_stays_text(text: str) -> None:
    assert yaml.load(f"key: {text}", where="file") == {"key": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("9" * 300, 10**300 - 1),
        ("0.5", 0.5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("2.5e-3", 0.0025),
        ("1e-999", 0.0),
        ("1_000.5", 1000.5),
    ],
)
def test_unmistakable_numbers_and_words_are_read_as_such(text: str, value: object) -> None:
    found: Any = yaml.load(f"key: {text}", where="file")
    assert (found["key"], type(found["key"])) == (value, type(value))


@pytest.mark.parametrize("text", ["no", "1", "1.5", "true", "null", "~", "", "1e3"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_what_is_quoted_is_text(text: str, quote: str) -> None:
    assert yaml.load(f"{quote}{text}{quote}", where="file") == text


@pytest.mark.parametrize("key", ["no", "1", "true", "null", "1.5", "2024-01-01"])
def test_a_key_is_always_text(key: str) -> None:
    assert yaml.load(f"{key}: 1", where="file") == {key: 1}


@pytest.mark.parametrize("text", ["", "\n", "# nothing but a comment\n", "---\n"])
def test_an_empty_file_holds_null(text: str) -> None:
    assert yaml.load(text, where="file") is None


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        pytest.param("a: 1\nb: !!str 2", 2, "the tag 'tag:yaml.org,2002:str' is used", id="a tag"),
        pytest.param("a: !mine 2", 1, "the tag '!mine' is used", id="a tag of one's own"),
        pytest.param("a: ! 2", 1, "the tag '!' is used", id="the tag of no tag"),
        pytest.param("a:\n  !!python/object/apply:os.system [x]", 2, "the tag 'tag:yaml.org,2002:python/", id="code"),
        pytest.param("a: 1\n!!str b: 2", 2, "the tag", id="a tag on a key"),
        pytest.param("a: &x 1", 1, "an anchor or alias (`&` or `*`) is used", id="an anchor"),
        pytest.param("a: 1\n\nb: *x", 3, "an anchor or alias (`&` or `*`) is used", id="an alias"),
        pytest.param("&x a: 1", 1, "an anchor or alias (`&` or `*`) is used", id="an anchor on a key"),
        pytest.param("a: 1\n*x : 2", 2, "a key is not plain text", id="an alias as a key"),
        pytest.param("a: 1\n<<: {b: 2}", 2, "a merge key (`<<`) is used", id="a merge key"),
        pytest.param("a: 1\nb: 2\na: 3", 3, "the key `a` stands here a second time", id="a key twice"),
        pytest.param('a: 1\n"a": 3', 2, "the key `a` stands here a second time", id="a key twice, once quoted"),
        pytest.param("x:\n  - {b: 1, b: 2}", 2, "the key `b` stands here a second time", id="a key twice, deeper"),
        pytest.param("a: 1\n---\nb: 2", 2, "a second document begins", id="two documents"),
        pytest.param("? [a]\n: 1", 1, "a key is not plain text", id="a list as a key"),
        pytest.param("? {a: 1}\n: 1", 1, "a key is not plain text", id="a mapping as a key"),
        pytest.param("a: 1\nb: 1e999", 2, "the number 1e999 is too large", id="a number that overflows"),
        pytest.param("[" * 40 + "]" * 40, 1, "the nesting is more than 32 levels deep", id="deep nesting"),
        pytest.param("- 1\n" * 20_001, 20_000, "there are more than 20,000 values", id="many values"),
    ],
)  # fmt: skip
def test_what_a_plain_file_does_not_need_is_refused_with_its_line(text: str, line: int, what: str) -> None:
    error = refusal(text)
    assert error.where == f"contract.yaml line {line}"
    assert error.what.startswith(what)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("a: 1\n  b: 2", "is not YAML: mapping values are not allowed", id="indented"),
        pytest.param("a: [1, 2", "is not YAML: did not find expected ',' or ']' (line ", id="an open bracket"),
        pytest.param('a: "x', "is not YAML: found unexpected end of stream (line 1)", id="an open quote"),
        pytest.param("a: @x", "is not YAML: found character that cannot start any token (line 1)", id="a stray sign"),
        pytest.param("a: \x00", "is not YAML: control characters are not allowed", id="a control character"),
        pytest.param('"\\ud800"', "is not YAML: found invalid Unicode character escape", id="half a pair"),
        pytest.param(b"a: \xff", "is not UTF-8 text (byte 3)", id="not UTF-8"),
        pytest.param("%YAML 9.9\n---\na", "is not YAML: found incompatible YAML document", id="from the future"),
        pytest.param(b"#" * 262_145, "is 262,145 bytes long, but at most 262,144 are read", id="too long"),
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_refused_with_the_reason(text: bytes | str, what: str) -> None:
    error = refusal(text)
    assert error.where == "contract.yaml"
    assert error.what.startswith(what)


def test_thirty_two_levels_are_read() -> None:
    found = yaml.load("[" * 32 + "]" * 32, where="file")
    depth = 0
    while isinstance(found, list):
        depth, found = depth + 1, found[0] if found else None
    assert depth == 32


def test_a_file_is_read_as_bytes_or_as_text() -> None:
    assert yaml.load("a: é".encode(), where="file") == yaml.load("a: é", where="file") == {"a": "é"}


def test_a_dump_is_plain_yaml_that_a_person_can_read() -> None:
    data = {
        "task": {"name": "cartpole", "goals": ["one", "two"], "none": [], "env": {}},
        "runs": [{"id": 1}, {"id": 2}],
    }
    assert yaml.dump(data) == (
        "task:\n  name: cartpole\n  goals: [one, two]\n  none: []\n  env: {}\nruns:\n  - id: 1\n  - id: 2\n"
    )


def test_text_that_could_be_read_as_something_else_is_quoted() -> None:
    assert yaml.dump(["no", "1:30", "null", "1", "", "a: b", "x"]) == (
        '- "no"\n- "1:30"\n- "null"\n- "1"\n- ""\n- "a: b"\n- x\n'
    )


NASTY = [
    "", " ", "\n", "\t", "\r\n", "a\n", " a", "a ", "a\n\nb", "a  b", "a" * 300,
    "no", "null", "~", "true", "y", "N", "on", "unknown",
    "1", "1.5", "1e3", "0x10", "1:30", ".5", "+1", "-.", "1_000", "1_", "_1", "2024-01-01",
    "-", "- a", "? a", ": a", "a: b", "x:", "x :", "a #b", "# a", "#", "|", ">", "|-", "---", "--- a", "..", "=", "<",
    "&a", "*a", "!a", "!!str a", "%a", "@a", "`a", "'", '"', "\\", "\\n", "a\\",
    "{}", "[]", "{a: 1}", "[a]", "a,b", "key: [", "(a)", "/", "/1", "a/b", "a@b.c",
    "\x00", "\x07", "\x1b[0m", "\x7f", "\x85", "\xa0", "\ufeff", "\ufffe", "\ud7ff", "\ue000", "\u202e",
    "é", "e\u0301", "😀",
]  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
def test_nasty_text_survives_as_a_value_as_an_item_and_as_a_key(text: str) -> None:
    for data in (text, [text], [text, [text]], {"key": text}, {text: 1}, [{text: [text], "x": {text: text}}]):
        assert yaml.load(yaml.dump(data), where="file") == data


FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<\u2028\u2029"), max_size=30)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 10**299, 10**299 - 1) | FINITE | TEXT | st.sampled_from(NASTY),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT | st.sampled_from(NASTY), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=500, deadline=None)
@given(PLAIN)
def test_what_was_dumped_is_loaded_the_same(data: object) -> None:
    found = yaml.load(yaml.dump({"data": data}), where="file")
    assert repr(found) == repr({"data": data}), "and 1, 1.0 and true are not the same"


@given(st.lists(PLAIN, max_size=3).map(tuple))
def test_a_tuple_is_written_like_a_list(data: tuple[object, ...]) -> None:
    assert yaml.dump(data) == yaml.dump(list(data))
