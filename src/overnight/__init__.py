"""Overnight improves reinforcement-learning training while you sleep, and proves it in the morning."""

__version__ = "0.1.0"
