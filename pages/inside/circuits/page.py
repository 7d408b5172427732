"""Circuits: famous experiments, each one click from its result."""

from pages.inside.circuits import fact_recall, induction, patching, prompts, quantisation, sinks, steering
from ui.models import REAL_MODEL
from ui.page_frame import Page, show

PAGE = Page(
    "Circuits",
    "circuits_view",
    (
        patching.VIEW,
        induction.VIEW,
        sinks.VIEW,
        fact_recall.VIEW,
        steering.VIEW,
        quantisation.VIEW,
    ),
    text=prompts.PARIS_AND_ROME,
    model=REAL_MODEL,
)

if __name__ == "__main__":
    show(PAGE)
