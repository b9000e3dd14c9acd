"""The same morning as text: whole, safe against any text, and stable section by section."""

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from overnight.report.facts import Facts, Shortfall
from overnight.report.html import render_html
from overnight.report.markdown import render_markdown
from report.hostile import HOSTILE, everywhere
from report.sample import night


def rendered(facts: Facts) -> str:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return str(parser.render(render_markdown(facts)))


def test_page_and_text_have_the_same_sections_in_the_same_order() -> None:
    assert re.findall(r"^## (.*)$", render_markdown(night()), re.MULTILINE) == re.findall(
        "<h2>(.*?)</h2>", render_html(night())
    )


def test_the_first_line_is_the_headline() -> None:
    assert render_markdown(night()).startswith("# A gain of 213 return on CartPole-v1 was certified, ")


def test_a_margin_of_0_is_told_as_what_it_asks_for() -> None:
    strict = replace(night().claims[0], guardrails=(("worst_decile_return", -12.5, 0.0), ("falls", 0.5, 2.0)))
    for text in (render_markdown(replace(night(), claims=(strict,))), render_html(replace(night(), claims=(strict,)))):
        plain = text.replace("\\_", "_")
        assert "worst_decile_return is 12.5 better (its margin is 0, so it had to be shown to be better)" in plain
        assert "falls is 0.5 worse (its margin is 2)" in plain


def test_what_carries_the_gain_is_told_on_page_and_in_text_wherever_something_was_certified() -> None:
    says = "Of 2 parts, nothing was removed; c-0002 is shown to carry the gain."
    told = replace(night(), attribution=(says,))
    assert f"## What carries the gain\n\n- {says}" in render_markdown(told)
    assert "<h2>What carries the gain</h2>" in render_html(told) and says in render_html(told)
    whole = replace(told, total="In all since the baseline.")
    assert "In all since" in render_markdown(whole) and "In all since" in render_html(whole)
    assert "What carries the gain" not in render_markdown(replace(told, attribution=()))


def test_every_candidate_has_one_line() -> None:
    lines = [line for line in render_markdown(night()).splitlines() if line.startswith("- **c-")]
    assert len(lines) == 14
    assert "Planted placebo: the baseline under another name." in lines[1]


def test_the_fixed_line_stands_under_the_claim() -> None:
    claim = night().claims[0]
    assert f"> {claim.sentence}\n>\n> *{claim.fixed_line}*" in render_markdown(night())


def test_commands_stand_alone_in_their_blocks() -> None:
    text = rendered(night())
    for one in (*night().next_commands, night().claims[0]):
        assert re.search(rf"<code[^>]*>{re.escape(one.command)}\n</code>", text)


def test_a_night_without_a_claim_says_what_would_decide() -> None:
    short = Shortfall(
        because="The gain is noise.", would_decide="About 42 more seeds would decide.", gain=1, low=-2, high=4
    )
    text = render_markdown(replace(night(), claims=(), shortfall=short))
    assert "About 42 more seeds would decide." in text
    assert "Estimated, not certified: +1, interval −2.0 to +4.0." in text


def test_a_night_in_which_nothing_happened_is_told() -> None:
    bare = replace(
        night(), claims=(), shortfall=None, candidates=(), curves=(), replays=None, references=(), versions=()
    )
    assert "No candidate was tried." in render_markdown(bare)


def test_hostile_text_becomes_no_markup() -> None:
    facts = everywhere(night(), HOSTILE)
    text = rendered(facts)
    assert not re.search(r"<(?:script|img|a|svg|del|style)\b", text)
    assert text.count("<h1>") == 1
    assert text.count("<h2>") == 8
    assert text.count("<table>") == 3
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", render_markdown(facts))


@pytest.mark.feature("R108")
def test_only_the_section_changes_whose_facts_changed() -> None:
    dearer = replace(night(), night=replace(night().night, runs=97))
    before, after = (render_markdown(one).split("\n## ") for one in (night(), dearer))
    assert [one.split("\n")[0] for one, other in zip(before, after, strict=True) if one != other] == ["What it cost"]
