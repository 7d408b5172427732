"""Formulas of parts, in LaTeX and in plain signs."""

from __future__ import annotations

Formula = tuple[str, str]  # LaTeX, and the same in plain signs. Rows are tokens: a weight W acts as x Wᵀ
