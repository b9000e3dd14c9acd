"""Attacks: small hostile candidates that must not raise a score, harm the host or leave anything behind."""
