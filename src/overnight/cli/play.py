"""`overnight play`: one episode, played by the referee, as a moving picture."""

from pathlib import Path
from typing import Annotated

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Play one episode.")


@app.command()
def play(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A candidate's id, or `baseline`; by default the incumbent."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The episode's seed.", min=0)] = 0,
    run: Annotated[str | None, typer.Option(help="Whose policy: a run's id; by default the median run.")] = None,
    out: Annotated[Path, typer.Option(help="Where the moving picture goes.")] = Path("episode.png"),
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Let the referee play one episode, and write it as a moving picture that every browser shows.

    An environment that cannot draw itself is played all the same; then there is a return and no picture.

    Examples: `overnight play`, `overnight play baseline --seed 3 --out before.png`
    """
    from overnight.home import read_source
    from overnight.play import play as let_play

    source = read_source(*active(folder))
    one = source.candidate(name)
    chosen = source.run_of(one.id, run)
    found = let_play(source, chosen, seed, out)
    told = {
        "candidate": one.id,
        "run": chosen,
        "seed": seed,
        "return": found.total,
        "steps": found.steps,
        "picture": str(found.picture) if found.picture is not None else None,
        "missing": found.missing,
    }
    picture = f"picture: {found.picture}" if found.picture is not None else f"no picture: {found.missing}"
    text = f"{one.id}, run {chosen}, seed {seed}: return {found.total:g} in {found.steps} steps\n{picture}"
    data(told, text, as_json=as_json)
