"""The page is one whole file: well formed, without requests, safe against any text, and the same every time."""

import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from overnight.records.lifecycle import State
from overnight.report.exports import results_tsv
from overnight.report.facts import Facts, Shortfall
from overnight.report.html import render_html
from overnight.report.markdown import render_markdown
from report.hostile import HOSTILE, everywhere
from report.sample import night

VOID = {"meta", "br", "img", "input", "source"}
ADDRESSES = {"src", "srcset", "href", "action", "data", "poster", "background", "xlink:href", "formaction"}


class Page(HTMLParser):
    """What a browser would find: tags that match, attributes, and the text of a few elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)

    def policy(self) -> str:
        return next(value for tag, name, value in self.attributes if tag == "meta" and "default-src" in value)


def bare() -> Facts:
    """A night that ended before anything happened."""
    return replace(
        night(), claims=(), shortfall=None, candidates=(), curves=(), replays=None, references=(), versions=()
    )


FORMS = {
    "certified": night(),
    "open": replace(
        night(), claims=(), shortfall=Shortfall(because="Noise.", would_decide="Seeds.", gain=1, low=-2, high=4)
    ),
    "bare": bare(),
    "hostile": everywhere(night(), HOSTILE),
}


@pytest.fixture(params=FORMS, scope="module")
def text(request: pytest.FixtureRequest) -> str:
    return render_html(FORMS[request.param])


def test_tags_are_balanced(text: str) -> None:
    assert {"html", "head", "body", "h1", "main", "section"} <= set(Page(text).tags)


def test_nothing_is_fetched_from_anywhere(text: str) -> None:
    page = Page(text)
    assert not [
        one for one in page.attributes if one[1] in ADDRESSES and not one[2].startswith("data:image/png;base64,")
    ]
    assert not {"link", "iframe", "object", "embed", "base", "form", "a", "foreignobject", "audio", "video"} & set(
        page.tags
    )
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert not re.search(r"url\(|@import|https?:|//", style[1])


def test_no_attribute_runs_a_script_or_brings_a_style(text: str) -> None:
    assert not [name for _, name, _ in Page(text).attributes if name.startswith("on") or name == "style"]


def test_the_policy_allows_the_one_script_and_no_other(text: str) -> None:
    page = Page(text)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page.policy()
    hashes = [f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in page.scripts]
    assert page.policy().endswith(f"script-src {hashes[0] if hashes else chr(39) + 'none' + chr(39)}")
    assert len(hashes) <= 1
    assert "unsafe-eval" not in page.policy()


def test_the_policy_comes_before_anything_it_must_govern(text: str) -> None:
    assert text.index("Content-Security-Policy") < text.index("<title>") < text.index("<style>")


def test_hostile_text_appears_nowhere_raw() -> None:
    text = render_html(FORMS["hostile"])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", text)
    assert "<script>alert" not in text
    assert "<img src=https" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert len(Page(text).scripts) == 1
    assert len(text) < 1_000_000


def test_every_picture_and_drawing_is_told_in_words(text: str) -> None:
    page = Page(text)
    pictures = page.tags.count("img") + page.tags.count("svg")
    told = [value for tag, name, value in page.attributes if (tag, name) in {("img", "alt"), ("svg", "aria-label")}]
    assert len(told) == pictures
    assert all(len(value) > 10 for value in told)


def test_sections_come_in_the_order_of_a_morning() -> None:
    assert Page(render_html(night())).headings == [
        "Where it holds",
        "What was tried",
        "What it cost",
        "How they learned",
        "The gain",
        "The median episodes",
        "The evidence",
        "What to do now",
    ]


def test_the_fixed_line_stands_under_every_claim() -> None:
    claim = night().claims[0]
    two = replace(night(), claims=(claim, replace(claim, sentence="A second one.", fixed_line="Its own line.")))
    text = render_html(two)
    assert f'{claim.sentence}</p><p class="fixed">' in text
    assert '<p>A second one.</p><p class="fixed">Its own line.</p>' in text


def test_a_plant_that_got_through_is_told_before_the_headline() -> None:
    lines = tuple(replace(one, state=State.COMPLETED, kept=True) if one.plant else one for one in night().candidates)
    text = render_html(replace(night(), candidates=lines))
    assert text.index("The judge failed its own test tonight") < text.index("<h1>")


def test_after_many_candidates_the_rejected_ones_are_folded_and_none_is_left_out() -> None:
    rejected = next(one for one in night().candidates if one.state is State.REJECTED and one.plant is None)
    many = (*night().candidates, *(replace(rejected, id=f"c-{place:04}") for place in range(100, 150)))
    text = render_html(replace(night(), candidates=many))
    head, _, rest = text.partition(" rejected candidates</summary>")
    assert all(f"<code>{one.id}</code> <span" in rest for one in many[-50:])
    assert all(f"<code>{one.id}</code> <span" in head for one in night().candidates if one.plant is not None)
    assert all(text.count(f"<code>{one.id}</code> <span") == 1 for one in many)
    assert "rejected candidates</summary>" not in render_html(night())


def test_commands_are_whole_and_can_be_pasted() -> None:
    text = render_html(night())
    for one in (*night().next_commands, night().claims[0]):
        assert f'<pre class="command"><code>{one.command}</code></pre>' in text


def test_numbers_that_are_none_are_told_and_not_drawn() -> None:
    nan = float("nan")
    claim = replace(night().claims[0], gain=nan, low=nan, high=float("inf"))
    lines = tuple(replace(one, gain=nan, luckiest=float("inf")) for one in night().candidates)
    text = render_html(replace(night(), claims=(claim,), candidates=lines))
    assert "A gain of unknown return" in text
    assert not re.search(r'="[^"]*\b(?:nan|inf)\b', text)


@pytest.mark.feature("R39")
def test_identical_facts_give_identical_bytes_in_any_process(tmp_path: Path) -> None:
    sample = Path(__file__).with_name("sample.py")
    env = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    subprocess.run([sys.executable, str(sample), str(tmp_path)], check=True, env=env)
    wanted = {"report.html": render_html, "report.md": render_markdown, "results.tsv": results_tsv}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(wanted)
    for name, render in wanted.items():
        assert (tmp_path / name).read_bytes() == render(night()).encode() == render(night()).encode()


@pytest.mark.feature("R108")
def test_only_the_section_changes_whose_facts_changed() -> None:
    dearer = replace(night(), night=replace(night().night, runs=97))
    before, after = (render_html(one).split("<section>") for one in (night(), dearer))
    assert [place for place in range(len(before)) if before[place] != after[place]] == [3]
    assert before[3].startswith("<h2>What it cost</h2>")


@pytest.mark.feature("Z41")
def test_the_plot_draws_the_line_at_which_the_study_says_that_the_task_is_solved() -> None:
    declared = night()
    silent = replace(declared, metric=replace(declared.metric, solved=None))
    assert "solved 475" in re.sub(r"<[^>]*>", " ", render_html(declared)).replace("  ", " ")
    assert "solved 475" not in re.sub(r"<[^>]*>", " ", render_html(silent)).replace("  ", " ")
