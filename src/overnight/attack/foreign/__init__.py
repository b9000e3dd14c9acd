"""The same attacks against somebody's own evaluator, in a throw-away copy."""
