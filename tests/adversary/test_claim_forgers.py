"""Somebody with the user's own rights forges a claim, chain and anchor included. Each forgery fails its check."""

import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from overnight.cli.main import main
from overnight.evaluate.seeds import keys_folder
from overnight.machine import RealMachine
from overnight.records.strict_json import canonical
from overnight.study import anchor
from overnight.study.anchor import GENESIS, Anchor
from scenes import Said, Scene, scene_in

Entry = dict[str, Any]


def overnight(*words: str) -> Said:
    """Call a verb in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words])
    return Said(code, out.getvalue(), err.getvalue())


@pytest.fixture
def claim(_params_night: Path, tmp_path: Path) -> Scene:
    """A copy of a study in which c-0001 is certified; c-0002 is the baseline."""
    shutil.copytree(_params_night.parent / "keys", keys_folder(), dirs_exist_ok=True)
    return scene_in(shutil.copytree(_params_night, tmp_path / "walker", symlinks=True))


def forge(scene: Scene, change: Callable[[list[Entry]], list[Entry] | None]) -> None:
    """Change entries, and write the whole chain and its anchor anew, as sound as they were."""
    entries = [json.loads(line)["e"] for line in scene.at.ledger.read_text().splitlines()]
    entries = change(entries) or entries
    head, lines = GENESIS, []
    for seq, entry in enumerate(entries):
        body = canonical({**entry, "seq": seq})
        head = sha256(head.encode() + b"\n" + body).hexdigest()
        lines.append(b'{"h":"' + head.encode() + b'","e":' + body + b"}\n")
    scene.at.ledger.write_bytes(b"".join(lines))
    machine = RealMachine()
    anchor.create(machine, str(scene.at.head))
    with scene.at.head.open("r+b") as file:
        anchor.put(machine, file.fileno(), Anchor(2, len(entries), head, entries[-1]["epoch"]))
    scene.at.state.unlink(missing_ok=True)


def audited(scene: Scene, *words: str) -> tuple[Said, dict[str, dict[str, Any]]]:
    said = overnight("audit", *words, "--json", "--dir", str(scene.project))
    assert said.stdout, said.stderr
    return said, {one["name"]: one for one in json.loads(said.stdout)["checks"]}


def failed(scene: Scene, name: str) -> str:
    """The reason of the one check that must fail."""
    said, checks = audited(scene)
    assert said.code == 3
    assert not checks[name]["passed"], checks
    return str(checks[name]["because"])


def caught(scene: Scene, name: str) -> str:
    """The reason of the check that must fail, or of the ledger, whose entries no longer follow from one another."""
    said, checks = audited(scene)
    assert said.code == 3
    found = checks["ledger"] if list(checks) == ["ledger"] else checks[name]
    assert not found["passed"], checks
    return str(found["because"])


def of(entries: list[Entry], kind: str) -> list[Entry]:
    return [entry["data"] for entry in entries if entry["kind"] == kind]


def confirmed(entries: list[Entry], candidate: str = "c-0001") -> list[Entry]:
    """The launches of a candidate on fresh seeds."""
    return [one for one in of(entries, "launched") if (one["candidate"], one["phase"]) == (candidate, "confirm")]


def measured(entries: list[Entry], run: str) -> Entry:
    return next(one for one in of(entries, "measured") if one["run"] == run)


def put_episodes(scene: Scene, evidence: Entry, change: Callable[[list[list[float]]], object]) -> None:
    """Store other episodes under their own true digest, and let the evidence name them."""
    found = json.loads((scene.at.objects / evidence["artefact"]).read_bytes())
    change(found["episodes"])
    data = canonical(found)
    evidence["artefact"] = sha256(data).hexdigest()
    (scene.at.objects / evidence["artefact"]).write_bytes(data)


def test_an_honest_claim_stands_and_an_audit_writes_nothing(claim: Scene) -> None:
    before = claim.at.ledger.read_bytes()
    said = overnight("audit", "--dir", str(claim.project))
    assert said.code == 0, said.stdout + said.stderr
    assert said.stdout.count("PASS") == 14 and "FAIL" not in said.stdout
    assert "The claim of c-0001 stands: 14 of 14 checks passed." in said.stdout
    assert claim.at.ledger.read_bytes() == before


def test_a_forged_chain_that_changes_nothing_still_stands(claim: Scene) -> None:
    forge(claim, lambda entries: None)
    assert audited(claim, "c-0001")[0].code == 0


def test_an_edited_ledger_without_a_new_chain_fails_at_once(claim: Scene) -> None:
    text = claim.at.ledger.read_text()
    claim.at.ledger.write_text(text.replace('"verdict":"certified"', '"verdict":"certifIed"'))
    claim.at.state.unlink(missing_ok=True)
    said, checks = audited(claim)
    assert said.code == 3 and list(checks) == ["ledger"] and not checks["ledger"]["passed"]


def test_a_run_that_the_gate_never_let_in_has_no_provenance(claim: Scene) -> None:
    """The tree that ran was put into the record of the draft and of the launch, but no gate saw it."""

    def change(entries: list[Entry]) -> None:
        for one in of(entries, "drafted"):
            if one["id"] == "c-0001":
                one["tree"] = "f" * 40
        for one in of(entries, "launched") + of(entries, "measured"):
            if one["candidate"] == "c-0001":
                one["tree"] = "f" * 40

    forge(claim, change)
    said, checks = audited(claim)
    assert said.code == 3 and not all(one["passed"] for one in checks.values())


def test_another_tree_in_the_store_is_found(claim: Scene) -> None:
    ref, other = claim.at.ref("candidates", "c-0001"), claim.state().candidates["c-0002"].commit
    claim.git("update-ref", ref, other)
    assert "another tree under c-0001" in failed(claim, "trees")


def test_edited_episodes_no_longer_have_their_digest(claim: Scene) -> None:
    run = confirmed([json.loads(line)["e"] for line in claim.at.ledger.read_text().splitlines()])[0]["id"]
    evidence = next(one for one in claim.entries("measured") if one["run"] == run)
    path = claim.at.objects / evidence["artefact"]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))
    assert run in failed(claim, "digests")


def test_a_missing_artefact_is_no_evidence(claim: Scene) -> None:
    for path in claim.at.objects.iterdir():
        path.unlink()
    assert "missing" in failed(claim, "digests")
    assert "certify no gain" in failed(claim, "interval")


def test_arms_measured_under_different_keys_are_not_compared(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        runs = {one["id"] for one in confirmed(entries)}
        for one in of(entries, "launched"):
            one["comparability"] = "0" * 64 if one["id"] in runs else one["comparability"]
        for one in of(entries, "measured"):
            one["comparability"] = "0" * 64 if one["run"] in runs else one["comparability"]

    forge(claim, change)
    says = caught(claim, "comparability")
    assert "different comparability keys" in says or "unlawful" in says


@pytest.mark.feature("R65")
def test_a_longer_training_than_the_contract_has_is_found(claim: Scene) -> None:
    claim.rewrite(lambda terms: terms["budget"].update(stop_amount=4000))
    assert "another budget" in failed(claim, "comparability")


def test_a_metric_that_was_switched_after_the_first_run_is_found(claim: Scene) -> None:
    claim.rewrite(lambda terms: terms["metric"].update(least_gain=0.001))
    assert "changed after the first run" in failed(claim, "metric")


def test_scores_that_are_not_the_mean_of_their_episodes_are_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        measured(entries, confirmed(entries)[0]["id"])["score"] += 10.0

    forge(claim, change)
    assert "but the mean of its stored episodes is" in failed(claim, "metric")


def test_a_train_seed_that_was_used_before_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        used = next(one["train_seed"] for one in of(entries, "launched") if one["phase"] == "screen")
        for one in of(entries, "launched"):
            if one["phase"] == "confirm" and one["number"] == 0 and one["round"] == 1:
                one["train_seed"] = used

    forge(claim, change)
    assert "used before" in failed(claim, "fresh seeds")


@pytest.mark.feature("R65")
def test_a_chosen_seed_does_not_follow_from_the_key(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        for one in of(entries, "launched"):
            if one["phase"] == "confirm" and one["number"] == 1:
                one["train_seed"] = 42

    forge(claim, change)
    assert "trained on seed 42, but the committed key gives" in failed(claim, "revealed seeds")


def test_without_the_key_nobody_can_show_that_seeds_were_not_chosen(claim: Scene) -> None:
    for path in keys_folder().iterdir():
        path.rename(path.with_suffix(".hidden"))
    try:
        assert "cannot be derived" in failed(claim, "revealed seeds")
    finally:
        for path in keys_folder().iterdir():
            path.rename(path.with_suffix(".key"))


def test_chosen_episode_seeds_do_not_follow_from_the_key(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        def reseed(episodes: list[list[float]]) -> None:
            for number, one in enumerate(episodes):
                one[0] = number

        put_episodes(claim, measured(entries, confirmed(entries)[0]["id"]), reseed)

    forge(claim, change)
    assert "episode seeds that do not follow" in failed(claim, "revealed seeds")


def test_a_failing_seed_that_was_left_out_of_the_claim_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        decision = next(one for one in of(entries, "decided") if one["verdict"] == "certified")
        dropped = confirmed(entries)[-1]["id"]
        decision["evidence"] = [one for one in decision["evidence"] if one != dropped]

    forge(claim, change)
    says = caught(claim, "no seed dropped")
    assert "was left out; it scored" in says or "unlawful" in says


def test_a_failing_seed_whose_whole_run_was_cut_out_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> list[Entry]:
        last = of(entries, "launched")[-1]["id"]
        decision = next(one for one in of(entries, "decided") if one["verdict"] == "certified")
        decision["evidence"] = [one for one in decision["evidence"] if one != last]
        return [one for one in entries if last not in (one["data"].get("run"), one["data"].get("id"))]

    forge(claim, change)
    says = caught(claim, "no seed dropped")
    assert "a failing seed may have been left out" in says or "unlawful" in says


def test_impossible_returns_are_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        evidence = measured(entries, confirmed(entries)[0]["id"])
        put_episodes(claim, evidence, lambda episodes: [one.__setitem__(1, 1e6) for one in episodes])
        evidence["score"] = 1e6

    forge(claim, change)
    claim.rewrite(lambda terms: terms["metric"].update(lowest=0.0, highest=500.0))
    assert "but the contract says" in failed(claim, "range")


def test_looks_that_nobody_had_written_down_before_the_first_run_are_found(claim: Scene) -> None:
    forge(claim, lambda entries: [one for one in entries if one["kind"] != "scheduled"])
    assert "No schedule of looks was written down" in failed(claim, "look schedule")


def test_looks_that_were_written_down_after_the_scores_are_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> list[Entry]:
        late = [one for one in entries if one["kind"] == "scheduled"]
        others = [one for one in entries if one["kind"] != "scheduled"]
        at = next(place for place, one in enumerate(others) if one["data"].get("verdict") == "certified")
        return [*others[:at], *late, *others[at:]]

    forge(claim, change)
    assert "fixed once, before its first run" in caught(claim, "look schedule")


def test_looks_of_a_schedule_that_the_frozen_plan_does_not_have_are_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        of(entries, "scheduled")[0].update(looks=[2, 4], shares=[0.5, 0.5])

    forge(claim, change)
    assert "the frozen plan looks elsewhere" in caught(claim, "look schedule")


def test_a_last_look_that_was_stretched_by_runs_that_nobody_had_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        of(entries, "scheduled")[0].update(runs_left=1e6)

    forge(claim, change)
    assert "stretched by 1e+06 runs, but the budget held" in failed(claim, "look schedule")


def test_more_left_over_runs_than_the_contracts_fresh_seeds_allow_do_not_follow_from_the_ledger(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        of(entries, "scheduled")[0].update(runs_left=40.0)

    forge(claim, change)
    assert "4 seeds a side do not follow from what the ledger had before" in failed(claim, "look schedule")


def test_an_attempt_that_gives_itself_more_error_than_is_left_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        of(entries, "scheduled")[0]["error"] = 0.05
        next(one for one in of(entries, "decided") if one["verdict"] == "certified")["error_spent"] = 0.05

    forge(claim, change)
    assert "do not follow from what the ledger had before" in failed(claim, "look schedule")


@pytest.mark.feature("R105")
def test_a_larger_gain_than_the_evidence_gives_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        decision = next(one for one in of(entries, "decided") if one["verdict"] == "certified")
        decision["gain"] *= 2
        decision["gain_high"] *= 3

    forge(claim, change)
    assert "is claimed, but the stored episodes give" in failed(claim, "interval")
    assert "is about a gain of" in failed(claim, "first audit")


def test_forged_episodes_that_fit_their_score_give_another_interval(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        for run in confirmed(entries):
            evidence = measured(entries, run["id"])
            put_episodes(claim, evidence, lambda episodes: [one.__setitem__(1, 9.0) for one in episodes])
            evidence["score"], evidence["guardrails"]["worst_decile_return"] = 9.0, 9.0

    forge(claim, change)
    assert "stored episodes" in failed(claim, "interval")


def test_a_guardrail_that_is_told_better_than_it_was_is_found(claim: Scene) -> None:
    def change(entries: list[Entry]) -> None:
        decision = next(one for one in of(entries, "decided") if one["verdict"] == "certified")
        decision["guardrails"][0]["worse_by"] -= 100.0

    forge(claim, change)
    assert "is told to be worse by" in failed(claim, "guardrails")


def test_a_claim_without_its_first_audit_is_found(claim: Scene) -> None:
    for path in claim.at.audits.iterdir():
        path.unlink()
    assert "is missing" in failed(claim, "first audit")


def test_what_claims_nothing_cannot_be_audited(claim: Scene) -> None:
    said = overnight("audit", "c-0002", "--dir", str(claim.project))
    assert said.code == 2 and "has no certified claim" in said.stderr and "c-0001" in said.stderr
    assert overnight("audit", "nonsense", "--dir", str(claim.project)).code == 2
