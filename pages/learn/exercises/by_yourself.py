"""The part "by yourself" of the view "Before and after": both forms in this browser, and what stayed."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator

from studies.inventory.questions import LARGEST_SEED, MINUTES, form
from ui import content, explain, inventory, widgets
from ui.page_frame import View

TEXT = content.beside(__file__)
SEED = "before_seed"


def draw(line: DeltaGenerator) -> None:
    """Draws the test; the seed that chooses its questions stands in a `line`."""
    with line:
        seed = widgets.whole(TEXT["seed"], 1, LARGEST_SEED, 1, SEED, width=130, hint=TEXT["another seed"])
    both = inventory.forms(seed)
    words = {"start": TEXT("start", count=len(both[0]), minutes=MINUTES), "between": TEXT["between"]}
    inventory.draw_test("before_alone", f"alone/{seed}", both, words)
    explain.answer(TEXT("answer", count=len(both[0]), seed=seed))


PART = View("alone", TEXT, draw, code=(form,))
