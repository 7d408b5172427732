"""Synthetic tasks whose best possible loss is known exactly: problems with answers that can be checked."""
