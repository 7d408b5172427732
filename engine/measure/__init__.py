"""Looking into a model: one forward pass recorded as arrays, and measurements of it.

Pure functions of a model, tokens and a seed. They return NumPy arrays and small frozen dataclasses.
"""
