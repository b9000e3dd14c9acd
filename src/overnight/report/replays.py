"""Two episodes side by side. They move without a script; with it, both keep one time and can be held.

Each picture is in the page once, inside a moving PNG; the script takes the frames out of it.
"""

from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

from overnight.report.facts import Replay
from overnight.report.png import BadPicture, assemble_apng, size
from overnight.report.text import duration, markup, number

MOST_FRAMES = 400
"""The most pictures of one episode that the page holds."""

_CONTROLS = (
    '<div class="controls" hidden><button type="button" data-play>Pause</button>'
    '<input type="range" min="0" max="1000" value="0" aria-label="Place in the episodes" data-place>'
    "<output data-time></output></div>"
)


def render_replays(replays: tuple[Replay, Replay] | None) -> str:
    """Both episodes with their captions and the script, or nothing where there are none."""
    if replays is None:
        return ""
    shown = "".join(_episode(one) for one in replays)
    return f'<div class="replays" data-replays>{shown}</div>{_CONTROLS}<script>{script()}</script>'


def script() -> str:
    """The page's one script."""
    return files("overnight.report").joinpath("replays.js").read_text("utf-8")


def policy_of_script() -> str:
    """What the page's policy must say for the script to run."""
    return f"'sha256-{b64encode(sha256(script().encode()).digest()).decode()}'"


def thinned(replay: Replay) -> Replay:
    """The same episode at the same speed with at most `MOST_FRAMES` pictures, so that the page stays small."""
    step = -(-len(replay.frames) // MOST_FRAMES)
    if step <= 1:
        return replay
    return replace(replay, frames=replay.frames[::step], seconds_per_frame=replay.seconds_per_frame * step)


def _episode(whole: Replay) -> str:
    replay = thinned(whole)
    told = f"Score {number(replay.score)}, train seed {number(replay.seed, 0)}"
    lasts = duration(len(replay.frames) * replay.seconds_per_frame)
    caption = f"<figcaption><strong>{markup(replay.title, 80)}</strong> {told}; {lasts}.</figcaption>"
    try:
        moving = assemble_apng(replay.frames, seconds_per_frame=replay.seconds_per_frame)
        width, height = size(moving)
    except BadPicture as error:
        missing = f'<p class="missing">The episode cannot be shown. {markup(str(error))}</p>'
        return f'<figure class="episode">{missing}{caption}</figure>'
    says = markup(
        f"{replay.title}: an episode of {len(replay.frames)} frames with a score of {number(replay.score)}.", 300
    )
    return (
        '<figure class="episode"><picture>'
        f'<source media="(prefers-reduced-motion: reduce)" srcset="{_inline(replay.frames[0])}">'
        f'<img src="{_inline(moving)}" width="{width}" height="{height}" alt="{says}" '
        f'data-milliseconds="{replay.seconds_per_frame * 1000:g}"></picture>{caption}</figure>'
    )


def _inline(picture: bytes) -> str:
    return f"data:image/png;base64,{b64encode(picture).decode()}"
