"""Baselines: collect sessions, show what they are worth, accept them as an epoch."""
