"""Heads: what they attend to, and what they do."""
