"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down."""

from engine.measure.circuits import examples_in_prompt, in_context
from engine.training.post_training.finetune import adapters, fine_tune
from engine.training.post_training.new_fact import teach
from pages.lab.after import (
    chain_of_thought,
    reward,
    words_context,
    words_few_shot,
    words_finetune,
)
from pages.lab.after.context import draw_context
from pages.lab.after.few_shot import draw_few_shot
from pages.lab.after.finetune import draw_finetune
from ui.model_needs import CAUSAL, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

CONTEXT = {
    "layer": Part(
        "new layer",
        draw_context,
        words_context.CONTEXT,
        (in_context.AttentionLayer, in_context.learn, in_context.gradient_step, in_context.least_squares),
        words_context.QUESTION,
    ),
    "words": Part(
        "SmolLM2",
        draw_few_shot,
        words_few_shot.FEW_SHOT,
        (examples_in_prompt.measure, examples_in_prompt.order),
        words_context.QUESTION,
    ),
}
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
            view_of_parts(
                "context",
                "In-context learning",
                "context_learner",
                CONTEXT,
                label=words_context.LEARNER,
                hint=words_context.LEARNER_HINT,
            ),
            chain_of_thought.VIEW,
        ),
    )
)
