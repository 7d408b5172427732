"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down; how it is
marked.
"""

from pages.lab.after import (
    benchmark,
    chain_of_thought,
    distillation,
    fine_tuning,
    in_context_learning,
    reward,
)
from ui.page_frame import Page, show

PAGE = Page(
    "After pre-training",
    "after_view",
    (
        fine_tuning.VIEW,
        reward.VIEW,
        in_context_learning.VIEW,
        chain_of_thought.VIEW,
        distillation.VIEW,
        benchmark.VIEW,
    ),
)

if __name__ == "__main__":
    show(PAGE)
