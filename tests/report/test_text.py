"""Untrusted text cannot become markup, drive a terminal, reorder a line or fill the page."""

import pytest
from markdown_it import MarkdownIt

from overnight.report.text import (
    MOST,
    code_block,
    code_span,
    count,
    decimals_for,
    duration,
    markdown,
    markup,
    number,
    plain,
    signed,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\tb\nc\r\n d", "a b c d", id="white space becomes one space"),
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colours of a terminal"),
        pytest.param("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link", id="links of a terminal"),
        pytest.param("\x9b2Jgone\x00\x07", "gone", id="control characters of eight bits"),
        pytest.param("abc\u202etxt.exe\u202c\u2066x\u2069", "abctxt.exex", id="bidirectional overrides"),
        pytest.param("pay\u200bpal\ufeff\u00ad", "paypal", id="invisible characters"),
        pytest.param("line\u2028break\u2029s\x85x", "line break s x", id="separators that are lines elsewhere"),
        pytest.param("Z\u0301\u0302\u0303\u0304\u0305\u0306", "Z\u0301\u0302\u0303", id="a pile of marks"),
        pytest.param("\ud800lone", "lone", id="half a character"),
        pytest.param("+3 % für λ=0,8 日本", "+3 % für λ=0,8 日本", id="ordinary text stays"),
    ],
)
def test_only_what_can_be_read_is_left(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_huge_text_is_cut_and_says_so() -> None:
    assert plain("a" * 10_000_000) == "a" * MOST + " …"
    assert plain("\u200b" * 10_000_000 + "hidden") == " …"


def test_markup_closes_no_attribute_and_opens_no_element() -> None:
    assert markup("\"><img src=x onerror='1'>&") == "&quot;&gt;&lt;img src=x onerror=&#x27;1&#x27;&gt;&amp;"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](https://evil.example/p.png)",
        "[x](javascript:alert(1))",
        "<https://evil.example>",
        "https://evil.example and www.evil.example and mail@evil.example",
        "# heading",
        "- item",
        "+ item",
        "12. item",
        "> quote",
        "---",
        "===",
        "`code` **bold** __bold__ ~~gone~~ $x$ &lt;b&gt;",
        "a | b | c",
        "\\`x`",
    ],
)
def test_text_in_markdown_is_a_paragraph_of_exactly_that_text(text: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    rendered = parser.render(f"{markdown(text)}\n")
    assert rendered == f"<p>{markup(text).replace('&#x27;', chr(39))}</p>\n"


@pytest.mark.parametrize("text", ["plain", "`", "a``b", "```", "", "<b>"])
def test_code_cannot_leave_its_fence(text: str) -> None:
    parser = MarkdownIt("commonmark")
    escaped = markup(text)
    assert parser.render(code_block((text,))).count("<pre>") == 1
    assert f">{escaped}\n</code>" in parser.render(code_block((text,)))
    assert not text or parser.render(code_span(text)) == f"<p><code>{escaped}</code></p>\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (312.0, "312"),
        (22.31, "22.3"),
        (-0.04567, "−0.046"),
        (40_000.0, "40,000"),
        (-0.0, "0"),
        (1e300, "1e+300"),
        (float("nan"), "unknown"),
        (float("-inf"), "unknown"),
        (None, "unknown"),
    ],
)
def test_a_number_is_told_in_about_three_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_a_gain_has_its_sign() -> None:
    assert [signed(one, 1) for one in (2.04, -2.06, 0.0, 0.01)] == ["+2.0", "−2.1", "0.0", "+0.0"]


@pytest.mark.parametrize(("half_width", "decimals"), [(42.0, 0), (4.2, 1), (0.42, 2), (0.0, 2), (float("inf"), 2)])
def test_decimals_follow_the_width_of_the_interval(half_width: float, decimals: int) -> None:
    assert decimals_for(half_width) == decimals


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5, "0.5 s"), (59.0, "59 s"), (90.0, "2 min"), (3600.0, "1 h"), (28_692.0, "7 h 58 min"), (-1.0, "unknown")],
)
def test_a_duration_is_told_in_two_units(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_count_agrees_with_its_noun() -> None:
    assert (count(1, "entry", "entries"), count(1200, "entry", "entries")) == ("1 entry", "1,200 entries")
