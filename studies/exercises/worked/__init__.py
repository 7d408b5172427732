"""Worked examples of the views that have arithmetic by hand: each made of numbers that a screen shows."""
