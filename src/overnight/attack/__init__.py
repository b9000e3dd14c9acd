"""Attacks on evaluators: a gallery of our own, run against every tier by the engine's real parts."""
