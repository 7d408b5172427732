"""What a server imports until its first page stands: seconds, and not what only a page further on needs. Times are
for benchmarks/cold_start.py, which a busy machine may not disturb.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# seconds to import, measured 2026-11-23: torch._dynamo 1.2, sympy 0.5, transformers 2; none of them for a first page
HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "transformers", "tiktoken", "sklearn", "scipy", "ray")
OPENING = """
import sys
from streamlit.testing.v1 import AppTest
from ui import server
server._settle()
for place in ("", "pages/start/train/page.py"):
    page = AppTest.from_file("app.py", default_timeout=120)
    page.switch_page(place) if place else None
    page.run()
    assert not page.exception and len(page.main.children) > 1, page
    print(place or "Home", *[name for name in sys.argv[1:] if name in sys.modules])
from ui import session
session.close_manager()
"""


GARBAGE = """
import gc, weakref
from ui import server
class Ring:
    def __init__(self):
        self.itself = self
server._settle()
rings = weakref.WeakSet()
most = 0
for _ in range(100_000):
    rings.add(Ring())
    most = max(most, len(rings))
print(most, gc.get_freeze_count() > 100_000)
"""


def test_a_server_collects_garbage_less_often_and_still_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    most, frozen = done.stdout.split()
    assert 700 < int(most) <= 20_001 and frozen == "True", done.stderr[-3000:]


def test_the_first_pages_of_a_server_import_nothing_that_only_others_need(tmp_path: Path) -> None:
    variables = {"GLASSFORMER_PROFILE": "small", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", OPENING, *HEAVY],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["Home", "pages/start/train/page.py"]
