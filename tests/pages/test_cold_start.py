"""What a server imports until its first page stands: seconds, and not what only a page further on needs. Times are
for benchmarks/cold_start.py, which a busy machine may not disturb.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# seconds to import, measured 2026-11-23: torch._dynamo 1.2, sympy 0.5, transformers 2; none of them for a first page
HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "transformers", "tiktoken", "sklearn", "scipy", "ray")
OPENING = """
import gc, sys, weakref
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

import torch
from engine.config import ModelConfig
from engine.model import build
from engine.training.optim import AdamW
from studies.costs.ledger import shape_trace
from studies.costs.presets import PRESETS
from studies.families.influence_by_distance import layer_influence
from studies.lab.doctor.case import Case
from studies.lab.doctor.forward import shapes_and_names
from studies.lab.doctor.parts_swap import grafted
from studies.shapes.operations import trace
model = build(ModelConfig(vocab_size=65))
trace(model.config, 20)
for preset in PRESETS.values():
    trace(preset.model, preset.model.context)
    shape_trace(preset.model)
shapes_and_names(Case(grafted(model, "no_mask")))
layer_influence("lstm", 8)
weights = AdamW(model.parameters(), 1e-3)
model(torch.zeros(1, 4, dtype=torch.int64)).sum().backward()
weights.step()
print("measured", *[name for name in sys.argv[1:] if name in sys.modules])

class Ring:
    def __init__(self):
        self.itself = self
rings = weakref.WeakSet()
most = 0
for _ in range(100_000):
    rings.add(Ring())
    most = max(most, len(rings))
old = weakref.WeakSet(kept := [Ring() for _ in range(100)])
gc.collect()
del kept
stays = [Ring() for _ in range(20_000 * 6 * 8)]
print(most, gc.get_freeze_count() > 100_000, sys.getswitchinterval(), len(old))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a server's process says: after each page the heavy modules that are there by then, and of its garbage."""
    home = str(tmp_path_factory.mktemp("home"))
    variables = {"GLASSFORMER_PROFILE": "small", "HOME": home, "TMPDIR": home}
    done = subprocess.run(
        [sys.executable, "-c", OPENING, *HEAVY],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-4:]


def test_a_server_collects_garbage_less_often_and_still_does(said: list[str]) -> None:
    most, frozen, _, old = said[3].split()
    assert 700 < int(most) <= 20_001 and frozen == "True"
    assert old == "0", "what had been looked at, and was let go of later"


def test_a_page_waits_a_thousandth_of_a_second_for_a_thread_that_computes(said: list[str]) -> None:
    assert float(said[3].split()[2]) == pytest.approx(0.001)


def test_the_first_pages_of_a_server_import_nothing_that_only_others_need(said: list[str]) -> None:
    assert said[:2] == ["Home", "pages/start/train/page.py"]


def test_shapes_bugs_and_small_trainings_do_without_pytorchs_compiler(said: list[str]) -> None:
    assert said[2] == "measured"
