"""What the fixed evaluator asks of a candidate."""

from candidate.env import create_env
from candidate.policy import create_policy

__all__ = ["create_env", "create_policy"]
