"""After pre-training: a model learns a fact, learns from its prompt, and writes its steps down."""

from engine.training.post_training.finetune import adapters, fine_tune
from engine.training.post_training.new_fact import teach
from pages.lab.after import aloud, reward, words_context, words_finetune
from pages.lab.after.aloud import draw_aloud
from pages.lab.after.context import draw_context, read_as, sources
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
                reward.read_as,
                reward.sources,
                needs_model=False,
                question=reward.question,
                asks=reward.ASKS,
            ),
            View(
                "context",
                "In-context learning",
                draw_context,
                read_as,
                sources,
                needs_model=False,
                question=words_context.CONTEXT_QUESTION,
            ),
            View(
                "aloud",
                "Chain of thought",
                draw_aloud,
                aloud.read_as,
                aloud.sources,
                needs_model=False,
                question=aloud.question,
                asks=aloud.ASKS,
            ),
        ),
    )
)
