"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down."""

from engine.training.post_training.finetune import adapters, fine_tune
from engine.training.post_training.new_fact import teach
from pages.lab.after import (
    chain_of_thought,
    in_context_learning,
    reward,
    words_finetune,
)
from pages.lab.after.finetune import draw_finetune
from ui.model_needs import CAUSAL, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import Page, View, show

show(
    Page(
        "After pre-training",
        "after_view",
        (
            View(
                "finetune",
                "Fine-tuning",
                draw_finetune,
                words_finetune.FINE_TUNING,
                (adapters, fine_tune, teach),
                brings_text=True,
                question=words_finetune.QUESTION,
                takes=(SAYS, CAUSAL),
                best=(REAL_MODEL,),
            ),
            reward.VIEW,
            in_context_learning.VIEW,
            chain_of_thought.VIEW,
        ),
    )
)
