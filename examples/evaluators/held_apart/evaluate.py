"""An evaluator that resists: the policy runs in a process that the kernel holds, and only its actions come over.

The environment, the seeds, the reward and the sum are here. The seeds are new for every measurement. The policy's
process can read its own folder and the installed packages, writes nowhere, and has no network; what it answers is
checked before it is used, and a policy that answers wrongly has no score.

The holding is done by the parts of Overnight that hold its own candidates.
"""

import json
import os
import secrets
import select
import sys
from pathlib import Path

import gymnasium

from overnight.sandbox.bounds import bounds_for
from overnight.sandbox.start import Child, start

HERE = Path(__file__).parent
EPISODES = 40
SECONDS = 5.0
HARNESS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from policy import act
for line in sys.stdin.buffer:
    sys.__stdout__.write(json.dumps(act(json.loads(line))) + "\\n")
    sys.__stdout__.flush()
"""


class HeldPolicy:
    """A policy behind two pipes."""

    def __init__(self, folder):
        (asked, self.ask), (self.answer, answered) = os.pipe(), os.pipe()
        program = f"import os; os.dup2({asked}, 0); os.dup2({answered}, 1)\n" + HARNESS
        child = Child(
            command=(sys.executable, "-I", "-B", "-c", program, str(folder)),
            cwd="/",
            env={"PATH": os.defpath, "HOME": "/nonexistent", "OMP_NUM_THREADS": "1"},
            pass_fds=(asked, answered),
        )
        self.process = start(child, bounds_for((str(folder),)), "T2")
        os.close(asked)
        os.close(answered)
        self.buffer = b""

    def act(self, obs):
        """Ask for one action: exactly one line that says 0 or 1, in time."""
        if self.buffer or select.select([self.answer], [], [], 0)[0]:
            raise ValueError("the policy answered before it was asked")
        os.write(self.ask, json.dumps([float(x) for x in obs]).encode() + b"\n")
        while b"\n" not in self.buffer:
            if not select.select([self.answer], [], [], SECONDS)[0] or not (data := os.read(self.answer, 64)):
                raise ValueError("the policy did not answer")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        if line not in (b"0", b"1") or self.buffer:
            raise ValueError("the policy answered something else than an action")
        return int(line)

    def close(self):
        """End the policy's process."""
        self.process.kill()
        self.process.wait()


def measure():
    """The mean return over episodes whose seeds nobody knew before."""
    env, total = gymnasium.make("CartPole-v1"), 0.0
    policy = HeldPolicy(HERE / "candidate")
    try:
        for _ in range(EPISODES):
            obs, _ = env.reset(seed=secrets.randbelow(1 << 31))
            done = False
            while not done:
                obs, reward, terminated, truncated, _ = env.step(policy.act(obs))
                total += float(reward)
                done = terminated or truncated
    finally:
        policy.close()
    return total / EPISODES


if __name__ == "__main__":
    print(f"score: {measure():.3f}")
