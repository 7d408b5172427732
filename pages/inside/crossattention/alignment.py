"""The view "Alignment": what each written symbol looked at in the source, step by step, and what happens when
the memory is cut, the source shuffled, the masks swapped.
"""

from __future__ import annotations

import streamlit as st

from engine.errors import GlassformerError
from engine.measure.crossing import Change, Crossing, differing, looked, sharpest, truth
from engine.pretrained.sources import KNOWN
from engine.tasks.paired import PAIR_TASKS
from pages.inside.crossattention import words
from pages.inside.crossattention.figures import alignment_figure
from pages.inside.crossattention.shared import crossed, opened, published, shipped
from ui import explain, fetching, state, widgets
from ui.models import PRETRAINED, is_pretrained
from ui.players.plot import plot
from ui.text.markdown import safe

TASK = "cross_task"
HEIGHT, LETTERS = 420, 160
CHANGES: dict[Change, str] = {
    "none": "as it is",
    "cut": "cut the memory",
    "shuffled": "shuffle the source",
    "swapped": "swap the two masks",
}


def draw_alignment() -> None:
    there = shipped() | published()
    if not there:
        explain.answer(words.NONE)
        return
    pictured, controls = st.columns([8, 5], gap="medium")
    with controls:
        fetching.take(TASK)
        name = widgets.one_of("Task", there, TASK, kind="list")
        first, form = _asked(name)
        text = st.text_input(
            words.typed(form), first, key=f"cross_text_{name}", max_chars=LETTERS, **widgets.KEPT
        ).strip()
        change = widgets.one_of("What is done to it", CHANGES, "cross_change", kind="list")
    try:
        with controls:
            head = _choose_head(name)
        plain = crossed(name, text, "none", 0)
        found = crossed(name, text, change, 0)
    except GlassformerError as error:
        explain.answer(words.refused(safe(str(error))))
        return
    with controls:
        last = len(found.written)
        step = widgets.slide("Written so far", 1, last, last, f"cross_step_{name}")
        _more()
    with pictured:
        _picture(found, name, text, step, (head, change))
    explain.answer(_told(name, text, plain, found, (change, head)))
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _asked(name: str) -> tuple[str, str]:
    """What a model reads first, and what may be typed."""
    if is_pretrained(name):
        return words.ASKED, words.ASKED_FORM
    return words.EXAMPLES[name], PAIR_TASKS[name].form


def _choose_head(name: str) -> str:
    config = opened(name).model.config.decoder
    heads = {"mean": "all heads, their mean"} | {
        f"{layer}.{head}": f"layer {layer}, head {head}"
        for layer in range(config.n_layers)
        for head in range(config.n_heads)
    }
    return widgets.one_of("Head", heads, "cross_head", kind="list")


def _more() -> None:
    """Encoder-decoders that can be fetched, where this server fetches models."""
    absent = [name for name, facts in KNOWN.items() if facts.pair and PRETRAINED + name not in published()]
    if absent and state.profile().max_download:
        with st.popover(words.MORE, icon=":material/add:"):
            fetching.offers(absent, TASK, PRETRAINED)


def _pattern(found: Crossing, head: str):  # type: ignore[no-untyped-def]
    place = None if head == "mean" else tuple(int(part) for part in head.split("."))
    return found.pattern(place)  # type: ignore[arg-type]


def _picture(found: Crossing, name: str, text: str, step: int, chosen: tuple[str, Change]) -> None:
    head, change = chosen
    weights = _pattern(found, head)
    right = truth(name, text) if change == "none" and not is_pretrained(name) else None
    true = right.sources if right is not None and right.target == found.text else ()
    plot(
        alignment_figure(weights, found.source, found.written, step, true),
        key="cross_alignment",
        alt=words.alt(found, step),
        height=HEIGHT,
        name="alignment",
        data={"written": list(found.written)}
        | {f"{i} {s}": weights[:, i] for i, s in enumerate(found.source)},
    )


def _told(name: str, text: str, plain: Crossing, found: Crossing, chosen: tuple[Change, str]) -> str:
    change, head = chosen
    if change != "none":
        return words.changed(change, plain.text, found.text, differing(plain.written, found.written))
    if is_pretrained(name):
        return words.unmarked(found, sharpest(_pattern(found, head)))
    right = truth(name, text)
    if right is None:
        return words.not_a_source(found.text, PAIR_TASKS[name].form)
    return words.aligned(found.text, right.target, looked(_pattern(found, head), right, found.text))
