"""Studies of a model: what is measured, compared, counted and practised, by topic.

No screen: pure functions of a model, tokens and a seed, which return NumPy arrays and small frozen
dataclasses.
"""
