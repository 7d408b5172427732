"""Synthetic tasks and the ladder: scores, rules, baselines, several answers to a question."""
