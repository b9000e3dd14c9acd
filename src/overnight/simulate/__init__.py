"""Replays decision rules on streams of candidates whose truth is known. Deterministic for a seed."""
