"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down."""

from engine.data.tasks.parity import parity, running_parity
from engine.training.finetune import adapters, fine_tune
from engine.training.in_context import AttentionLayer, gradient_step, learn, least_squares
from engine.training.new_fact import teach
from engine.training.reward import advantages, reinforce, rewards
from pages.lab.after import words_aloud, words_context, words_finetune, words_reward
from pages.lab.after.aloud import draw_aloud
from pages.lab.after.context import draw_context
from pages.lab.after.finetune import draw_finetune
from pages.lab.after.reward import draw_reward
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
            View(
                "reward",
                "Reward",
                draw_reward,
                words_reward.REWARD,
                (reinforce, advantages, rewards),
                needs_model=False,
                question=words_reward.REWARD_QUESTION,
            ),
            View(
                "context",
                "In-context learning",
                draw_context,
                words_context.CONTEXT,
                (AttentionLayer, learn, gradient_step, least_squares),
                needs_model=False,
                question=words_context.CONTEXT_QUESTION,
            ),
            View(
                "aloud",
                "Thinking aloud",
                draw_aloud,
                words_aloud.ALOUD_WORDS,
                (running_parity, parity),
                needs_model=False,
                question=words_aloud.ALOUD_QUESTION,
            ),
        ),
    )
)
