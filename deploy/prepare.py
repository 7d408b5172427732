"""Compiles the modules, while one may still write beside the code. After it the checkout may be read-only."""

from __future__ import annotations

import compileall
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

for name in ("engine", "studies", "runs", "ui", "pages"):
    compileall.compile_dir(ROOT / name, quiet=2)
