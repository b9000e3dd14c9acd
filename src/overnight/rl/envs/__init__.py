"""Batched environments for training."""
