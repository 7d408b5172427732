"""Questions that return: which guess has an exercise of its kind, and which is made again at other settings.

A browser notes by itself what was solved, guessed and seen, and when it is due
(ui/assets/shared/progress_store.js); from here it only learns what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from studies.exercises.catalogue import SETS, TASKS
from ui import explain, site, widgets
from ui.players.component import mounted

KEY, WATCH = "progress", "progress_watch"


@dataclass(frozen=True)
class Return:
    """How the question of a guess returns: as the exercise `task`, or else as the same guess at the addresses
    `settings`. `refuted` is the address of another view that refutes a wrong guess, where it is not the view
    on which the guess is made.
    """

    title: str
    task: str = ""
    settings: tuple[str, ...] = ()
    refuted: str = ""


def _at(view: str, *settings: str) -> tuple[str, ...]:
    return tuple(f"{view}&{each}" for each in settings)


_TEXTS = ("text=What+is+the+matter+with+my+lord", "text=The+king+is+dead,+long+live+the+king")
_BUGS = "bugs?bugs_view=cost"
GUESSES: Mapping[str, Return] = {
    "width": Return("Scores without √d_k", "spread"),
    "parts": Return(
        "Mask, scale or positions",
        settings=_at("attention?attention_view=switches", *_TEXTS),
    ),
    "unmasked": Return(
        "A model without its mask",
        settings=_at("attention?attention_view=mask", *_TEXTS),
        refuted=f"{_BUGS}&fault=no_mask",
    ),
    "head": Return(
        "Which head is missed",
        settings=_at("circuits?circuits_view=induction", *(f"induction_seed={seed}" for seed in (1, 2, 3))),
    ),
    "memory": Return(
        "One key, two values",
        settings=_at("attention?attention_view=memory", "memory_pairs=20", "memory_seed=3"),
    ),
    "depth": Return(
        "Without residual connections",
        settings=_at(
            "residual?residual_view=highway",
            "residual_depth=1",
            "residual_pair_norm=none",
            "residual_depth=1&residual_pair_norm=none",
        ),
    ),
    "dropout": Return(
        "Dropout and the held-out loss",
        settings=_at("feedforward?feedforward_view=dropout", "dropout_shown=training&dropout_text=0"),
    ),
    "experts": Return(
        "The busiest experts",
        settings=_at("feedforward?feedforward_view=experts", "experts_layer=1", "experts_layer=2"),
    ),
    "order": Return(
        "Another order of the words",
        settings=_at("positions?positions_view=why", "why_causal=true", "why_order=rotate"),
    ),
    "merge": Return("The next merge", "after"),
    "family": Return(
        "The tokens of an emoji",
        settings=_at("tokens?tokens_view=compare", "compare_show=gpt2"),
    ),
    "nearest": Return(
        "The nearest token", settings=_at("embeddings?embed_view=map", "embed_token=t", "embed_token=A")
    ),
    "nucleus": Return("Tokens within top-p", "top-p"),
    "colder": Return("Half the temperature", "odds"),
    "drafts": Return("Longer drafts", "drafts"),
    "grammar": Return("What a grammar takes", "grammar"),
    "sinks": Return(
        "A cache without the first tokens",
        settings=_at(
            "generation?generation_view=cache&kv_part=smaller",
            "cache_model=shown&cache_bits=4",
            "cache_model=shown&model=shakespeare-modern",
        ),
    ),
    "wider": Return(
        "Twice as wide", "block", refuted="parameters?parameters_view=where&parameters_scope=block"
    ),
    "shared": Return("One key-value head", "size"),
    "longer": Return(
        "Twice the text",
        settings=_at("parameters?parameters_view=flops", "parameters_length=128", "parameters_length=8192"),
    ),
    "windowed": Return(
        "The cache of a text twice as long",
        settings=_at(
            "parameters?parameters_view=where&parameters_scope=since&parameters_measure=cached",
            "parameters_card=gemma3-27b&parameters_length=1024",
            "parameters_card=gpt-oss-20b&parameters_length=128",
        ),
    ),
    "mistake": Return(
        "What a bug does to the loss",
        settings=_at(_BUGS, "fault=transposed_mask", "fault=no_positions", "fault=not_shifted"),
        refuted="bugs?bugs_view=doctor",
    ),
    "nudge": Return(
        "A nudge of a weight",
        settings=_at("shapes?shapes_view=backward&shapes_back=weight", *_TEXTS),
    ),
    "overshoots": Return("A learning rate too large", "step-size"),
    "valley": Return("The best size for a budget", "shared-growth"),
    "falls": Return("A run on its budget's curve", "tokens-of-budget"),
    "rehearsed": Return(
        "Rehearsal",
        settings=_at(
            "after?after_view=finetune&tune_fact=capital", "tune_method=lora-1", "tune_method=lora-16"
        ),
    ),
    "adapter": Return("The size of an adapter", "adapter-size"),
    "hacked": Return("A reward that is hacked", settings=_at("after?after_view=reward", "reward_leash=0.3")),
    "beta": Return("DPO's beta", "margin"),
    "step": Return("The size of a step in context", "step-size"),
    "exchanged": Return(
        "Examples with swapped answers",
        settings=_at("after?after_view=context&context_learner=words", "context_task=capitals"),
    ),
    "dots": Return("Dots for steps", "running-parity"),
    "verified": Return("At least one right", "any-of"),
    "unrun": Return("A call that nobody runs", "column-carries"),
    "placed": Return("Scores of an answer", "answer-scores"),
}


@cache
def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Returns what can return, as the browser needs it: exercises, and guesses."""
    exercises = [
        {"id": task, "title": title, "set": name}
        for name, each in SETS.items()
        for task, (title, _) in each.tasks.items()
    ]
    return {"exercises": exercises, "guesses": [_row(name) for name in GUESSES]}


def _row(name: str) -> dict[str, Any]:
    guess = GUESSES[name]
    about = {"task": guess.task} if guess.task else {"settings": list(guess.settings)}
    return {"id": name, "title": guess.title} | about


def after_wrong(name: str) -> dict[str, Any]:
    """Returns what the browser needs after a wrong guess: the view that refutes it, where that is another
    one, and the question of the same kind.
    """
    guess = GUESSES[name]
    tasks = [each for each in catalogue()["exercises"] if each["id"] == guess.task]
    again = {"again": {"exercises": tasks, "guesses": [_row(name)]}}
    entry = site.entry_of(guess.refuted.partition("?")[0])
    if not guess.refuted or entry is None:
        return again
    return again | {"see": {"title": entry.title, "address": f"./{guess.refuted}"}}


def kin(task: str) -> list[str]:
    """Returns the guesses that return as this exercise."""
    return [name for name, each in GUESSES.items() if each.task == task]


def draw_progress(returns: bool) -> None:
    """Draws what this browser has noted; with `returns`, the questions that are due above it."""
    mounted("progress", styles=("progress",))(
        key=KEY,
        data={
            "catalogue": catalogue() if returns else {"exercises": [], "guesses": []},
            "count": len(TASKS),
            "returns": returns,
        },
    )


def draw_watch() -> None:
    """Has the browser note the view that was drawn, and keep an offer for a minute."""
    view = str(st.session_state.get(explain.VIEW_DRAWN, "")).rpartition("/")[2]
    mounted("progress_watch", styles=("progress_watch",))(
        key=WATCH, data={"view": f"{widgets.page_drawn()}/{view}"}
    )
