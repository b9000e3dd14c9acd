"""From an ended run to evidence: the referee is started, asked once, and believed only in full."""

import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from overnight.errors import OvernightError
from overnight.evaluate.behaviour import Actions
from overnight.ports import Machine
from overnight.records import strict_json
from overnight.records.codec import encode
from overnight.records.env import EnvSpec
from overnight.records.text import sentence
from overnight.records.tier import Tier
from overnight.sandbox.probe import strongest
from overnight.study.artifacts import store_bytes
from overnight.study.layout import StudyFolder

_LIMIT_SECONDS = 3600.0
REPEATED_SHARE = 0.05
"""So many of a measurement's episodes are played a second time, and at least one."""


class Measured(NamedTuple):
    """What the referee measured: every episode, or the policy's error and no score."""

    episodes: tuple[tuple[int, float, int], ...]
    """Seed, return and length of each episode, in the order of the seeds."""
    error: str
    """What the policy did wrong; empty when there is a score."""
    tier: Tier = "T1"
    """How strongly the policy was held."""
    repeated: int = 0
    """How many of the episodes were played a second time, to see whether the same comes of them."""
    different: int = 0
    """How many of those came out differently."""
    actions: Actions | None = None
    """What the policy did, where that was asked for."""
    differs: str = ""
    """Whose doing that was: the `policy`'s, or the `environment`'s, which then differs without any policy."""

    def score(self) -> float:
        """The mean return."""
        return sum(episode[1] for episode in self.episodes) / len(self.episodes)

    def guardrails(self) -> dict[str, float]:
        """The guarded measures: the mean of the worst tenth of the episodes."""
        totals = sorted(episode[1] for episode in self.episodes)
        worst = totals[: max(len(totals) // 10, 1)]
        return {"worst_decile_return": sum(worst) / len(worst)}


class RefereeFailed(OvernightError):
    """The referee itself did not do its work: the machine's fault, never the candidate's."""

    is_machines_fault = False
    """Whether no policy could have made it fail, because none was started."""


def measure(
    machine: Machine,
    env: EnvSpec,
    run_folder: Path,
    seeds: Sequence[int],
    *,
    lanes: int | None = None,
    tier: Tier | None = None,
) -> Measured:
    """Measure the policy that a run left behind, as many episodes at a time as the referee likes, or so many.

    Its code is held as strongly as this machine can, or at the tier that is named.
    """
    request: dict[str, Any] = {"policy": str(run_folder / "policy"), "run_folder": str(run_folder)}
    request |= {"seeds": list(seeds)} | ({"lanes": lanes} if lanes is not None else {})
    request |= {"tier": tier} if tier is not None else {}
    return _ask(machine, env, request)


def measure_and_check(machine: Machine, env: EnvSpec, run_folder: Path, seeds: Sequence[int], tier: Tier) -> Measured:
    """Measure a policy, and play some of its episodes again, chosen where nobody sees it, with the policy anew."""
    repeat = max(round(len(seeds) * REPEATED_SHARE), 1)
    about = {"policy": str(run_folder / "policy"), "run_folder": str(run_folder)}
    return _ask(machine, env, {**about, "seeds": list(seeds), "tier": tier, "repeat": repeat})


def is_code(run_folder: Path) -> bool:
    """Whether the policy that a run left behind is code of its own."""
    try:
        spec = strict_json.parse((run_folder / "policy" / "policy.json").read_bytes(), where="policy.json")
    except (OSError, OvernightError):
        return False
    return isinstance(spec, dict) and spec.get("kind") == "code"


def measure_reference(machine: Machine, env: EnvSpec, name: str, seeds: Sequence[int]) -> Measured:
    """Measure a reference policy, `random` or `no-op`, by the same referee."""
    return _ask(machine, env, {"reference": name, "seeds": list(seeds)})


def watch(machine: Machine, env: EnvSpec, run_folder: Path, seeds: Sequence[int], tier: Tier) -> Measured:
    """Play some episodes of a policy again, one after the other, and count what it does."""
    about = {"policy": str(run_folder / "policy"), "run_folder": str(run_folder)}
    return _ask(machine, env, {**about, "seeds": list(seeds), "tier": tier, "actions": True})


def record(machine: Machine, env: EnvSpec, run_folder: Path, seed: int, target: Path) -> Measured:
    """Play one episode and keep its pictures as an array file."""
    request = {
        "policy": str(run_folder / "policy"),
        "run_folder": str(run_folder),
        "seeds": [seed],
        "record": str(target),
    }
    return _ask(machine, env, request)


def keep(machine: Machine, at: StudyFolder, measured: Measured) -> str:
    """Store every episode's result by its content, and return the digest that evidence names."""
    data = strict_json.canonical({"episodes": [list(episode) for episode in measured.episodes]})
    return store_bytes(machine, at.objects, data)


def _ask(machine: Machine, env: EnvSpec, request: dict[str, Any]) -> Measured:
    ticket = secrets.token_hex(16)
    request = {"tier": _tier(), **request}
    text = json.dumps({"env": encode(env), "ticket": ticket, "engine": os.getpid(), **request}).encode()
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C"}
    if "run_folder" in request:
        variables["OVERNIGHT_RUN"] = f"{request['run_folder']}/run.json"  # by this, what is left of it is found
    variables |= {"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = machine.run_process(
            (sys.executable, "-I", "-m", "overnight.evaluate.referee"),
            env=variables,
            stdin=text,
            limit_seconds=_LIMIT_SECONDS,
        )
    except (OSError, TimeoutError) as error:
        raise RefereeFailed("referee", f"it could not be asked: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RefereeFailed(
            "referee", f"it ended with status {done.returncode}: {(said or ['nothing said'])[-1][:300]}"
        )
    return _read(done.stdout, len(request["seeds"]), ticket)._replace(tier=request["tier"])


def _tier() -> Tier:
    try:
        return strongest()
    except OSError as error:
        raise RefereeFailed("referee", f"nothing can be measured here: {error}") from error


def _read(text: bytes, wanted: int, ticket: str) -> Measured:
    """The result, from whoever holds the ticket that only the referee was given; anything else is none."""
    try:
        result = strict_json.parse(text.strip(), where="referee", max_bytes=50_000_000)
    except OvernightError as error:
        raise RefereeFailed("referee", f"its result cannot be read: {error}"[:300]) from error
    if not isinstance(result, dict) or result.get("ticket") != ticket:
        raise RefereeFailed("referee", "its result does not carry the ticket of the question")
    if "failed" in result:
        failed = RefereeFailed("referee", str(result["failed"])[:300])
        failed.is_machines_fault = result.get("is_machines_fault") is True
        raise failed
    if "error" in result:
        return Measured((), sentence(str(result["error"])))
    found = tuple((int(seed), float(total), int(steps)) for seed, total, steps in result["episodes"])
    if len(found) != wanted:
        raise RefereeFailed("referee", f"it returned {len(found)} episodes, and {wanted} were asked for")
    said = (result.get("repeated", 0), result.get("different", 0), result.get("differs", ""))
    return Measured(
        found,
        "",
        repeated=int(said[0]),
        different=int(said[1]),
        differs=str(said[2]),
        actions=_actions(result.get("actions")),
    )


def _actions(told: object) -> Actions | None:
    if not isinstance(told, dict):
        return None
    shares = told.get("shares", ())
    return Actions(
        int(told.get("steps", 0)),
        tuple(float(one) for one in shares),
        float(told.get("mean", 0.0)),
        float(told.get("spread", 0.0)),
    )
