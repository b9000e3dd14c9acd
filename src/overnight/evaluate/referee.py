"""The referee: `python -m overnight.evaluate.referee`, a request on stdin, a result on stdout, both JSON.

A process of its own for each measurement, which dies with the engine that asked. It imports nothing
of the candidate: a policy of declared weights is evaluated here in NumPy, and a policy of code
answers from another process.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np

from overnight.errors import OvernightError, UserError
from overnight.evaluate import architectures, episodes
from overnight.evaluate.behaviour import Tally
from overnight.evaluate.episodes import Episode, Policy, PolicyError
from overnight.evaluate.policy_process import Folders, PolicyProcess
from overnight.records.codec import decode
from overnight.records.env import EnvSpec
from overnight.sandbox.processes import die_with_parent, hide_memory, inherit_orphans


class NotStarted(OvernightError):
    """The policy's process could not be started as it must be held: the machine's fault, whatever the policy is."""


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Play the episodes that are asked for, and return each one's result, or the policy's error."""
    spec = decode(EnvSpec, request["env"], where="request")
    seeds: Sequence[int] = request["seeds"]
    lanes = (
        1
        if request.get("record") or request.get("actions")
        else request.get("lanes", min(episodes.MAX_LANES, len(seeds)))
    )
    try:
        with _policy_of(request, spec, lanes) as policy:
            if request.get("record"):
                return _recorded(spec, policy, seeds[0], Path(request["record"]))
            if request.get("actions"):
                return _watched(spec, policy, seeds)
            found = episodes.play(spec, policy, seeds, lanes=lanes)
        different = _differences(request, spec, found, lanes)
    except PolicyError as error:
        return {"error": str(error)}
    except UserError as error:
        return {"error": f"The policy cannot be used: {error.what}."}
    return {"episodes": [list(episode) for episode in found], **different}


def _watched(spec: EnvSpec, policy: Policy, seeds: Sequence[int]) -> dict[str, Any]:
    """Play one episode after the other, and count what the policy does."""
    tally = Tally(policy)
    found = episodes.play(spec, tally, seeds, lanes=1)
    return {"episodes": [list(episode) for episode in found], "actions": tally.told()}


def _differences(request: dict[str, Any], spec: EnvSpec, found: list[Episode], lanes: int) -> dict[str, Any]:
    """The spot check: some episodes that nobody knows beforehand, played again by the policy started anew.

    Where one differs, a policy that only repeats a list of actions tells whether it was the environment.
    """
    wanted = min(int(request.get("repeat", 0)), lanes, len(found))
    if wanted == 0:
        return {}
    chosen = sorted(SystemRandom().sample(range(min(lanes, len(found))), wanted))
    seeds = {lane: found[lane].seed for lane in chosen}
    with _policy_of(request, spec, lanes) as policy:
        again = episodes.repeat(spec, policy, seeds, lanes=lanes)
    different = [lane for lane, one in zip(chosen, again, strict=True) if one != found[lane]]
    by = "" if not different else "policy" if _repeats(request, spec, found[different[0]].seed) else "environment"
    return {"repeated": wanted, "different": len(different), "differs": by}


def _repeats(request: dict[str, Any], spec: EnvSpec, seed: int) -> bool:
    """Whether the environment itself does the same twice, with the same seed and the same actions."""
    twice = []
    for _ in range(2):
        with _policy_of({**request, "reference": "random"}, spec, 1) as policy:
            twice.append(episodes.play(spec, policy, [seed], lanes=1))
    return twice[0] == twice[1]


@contextmanager
def _policy_of(request: dict[str, Any], spec: EnvSpec, lanes: int) -> Iterator[Policy]:
    """The policy that is asked about, whose process is ended afterwards."""
    policy = _policy(request, spec, lanes)
    try:
        yield policy
    finally:
        if isinstance(policy, PolicyProcess):
            policy.close()


def _policy(request: dict[str, Any], spec: EnvSpec, lanes: int) -> Policy:
    reference = request.get("reference")
    environment = episodes.make(spec)
    try:
        if reference is not None:
            return _reference(reference, environment, lanes, request["seeds"][0])
        folder = Path(request["policy"])
        if architectures.kind_of(folder) == "code":
            try:
                return PolicyProcess(Folders(Path(request["run_folder"]), folder), environment, lanes, request["tier"])
            except OSError as error:
                raise NotStarted("referee", f"the policy could not be started at {request['tier']}: {error}") from error
        return architectures.load(folder)
    finally:
        environment.close()


def _reference(name: str, environment: Any, lanes: int, seed: int) -> Policy:  # noqa: ANN401 - Gymnasium's type
    """The policies that every score is seen against: random actions, and doing nothing."""
    space = environment.action_space
    space.seed(seed % 2**31)
    if name == "random":
        return lambda _observations, _reset: np.array([space.sample() for _ in range(lanes)])
    if hasattr(space, "n"):
        return lambda _observations, _reset: np.full(lanes, int(space.start))
    return lambda _observations, _reset: np.zeros((lanes, *space.shape), space.dtype)


def _recorded(spec: EnvSpec, policy: Policy, seed: int, target: Path) -> dict[str, Any]:
    episode, frames = episodes.record(spec, policy, seed)
    np.save(target, np.stack(frames), allow_pickle=False)
    return {"episodes": [list(episode)], "frames": len(frames)}


def main() -> int:
    """Read one request, write one result."""
    request = json.loads(sys.stdin.buffer.read())
    die_with_parent(request["engine"])
    hide_memory()
    inherit_orphans()
    try:
        result = measure(request)
    except OvernightError as error:
        result = {"failed": str(error), "is_machines_fault": isinstance(error, NotStarted)}
    sys.stdout.write(json.dumps({"ticket": request.get("ticket"), **result}, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
