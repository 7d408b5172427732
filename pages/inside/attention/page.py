"""Attention: who looks at whom, and what for."""

from engine.experiments.no_causal_mask import learn
from engine.measure.attention import scaling, single_head
from engine.measure.attention.ablation import compare, edits_for, without_mask
from engine.measure.tasks.ladder import self_term
from engine.parts.attention import Attention
from pages.inside.attention import gqa, heads, words, words_mask, words_scores, words_switches
from pages.inside.attention.mask import draw_mask
from pages.inside.attention.scaling import draw_scaling
from pages.inside.attention.self_term import draw_self
from pages.inside.attention.steps import draw_steps
from pages.inside.attention.switches import draw_switches
from ui.fit_text import ENGLISH
from ui.model_needs import CAUSAL, HEADS, QUERIES_KEYS, SAYS
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

STEPS = (Attention, Attention.forward, single_head.head_stages)
SCORES = {
    "scaling": Part(
        "√d_k",
        draw_scaling,
        words_scores.SCALING,
        (scaling.sample_query, scaling.scaling, scaling.jacobian_norm, scaling.mean_slope),
        words_scores.SCALING_QUESTION,
    ),
    "self": Part("Q and K", draw_self, words_scores.SELF, (self_term,), words_scores.SELF_QUESTION),
}


show(
    Page(
        "Attention",
        "attention_view",
        (
            heads.VIEW,
            View(
                "steps",
                "Step by step",
                draw_steps,
                words.STEPS,
                STEPS,
                question=words.STEPS_QUESTION,
                takes=(QUERIES_KEYS,),
            ),
            View(
                "switches",
                "Ablation",
                draw_switches,
                words_switches.SWITCHES,
                (edits_for, compare),
                question=words_switches.QUESTION,
                takes=(SAYS, HEADS),
            ),
            View(
                "mask",
                "Mask",
                draw_mask,
                words_mask.MASK,
                (without_mask, learn),
                question=words_mask.QUESTION,
                takes=(SAYS, CAUSAL, HEADS),
            ),
            view_of_parts("scores", "Scores", "attention_scores", SCORES, label=words_scores.PART),
            gqa.VIEW,
        ),
        words=ENGLISH["A story"],
    )
)
