"""The smallest agent: any program that edits its copy and says why can propose.

    overnight init CartPole-v1 --agent "python examples/agent.py"

It stands in a plain copy of the tip. `OVERNIGHT_BRIEF` names the brief, `OVERNIGHT_PROPOSAL` the file for its answer.
Replace the middle by whatever has ideas: a script, a model on this machine, a call to a service.
"""

import json
import os
from pathlib import Path

params = json.loads(Path("params.json").read_text())
brief = Path(os.environ["OVERNIGHT_BRIEF"]).read_text()

rate = round(params["learning_rate"] * 2, 6)
if f'"learning_rate":{rate}' in brief:  # it was tried before, and would be refused
    rate = round(params["learning_rate"] * 3, 6)

Path("params.json").write_text(json.dumps({**params, "learning_rate": rate}, indent=2) + "\n")
answer = {
    "hypothesis": f"A learning rate of {rate} reaches the same policy in fewer steps.",
    "predicted_effect": "The score at the end of the budget rises.",
    "kind": "hyperparameter",
    "bundle": [],
    "parents": [],
}
Path(os.environ["OVERNIGHT_PROPOSAL"]).write_text(json.dumps(answer))
