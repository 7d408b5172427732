"""What has to be written beside the code, while one still may: what browsers fetch, and the compiled modules.
After it the checkout may be read-only.
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ui.players import served  # noqa: E402

if problem := served.ensure_static():
    sys.exit(problem)
for name in ("engine", "ui", "pages"):
    compileall.compile_dir(ROOT / name, quiet=2)
