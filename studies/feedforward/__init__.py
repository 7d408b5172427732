"""Neurons and activation functions."""
