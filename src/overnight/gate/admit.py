"""May this candidate run? Asked on the git tree itself, when it is drafted and again right before its launch."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from overnight.gate.case import Admission
from overnight.gate.rules import (
    approvals,
    change_size,
    embedded_data,
    experiment_class,
    file_modes,
    lifecycle,
    novelty,
    one_hypothesis,
    parameters,
    path_names,
    provenance,
    secrets,
    seeds,
    standing_approval,
    stop_rules,
    surface,
    terms,
)
from overnight.records.refusal import Reason

RULES = (
    provenance.refuse,
    lifecycle.refuse,
    terms.refuse,
    path_names.refuse,
    file_modes.refuse,
    surface.refuse,
    change_size.refuse,
    embedded_data.refuse,
    secrets.refuse,
    parameters.refuse,
    seeds.refuse,
    one_hypothesis.refuse,
    novelty.refuse,
    experiment_class.refuse,
    standing_approval.refuse,
    stop_rules.refuse,
)  # read top to bottom; every rule is asked, none is skipped


def admit(case: Admission) -> tuple[Reason, ...]:
    """Every reason why the candidate may not run; an empty answer means it may."""
    asked = [reason for rule in RULES for reason in rule(case)]
    return (*approvals.refuse(case.opening), *asked)


@cache
def rules_digest() -> str:
    """Digest of the gate's own source, so that a yes is bound to the rules that gave it."""
    found = sha256()
    for folder in (files("overnight.gate"), files("overnight.gate").joinpath("rules")):
        for file in sorted(folder.iterdir(), key=lambda one: one.name):
            if file.name.endswith(".py"):
                found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()
