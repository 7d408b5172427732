"""Tokenizers compared."""
