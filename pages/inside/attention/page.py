"""Attention: who looks at whom, and what for."""

from engine.experiments.no_causal_mask import learn
from engine.measure.attention import (
    copying_heads,
    heads,
    scaling,
    single_head,
)
from engine.measure.attention.ablation import compare, edits_for, without_mask
from engine.measure.attention.shared_keys import shared_keys
from engine.measure.circuits import induction
from engine.measure.tasks.ladder import self_term
from engine.parts.attention import Attention
from pages.inside.attention import words, words_mask, words_scores, words_switches
from pages.inside.attention.heads import draw_heads
from pages.inside.attention.mask import draw_mask
from pages.inside.attention.numbers import draw_numbers
from pages.inside.attention.scaling import draw_scaling
from pages.inside.attention.self_term import draw_self
from pages.inside.attention.shared_keys import draw_shared_keys
from pages.inside.attention.steps import draw_steps
from pages.inside.attention.switches import draw_switches
from ui.fit_text import ENGLISH
from ui.model_needs import QUERIES_KEYS, SAYS
from ui.page_frame import Page, View, show

HEADS = words.with_heads((Attention, Attention.forward, heads.head_numbers), ())
STEPS = (Attention, Attention.forward, single_head.head_stages)
SWITCHES = words.with_heads((edits_for, compare), ())
MASK = words.with_heads((without_mask, learn), ())
NUMBERS = words.with_heads(
    (
        heads.head_numbers,
        induction.induction_score,
        induction.duplicate_score,
        induction.repeated,
        copying_heads.name_mover_scores,
        heads.sink,
    ),
    (),
)

show(
    Page(
        "Attention",
        "attention_view",
        (
            View("heads", "Heads", draw_heads, words.heads, HEADS, question=words.HEADS_QUESTION),
            View(
                "steps",
                "Steps",
                draw_steps,
                words.STEPS,
                STEPS,
                question=words.STEPS_QUESTION,
                takes=(QUERIES_KEYS,),
            ),
            View(
                "switches",
                "Switch off",
                draw_switches,
                words_switches.SWITCHES,
                SWITCHES,
                question=words_switches.QUESTION,
                takes=(SAYS,),
            ),
            View(
                "mask",
                "Mask",
                draw_mask,
                words_mask.MASK,
                MASK,
                question=words_mask.QUESTION,
                takes=(SAYS,),
            ),
            View("numbers", "Numbers", draw_numbers, words.NUMBERS, NUMBERS, question=words.NUMBERS_QUESTION),
            View(
                "scaling",
                "√d_k",
                draw_scaling,
                words_scores.SCALING,
                (scaling.sample_query, scaling.scaling, scaling.jacobian_norm, scaling.mean_slope),
                needs_model=False,
                question=words_scores.SCALING_QUESTION,
            ),
            View(
                "self",
                "Q, K",
                draw_self,
                words_scores.SELF,
                (self_term,),
                needs_model=False,
                question=words_scores.SELF_QUESTION,
            ),
            View(
                "shared-keys",
                "Sharing",
                draw_shared_keys,
                words.SHARED_KEYS,
                (Attention.scores, Attention.weighted_sum, shared_keys),
                question=words.SHARED_KEYS_QUESTION,
            ),
        ),
        words=ENGLISH["A story"],
    )
)
