"""The view "Cost": a fault and its healthy twin side by side, with what both write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import streamlit as st

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CheckpointError, GlassformerError
from runs.state import RunView
from studies.experiments.bug_races import (
    CORPUS,
    Bug,
    Comparison,
    Patterns,
    Side,
    compare_twins,
    patterns,
    shipped,
    specs,
)
from studies.guesses import training
from studies.lab.faults import FAULTS, Fault
from ui import content, memo, session, widgets
from ui.figures.patterns import pattern_heatmap
from ui.guess import Guess, ask
from ui.models import RUN, model_after
from ui.page_frame import View, Words
from ui.players.plot import plot
from ui.race import show_race
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
FIRST = "no_mask"
HEIGHT = 262  # of the chart, pixels
WRITTEN = 100  # of what one of the two writes
PATTERN = 340  # of an attention pattern
QUOTED = 24  # letters of what a model writes, in a sentence
CHOSEN = "fault"


def draw() -> None:
    fault = _choose()
    bug, corpus = _shipped(fault.name), _corpus()
    text = corpus.text[: fault.characters] if fault.characters else None
    stored = bug.read(text) if bug else None

    def say(views: Sequence[RunView]) -> str:
        repeats = stored.repeats_of(views) if stored else ()
        return answer(compare_twins(views, corpus.text, repeats))

    vocab_size = (
        bug.race.runs[0].spec.model.vocab_size if bug else corpora.from_text(text or corpus.text).vocab_size
    )
    show_race(
        f"fault_{fault.name}",
        fault.title,
        specs(fault, vocab_size, text),
        say=say,
        stored=stored,
        height=HEIGHT,
        beside=partial(_beside, corpus.text),
        more=partial(_more, fault, bug),
    )
    names = list(FAULTS)
    after = FAULTS[names[(names.index(fault.name) + 1) % len(names)]]
    ask("mistake", _guess, after, corpus.text)


def _choose() -> Fault:
    """Draws the choice of a fault, with the lines that make it."""
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    titles = {name: fault.title for name, fault in FAULTS.items()}
    name = widgets.select(
        TEXT["bug"], titles, CHOSEN, first=FIRST, kind="list", container=left, hint=TEXT["elsewhere"]
    )
    right.code(FAULTS[name].diff.text, language="diff", wrap_lines=True)
    return FAULTS[name]


def _corpus() -> Corpus:
    """Tiny Shakespeare; where it is not here and cannot be fetched, the text that every Python carries."""
    return session.corpus(CORPUS if corpora.shakespeare_path() else "python")


@memo.loaded()
def _shipped(name: str) -> Bug | None:
    """None where it did not come with the app, or was made of other settings."""
    try:
        return shipped(name)
    except CheckpointError:
        return None


def answer(finding: Comparison) -> str:
    """Says what the loss and the texts tell about the mistake."""
    healthy, broken = finding.healthy, finding.broken
    if finding.kind == "unknown":
        return TEXT["unknown"]
    if finding.kind == "dies":
        return TEXT("diverges", step=broken.died, healthy=finding.typical[0], written=_quoted(healthy))
    # Of several seeds, only the first is stored with what it wrote.
    texts = TEXT(
        "first texts" if finding.repeats else "texts",
        broken=_quoted(broken),
        broken_words=broken.words,
        healthy=_quoted(healthy),
        healthy_words=healthy.words,
    )
    return f"{_losses(finding)} {texts}"


def _losses(finding: Comparison) -> str:
    """Says what the loss tells, and by how much the cost varies between seeds."""
    low, high = min(finding.costs), max(finding.costs)
    case = "loss of seeds" if math.isfinite(low + high) else "loss without range"
    return TEXT(
        case if finding.repeats else "loss",
        verdict=TEXT(f"verdict {finding.kind}", cost=finding.cost),
        low=low,
        high=high,
        seeds=len(finding.costs),
        broken=finding.typical[1],
        healthy=finding.typical[0],
    )


def _quoted(side: Side) -> str:
    """Returns the beginning of what it writes; of blanks alone, as signs that can be seen."""
    text = " ".join(side.text.split()) or show_characters(side.text)
    return TEXT("quote", text=text[:QUOTED]) if text else TEXT["no quote"]


def _beside(text: str, views: Sequence[RunView]) -> None:
    """Draws what both write, one under the other."""
    if len(views) < 2:
        return
    both = compare_twins(views, text)
    for side, broken in ((both.healthy, False), (both.broken, True)):
        st.markdown(TEXT("broken writes" if broken else "healthy writes", words=side.words))
        st.code(_without_empty_lines(side.text), language=None, wrap_lines=True, height=WRITTEN)


def _without_empty_lines(text: str) -> str:
    """Returns a text without its empty lines: the whole of it stands in the fold."""
    return "\n".join(line for line in text.splitlines() if line.strip()) or show_characters(text)


def _more(fault: Fault, bug: Bug | None, views: Sequence[RunView]) -> None:
    where = TEXT("where", location=content.Filled(fault.diff.location))  # stands in code
    st.caption(f"{where} {recipe(fault)}")
    _patterns(views, bug)


def recipe(fault: Fault) -> str:
    """Returns the settings that both are trained with."""
    model, train, _ = fault.healthy()
    return TEXT(
        "recipe of a part" if fault.characters else "recipe",
        layers=model.n_layers,
        width=model.d_model,
        heads=model.n_heads,
        steps=train.steps,
        characters=fault.characters,
        batch=train.batch_size,
        context=model.context,
    )


def _patterns(views: Sequence[RunView], bug: Bug | None) -> None:
    """Draws the patterns of the newest weights of a live race, else of those that came with the app."""
    if any(view.race for view in views):
        both = tuple(_live(view) for view in views)
    else:
        both = bug.patterns if bug else ()
    first = next((each for each in both if each is not None), None)
    if first is None:
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer = widgets.select(TEXT["block"], list(first.layers), "fault_layer", kind="list", width=110)
        heads = list(range(first.weights.shape[1]))
        head = widgets.select(TEXT["head"], heads, "fault_head", kind="list", width=110)
    st.caption(TEXT("patterns", layer=layer, head=head))
    for column, each, broken in zip(st.columns(2), both, (False, True), strict=True):
        with column:
            if each is None or layer not in each.layers:
                st.info(TEXT["no broken pattern" if broken else "no healthy pattern"])
                continue
            weights = each.weights[each.layers.index(layer), head]
            labels = [show_characters(token) for token in each.tokens]
            plot(
                pattern_heatmap(weights, labels, most=16),
                key=f"fault_pattern_{broken}",
                alt=TEXT("alt broken pattern" if broken else "alt healthy pattern", layer=layer, head=head),
                height=PATTERN,
            )


def _live(view: RunView) -> Patterns | None:
    if not view.snapshots:
        return None
    try:
        snapshot = model_after(RUN + view.id, view.snapshots[-1])
        return patterns(snapshot.model, snapshot.tokenizer)
    except GlassformerError:
        return None


def _guess(fault: Fault, text: str) -> Guess | None:
    """About another mistake, of which the curves are stored."""
    bug = _shipped(fault.name)
    if bug is None:
        return None
    truth = training.mistake(compare_twins(bug.race.runs, text, bug.race.repeats))
    if truth is None:
        return None
    outcome = "outcome" if math.isfinite(truth.numbers["broken"]) else "outcome diverges"
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", title=fault.title),
        TEXT(outcome, **truth.numbers),
        {"fault": fault.name},
    )


def _words() -> Words:
    """The symptom of the fault that is shown, its cause, its fix, and what texts say otherwise."""
    fault = FAULTS.get(st.session_state.get(CHOSEN, FIRST), FAULTS[FIRST])
    return Words(fault.symptom, fault.story, TEXT("fix", fix=content.Filled(fault.fix)), fault.texts)


VIEW = View("cost", TEXT, draw, (Fault, specs, compare_twins), needs_model=False, words=_words)
