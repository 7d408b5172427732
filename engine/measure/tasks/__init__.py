"""Synthetic tasks and the ladder: scores, rules, baselines."""
