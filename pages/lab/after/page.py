"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down."""

from functools import partial

from engine.data.tasks.carries import column_steps, long_addition
from engine.data.tasks.parity import parity, running_parity
from engine.experiments.thinking_aloud import PROBLEMS
from engine.measure.circuits import examples_in_prompt, in_context
from engine.measure.tasks import attempts
from engine.training.post_training.finetune import adapters, fine_tune
from engine.training.post_training.new_fact import teach
from engine.training.post_training.reward import draw_answers
from pages.lab.after import (
    reward,
    words_aloud,
    words_attempts,
    words_context,
    words_few_shot,
    words_finetune,
)
from pages.lab.after.aloud import draw_aloud
from pages.lab.after.attempts import draw_attempts
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
ALOUD = {
    "parity": Part(
        "Parity",
        partial(draw_aloud, PROBLEMS["parity"], "Chain of thought", "parity"),
        words_aloud.PARITY,
        (running_parity, parity),
        words_aloud.QUESTION,
    ),
    "addition": Part(
        "Addition",
        partial(draw_aloud, PROBLEMS["addition"], "Long addition", "sum"),
        words_aloud.ADDITION,
        (column_steps, long_addition),
        words_aloud.QUESTION,
    ),
    "attempts": Part(
        "Best of n",
        draw_attempts,
        words_attempts.ATTEMPTS,
        (attempts.pass_at, attempts.majority_at, draw_answers),
        words_attempts.QUESTION,
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
            view_of_parts(
                "aloud",
                "Chain of thought",
                "aloud_mode",
                ALOUD,
                label=words_aloud.COMPUTE,
                hint=words_aloud.COMPUTE_HINT,
                line=(3, 6),
            ),
        ),
    )
)
