"""One of the other trainers, chosen by a parameter: `python -m overnight.rl.trainers.any`.

So the algorithm is searched like any other setting. Parameters that the chosen trainer does not declare are ignored;
`any.space.json` says for each parameter which algorithms read it.
"""

import sys
from dataclasses import fields, replace
from importlib import import_module

from overnight.guest.train import Training
from overnight.rl.command import begin

ALGORITHMS = ("ppo", "sac", "dqn")
TRAINING = begin(__file__) if __name__ == "__main__" else None


def train(training: Training) -> None:
    """Let the chosen trainer train, with those parameters that it declares."""
    given = dict(training.order.params)
    algorithm = given.pop("algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        sys.exit(f"params: `algorithm` is {algorithm!r}, but one of {', '.join(ALGORITHMS)} is needed")
    chosen = import_module(f"overnight.rl.trainers.{algorithm}")
    declared = {field.name for field in fields(chosen.Parameters)}
    params = {name: value for name, value in given.items() if name in declared}
    training.order = replace(training.order, params=params)
    chosen.train(training)


if TRAINING is not None:
    from overnight.rl.course import run

    run(train, TRAINING)
