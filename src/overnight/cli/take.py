"""`overnight take`: bring a result home."""

from pathlib import Path
from typing import Annotated, Any

import typer

from overnight.cli.options import HERE, Dir, Json, active, verb_app
from overnight.cli.output import data

app = verb_app("Bring a result home.")


@app.command()
def take(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A candidate's id; by default the incumbent.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Write the trained policy into this new folder; it plays without Overnight.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Write the parameters and the claim as JSON.")] = None,
    patch: Annotated[
        Path | None, typer.Option(help="Write the change since the baseline, as `git apply` takes it.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option(help="Make this new branch in your repository, one commit for each idea.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Whose policy: a run's id; by default the median run.")] = None,
    uncertified: Annotated[
        bool, typer.Option("--uncertified", help="Take it although no gain of it is certified.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over the files of --config and --patch.")] = False,
    folder: Dir = HERE,
    as_json: Json = False,
) -> None:
    """Bring a result home: the policy, the parameters, a patch, a branch, or several of them.

    Takes the certified winner. Without one it refuses, and says so; `--uncertified` takes what there is. This
    is the only verb that writes to your repository: `--branch` adds commits and one ref, and leaves the working
    tree, the index and HEAD alone.

    Examples: `overnight take --policy better`, `overnight take --branch better`,
    `overnight take c-0007 --uncertified --patch idea.diff`
    """
    from overnight.home import Wish, choose, read_source
    from overnight.home import take as bring

    source = read_source(*active(folder))
    taking = choose(source, name, uncertified=uncertified)
    told = bring(taking, Wish(policy, config, patch, branch, run, force))
    data(told, "\n".join(_lines(told)), as_json=as_json)


def _lines(told: dict[str, Any]) -> list[str]:
    lines = [f"{told['candidate']}: {told['says']}"]
    if "policy" in told:
        returns = told["returns"]
        mean = sum(returns) / len(returns)
        lines.append(
            f"policy  {told['policy']}: run {told['run']}, mean return {mean:g} on {len(returns)} public seeds"
        )
        lines.append(f"        python {told['policy']}/act.py plays them and compares")
    if "config" in told:
        lines.append(f"config  {told['config']}")
    if "patch" in told:
        lines.append(f"patch   {told['patch']}: git apply {told['patch']}")
    if "branch" in told:
        lines.append(f"branch  {told['branch']} at {told['commit'][:12]}: git log {told['branch']}")
    return lines
