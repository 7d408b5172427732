"""The view "Alignment": what each written symbol looked at in the source, step by step, and what happens when
the memory is cut, the source shuffled, the masks swapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassformerError, RunError
from engine.parts.blocks import DecoderBlock, PreNormDecoderBlock
from runs.kinds import PAIRS, PAIRS_OF
from studies.families.cross_attention import (
    AlignmentHits,
    AlignmentScore,
    SharpestWeight,
    at_the_end,
    differing,
    hits,
    looked,
    model_alignment,
    sharpest,
)
from studies.families.written_target import Change, WrittenTarget, write_target
from studies.pairs.checkpoints import PairCheckpoint
from studies.pairs.corpora import pair_text
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.train import spread
from studies.weights.pretrained import pairs
from studies.weights.pretrained.pairs import PretrainedPair
from studies.weights.pretrained.sources import KNOWN
from ui import content, explain, families, fetching, memo, session, widgets
from ui.figures import specs as go
from ui.figures.labels import crowded
from ui.figures.patterns import MOST, named_cells, placed, token_axis
from ui.figures.solved import Solved, solved_curves
from ui.figures.theme import SEQUENTIAL, colour
from ui.fit_text import PAIR
from ui.model_choice import chosen_run
from ui.models import PRETRAINED, RUN, is_pretrained, run_of, runs, title_of
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.tokens import show_characters
from ui.timeline import scrubbed, timeline_of
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
TASK = "cross_task"
ASKED = 40  # held-out pairs whose alignment is scored
LONGEST = 48  # tokens that a model of others writes: it may never come to an end
HEIGHT, LETTERS, GROWN = 420, 160, 260
ROWS = 24  # that have room for their names beside each other
COLUMNS = {True: 28, False: 20}  # whose names fit on a phone: of one letter each, or words standing upright
MOST_STEPS = 13  # of a training whose alignment is drawn
CHANGES: tuple[Change, ...] = ("none", "cut", "shuffled", "swapped")


def draw() -> None:
    asked_for = widgets.read_url(TASK)
    there = shipped() | runs(PAIRS, asked_for) | published()
    if not there:
        explain.answer(TEXT["none"])
        return
    above = st.container(gap=None)  # the scrubber's place is in the line of the question (app.css)
    pictured, controls = st.columns([8, 5], gap="medium")
    with controls:
        own = chosen_run()
        if asked_for.startswith(RUN) and asked_for not in there:
            st.caption(TEXT["not yet"])
        elif own is not None and own.spec.kind is not PAIRS and not asked_for.startswith(RUN):
            st.caption(TEXT("not yours", name=own.name))
        fetching.take(TASK)
        name = widgets.select(TEXT["task"], there, TASK, kind="list")
        first, form = _asked(name)
        task = task_of(name) or name  # a task's text goes along to another model of it
        text = st.text_input(
            TEXT("source", form=form), first, key=f"cross_text_{task}", max_chars=LETTERS, **widgets.KEPT
        ).strip()
        changes = {change: TEXT(f"change {change}") for change in CHANGES}
        change = widgets.select(TEXT["intervention"], changes, "cross_change", kind="list")
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
        explain.answer(TEXT("refused", why=str(error)))
        return
    with controls:
        last = len(changed.written)
        step = widgets.slide(TEXT["written"], 1, last, last, f"cross_step_{task_of(name) or name}")
        _more()
    with pictured:
        _picture(changed, name, text, step, (head, change))
    sentence = _told(name, text, plain, changed, (change, head))
    explain.answer(sentence if formed is None else f"{_formed(at, formed)} {sentence}")
    if formed is not None:
        explain.measure_it(_grown, name)
    explain.by_hand(lambda: st.markdown(TEXT["by hand"]))


def _asked(name: str) -> tuple[str, str]:
    """Returns the first source of a model, and what may be typed."""
    if is_pretrained(name):
        return TEXT["example of others"], TEXT["form of others"]
    task = task_of(name)
    assert task is not None
    return TEXT(f"example {task}"), PAIR_TASKS[task].form


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
        alt=TEXT("alt growth", steps=len(scores)),
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
    heads = {"mean": TEXT["mean"]} | {
        f"{layer}.{head}": TEXT("one head", head=f"{layer}.{head}")
        for layer in range(config.n_layers)
        for head in range(config.n_heads)
    }
    return widgets.select(TEXT["head"], heads, "cross_head", kind="list")


def _more() -> None:
    """Encoder-decoders that can be fetched, where this server fetches models."""
    absent = [name for name, facts in KNOWN.items() if facts.pair and PRETRAINED + name not in published()]
    if absent and session.profile().max_download:
        with st.popover(TEXT["more"], icon=":material/add:"):
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
        alt=TEXT("alt weights", step=step, written=len(crossing.written), source=len(crossing.source)),
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
        return changed(change, plain.text, crossing.text, differing(plain.written, crossing.written))
    task = task_of(name)
    if task is None:
        return unmarked(crossing, sharpest(_pattern(crossing, head)))
    right = PAIR_TASKS[task].truth(text)
    if right is None:
        form = content.Filled(PAIR_TASKS[task].form)
        return TEXT("not a source", written=crossing.text, form=form)
    pattern = _pattern(crossing, head)
    sentence = _aligned_well(crossing.text, right.target, looked(pattern, right, crossing.text))
    nowhere = at_the_end(pattern, crossing.written) if crossing.ended else ()
    return f"{sentence} {ends(nowhere, len(crossing.written) - 1)}".strip()


def _aligned_well(written: str, target: str, found: AlignmentHits | None) -> str:
    """Says whether the target is right, and whether attention fell where its symbols come from."""
    if found is None:
        return TEXT("wrong", written=written, target=target)
    return TEXT("right", written=written, hits=found.right, counted=found.counted, chance=found.chance)


def ends(symbols: Sequence[str], written: int) -> str:
    """Returns the symbols for which it looks at no symbol of the source (Markdown)."""
    if not symbols:
        return ""
    named = ", ".join(
        TEXT("named often" if many > 1 else "named", symbol=symbol, many=many)
        for symbol, many in Counter(symbol.strip() or symbol for symbol in symbols).items()
    )
    return TEXT("ends", many=len(symbols), written=written, named=content.Filled(named))


def _formed(step: int, score: AlignmentScore) -> str:
    """Says where attention falls after a step of a training."""
    best = score.best
    return TEXT(
        "formed",
        step=step,
        targets=ASKED,
        together=score.together,
        symbols=score.symbols,
        head=content.Filled(f"{best.layer}.{best.head}"),
        best=best.value,
        chance=score.chance,
    )


def unmarked(crossing: WrittenTarget, look: SharpestWeight | None) -> str:
    """Says what a model that others trained wrote, and where its attention was sharpest (Markdown)."""
    written, tokens = crossing.text, len(crossing.written)
    if look is None:
        return TEXT("no words" if crossing.ended else "no words, cut", written=written, tokens=tokens)
    return TEXT(
        "sharpest" if crossing.ended else "sharpest, cut",
        written=written,
        tokens=tokens,
        here=crossing.written[look.query].strip(),
        there=crossing.source[look.key].strip(),
        weight=look.weight,
    )


def changed(change: Change, before: str, after: str, apart: int) -> str:
    """Says what one of the switches does to the text (Markdown)."""
    if not apart:
        return TEXT(f"same {change}", before=before)
    return TEXT(f"differs {change}", before=before, after=after, apart=apart)


# Which trained encoder-decoders there are, and what one wrote -------------------------------------


def shipped() -> dict[str, str]:
    """Returns task -> title, of those whose model came with the app."""
    return {name: task.title for name, task in PAIR_TASKS.items() if families.is_here(PAIR + name)}


def published() -> dict[str, str]:
    """Returns the encoder-decoders that others trained, name in links -> title, as far as they are on this
    server.
    """
    names = pairs.available() if session.profile().max_pretrained else ()
    return {PRETRAINED + name: title_of(PRETRAINED + name) for name in names}


def task_of(name: str) -> str | None:
    """Returns the task that a model learned, a name of PAIR_TASKS; None for one that others trained."""
    if is_pretrained(name):
        return None
    run = run_of(name)
    return run.spec.corpus.removeprefix(PAIRS_OF) if run else name


def opened(name: str, step: int = NEWEST) -> PairCheckpoint | PretrainedPair:
    """Loads a training's model as it was after a `step` of its snapshots. Raises GlassformerError where it
    cannot be read, or is too large for this server.
    """
    if is_pretrained(name):
        return _published(name.removeprefix(PRETRAINED))
    pair = families.pair_of(name if name.startswith(RUN) else PAIR + name, step)
    if pair is None:
        raise RunError(TEXT["no pairs"])
    return pair


@memo.loaded(TEXT["loading"])
def _published(name: str) -> PretrainedPair:
    return pairs.load_pair(name, session.profile().max_pretrained)


@memo.measured(copied=True)
def aligned(name: str, step: int) -> AlignmentScore | None:
    """Returns where a training's heads look while they write ASKED held-out targets, after a `step`. Raises
    GlassformerError when that is gone.
    """
    checkpoint, task = opened(name, step), task_of(name)
    assert isinstance(checkpoint, PairCheckpoint) and task is not None
    held_out = pair_text(task).validation[:ASKED]
    return model_alignment(
        checkpoint.model, checkpoint.tokenizer, [PAIR_TASKS[task].answer(pair.source) for pair in held_out]
    )


@memo.measured()
def crossed(name: str, text: str, change: Change, seed: int, step: int = NEWEST) -> WrittenTarget:
    """Raises what `opened` and `studies.families.written_target.write_target` raise."""
    checkpoint, longest = opened(name, step), LONGEST if is_pretrained(name) else None
    return write_target(checkpoint.model, checkpoint.tokenizer, text, change, seed, longest)


# Figures ------------------------------------------------------------------------------------------


def alignment_figure(
    weights: np.ndarray,
    source: Sequence[str],
    written: Sequence[str],
    step: int,
    true: Sequence[Sequence[int]],
) -> go.Figure:
    """Draws weights (query, key) in [0, 1]: a row for each written symbol, those after `step` blank. Rings
    stand where a symbol truly comes from.
    """
    source, written = (
        [show_characters(symbol) for symbol in source],
        [show_characters(symbol) for symbol in written],
    )
    shown = weights.astype(np.float32).copy()
    shown[step:] = np.nan
    heat = {
        "type": "heatmap",
        "z": shown,
        "zmin": 0,
        "zmax": 1,
        "colorscale": SEQUENTIAL,
        "hoverongaps": False,
        **named_cells(
            [TEXT("writes", symbol=n) for n in placed(written)],
            [TEXT("attends to", symbol=n) for n in placed(source)],
            ", ",
        ),
        "hovertemplate": TEXT["hover of a weight"],
        "colorbar": {"thickness": 10, "title": {"text": TEXT["weight"], "side": "right"}},
    }
    ways = [(row, key) for row, keys in enumerate(true[:step]) for key in keys]
    rings = go.Scatter(
        mode="markers",
        x=[key for _, key in ways],
        y=[row for row, _ in ways],
        marker={"size": 12, "color": colour("output", 0), "line": {"width": 2, "color": colour("output")}},
        hovertemplate=TEXT["true position"],
    )
    letters = max(map(len, source[:-1]), default=1) == 1  # all but the source's end
    upright = crowded(source[:-1] if letters else source, 440)
    high = 100 if upright or letters else 56
    return go.figure(
        [heat, rings],
        margin={"l": 70, "r": 4, "t": high, "b": 6},
        showlegend=False,
        xaxis=_read(source, letters, upright, 12, MOST),
        yaxis=token_axis(written, TEXT["written axis"], 12, most=ROWS, autorange="reversed"),
        meta={"narrow": {"xaxis": _read(source, letters, not letters, 9, COLUMNS[letters])}},
    )


def _read(source: Sequence[str], letters: bool, upright: bool | int, size: int, most: int) -> dict[str, Any]:
    """The axis of the source. Letters stand as they are read, and below each other the word for their end,
    which has no more room than they have.
    """
    axis = token_axis(source, TEXT["source axis"], size, most, side="top", tickangle=-90 if upright else 0)
    if letters and axis["tickvals"][-1:] == [len(source) - 1]:
        axis["ticktext"][-1] = "<br>".join(source[-1].strip("<>"))
    return axis


def grown_figure(scores: Mapping[int, AlignmentScore], end: float) -> go.Figure:
    """Draws, by step of a training, the share of the symbols whose look is at a true place."""
    steps = np.array(list(scores))
    curves = {
        TEXT["best head"]: ("attention", "solid", [score.best.value for score in scores.values()]),
        TEXT["all heads"]: ("output", "solid", [score.together for score in scores.values()]),
        TEXT["chance"]: ("quiet", "dot", [score.chance for score in scores.values()]),
    }
    return solved_curves(
        [Solved(name, steps, np.array(v), shade, dash) for name, (shade, dash, v) in curves.items()],
        end,
        what=TEXT["aligned correctly"],
    )


VIEW = View(
    "alignment",
    TEXT,
    draw,
    code=(DecoderBlock.forward, PreNormDecoderBlock.connect, write_target, hits),
    needs_model=False,
)
