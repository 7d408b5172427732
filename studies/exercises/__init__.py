"""Exercises with their answers: made from a seed, checked with a hint that names the mistake, printed on a
sheet, and as notebooks. `catalogue.make("one-head", seed=3)` makes one, `exercise.check` judges an answer.
"""
