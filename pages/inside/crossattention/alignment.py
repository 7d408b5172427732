"""The view "Alignment": what each written symbol looked at in the source, step by step, and what happens when
the memory is cut, the source shuffled, the masks swapped.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tasks.paired import PAIR_TASKS
from engine.errors import GlassformerError
from engine.measure.families.cross_attention import at_the_end, differing, looked, sharpest
from engine.measure.families.written_target import Change, WrittenTarget
from engine.training.kinds import PAIRS
from engine.training.train_pairs import spread
from engine.weights.pretrained.sources import KNOWN
from pages.inside.crossattention import words
from pages.inside.crossattention.figures import alignment_figure, grown_figure
from pages.inside.crossattention.shared import (
    ASKED,
    aligned,
    crossed,
    opened,
    published,
    shipped,
    task_of,
)
from ui import explain, fetching, session, widgets
from ui.models import PRETRAINED, RUN, chosen_run, is_pretrained, runs
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.timeline import scrubbed, timeline_of

TASK = "cross_task"
HEIGHT, LETTERS, GROWN = 420, 160, 260
MOST_STEPS = 13  # of a training whose alignment is drawn
CHANGES: dict[Change, str] = {
    "none": "none",
    "cut": "remove the memory",
    "shuffled": "shuffle the source",
    "swapped": "swap the two masks",
}


def draw_alignment() -> None:
    asked_for = widgets.read_url(TASK)
    there = shipped() | runs(PAIRS, asked_for) | published()
    if not there:
        explain.answer(words.NONE)
        return
    above = st.container(gap=None)  # the scrubber's place is in the line of the question (app.css)
    pictured, controls = st.columns([8, 5], gap="medium")
    with controls:
        own = chosen_run()
        if asked_for.startswith(RUN) and asked_for not in there:
            st.caption(words.NOT_YET)
        elif own is not None and own.spec.kind is not PAIRS and not asked_for.startswith(RUN):
            st.caption(words.not_yours(own.name))
        fetching.take(TASK)
        name = widgets.select("Task", there, TASK, kind="list")
        first, form = _asked(name)
        task = task_of(name) or name  # a task's text goes along to another model of it
        text = st.text_input(
            words.typed(form), first, key=f"cross_text_{task}", max_chars=LETTERS, **widgets.KEPT
        ).strip()
        change = widgets.select("Intervention", CHANGES, "cross_change", kind="list")
    with scrubbed(name, above) as moment:
        _aligned(name, text, change, moment.number, (pictured, controls))


def _aligned(
    name: str, text: str, change: Change, at: int, columns: tuple[DeltaGenerator, DeltaGenerator]
) -> None:
    """The picture, its controls and what is said of it."""
    pictured, controls = columns
    try:
        with controls:
            head = _choose_head(name, at)
        plain = crossed(name, text, "none", 0, at)
        changed = crossed(name, text, change, 0, at)
        formed = aligned(name, at) if name.startswith(RUN) else None
    except GlassformerError as error:
        explain.answer(words.refused(safe(str(error))))
        return
    with controls:
        last = len(changed.written)
        step = widgets.slide("Written so far", 1, last, last, f"cross_step_{task_of(name) or name}")
        _more()
    with pictured:
        _picture(changed, name, text, step, (head, change))
    sentence = _told(name, text, plain, changed, (change, head))
    explain.answer(sentence if formed is None else f"{words.formed(at, ASKED, formed)} {sentence}")
    if formed is not None:
        explain.measure_it(_grown, name)
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _asked(name: str) -> tuple[str, str]:
    """Returns the first source of a model, and what may be typed."""
    if is_pretrained(name):
        return words.ASKED, words.ASKED_FORM
    task = task_of(name)
    assert task is not None
    return words.EXAMPLES[task], PAIR_TASKS[task].form


def _grown(name: str) -> None:
    """By step of a training: where its heads look."""
    timeline = timeline_of(name)
    if timeline is None:
        return
    steps = [timeline.steps[i] for i in spread(len(timeline.steps), MOST_STEPS).tolist()]
    scores = {step: score for step in steps if (score := aligned(name, step)) is not None}
    plot(
        grown_figure(scores, float(timeline.total)),
        key="cross_grown",
        alt=words.grown_alt(list(scores)),
        height=GROWN,
        name="alignment-by-step",
        data={
            "step": list(scores),
            "best_head": [result.best.value for result in scores.values()],
            "together": [result.together for result in scores.values()],
            "chance": [result.chance for result in scores.values()],
        },
    )


def _choose_head(name: str, at: int) -> str:
    config = opened(name, at).model.config.decoder
    heads = {"mean": "all heads (mean)"} | {
        f"{layer}.{head}": f"head {layer}.{head}"
        for layer in range(config.n_layers)
        for head in range(config.n_heads)
    }
    return widgets.select("Head", heads, "cross_head", kind="list")


def _more() -> None:
    """Encoder-decoders that can be fetched, where this server fetches models."""
    absent = [name for name, facts in KNOWN.items() if facts.pair and PRETRAINED + name not in published()]
    if absent and session.profile().max_download:
        with st.popover(words.MORE, icon=":material/add:"):
            fetching.offers(absent, TASK, PRETRAINED)


def _pattern(crossing: WrittenTarget, head: str):  # type: ignore[no-untyped-def]
    cell = None if head == "mean" else tuple(int(part) for part in head.split("."))
    return crossing.pattern(cell)  # type: ignore[arg-type]


def _picture(crossing: WrittenTarget, name: str, text: str, step: int, chosen: tuple[str, Change]) -> None:
    head, change = chosen
    weights = _pattern(crossing, head)
    task = task_of(name)
    right = PAIR_TASKS[task].truth(text) if change == "none" and task is not None else None
    true = right.sources if right is not None and right.target == crossing.text else ()
    plot(
        alignment_figure(weights, crossing.source, crossing.written, step, true),
        key="cross_alignment",
        alt=words.alt(crossing, step),
        height=HEIGHT,
        name="alignment",
        data={"written": list(crossing.written)}
        | {f"{i} {s}": weights[:, i] for i, s in enumerate(crossing.source)},
    )


def _told(
    name: str, text: str, plain: WrittenTarget, crossing: WrittenTarget, chosen: tuple[Change, str]
) -> str:
    change, head = chosen
    if change != "none":
        return words.changed(change, plain.text, crossing.text, differing(plain.written, crossing.written))
    task = task_of(name)
    if task is None:
        return words.unmarked(crossing, sharpest(_pattern(crossing, head)))
    right = PAIR_TASKS[task].truth(text)
    if right is None:
        return words.not_a_source(crossing.text, PAIR_TASKS[task].form)
    pattern = _pattern(crossing, head)
    sentence = words.aligned(crossing.text, right.target, looked(pattern, right, crossing.text))
    nowhere = at_the_end(pattern, crossing.written) if crossing.ended else ()
    return sentence + words.ends(nowhere, len(crossing.written) - 1)
