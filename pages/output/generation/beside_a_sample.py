"""The part "Beside a sample" of Beam search: the most probable text beside a sample and the author's own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import CorpusError
from studies.generation.degeneration import RUN, Compared, Continuation, compare
from ui import content, explain, session
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)
LONGEST = {False: 108, True: 40}  # tokens, of our own models and of published ones, which take longer
LOOPS, WIDE = "HORTENSIO:\nI know h", 8  # held out; after it a beam so wide of these models runs in circles
LOOPING = ("shakespeare-classic", "shakespeare-modern")
MORE = 0.1  # of a text: so much more of one repeats itself where it is called worse
SHADES = {"beam": ("output", 2.5), "sample": ("run0", 1.5), "author": ("quiet", 1.5)}


def draw(subject: Subject, width: int, seed: int, ends: frozenset[int]) -> None:
    """Draws the surprise of both continuations token by token, and the texts below."""
    length = min(LONGEST[subject.is_pretrained], subject.config.context - len(subject.ids))
    if length < RUN:
        st.info(TEXT["no room"])
        return
    author = _author(subject, length)
    compared = measured(
        ("beside a sample", subject.key, subject.ids, length, width, seed, author, tuple(sorted(ends))),
        partial(compare, subject.model, subject.tokenizer, subject.ids, length, width, seed, author, ends),
        TEXT["comparing"],
    )
    if compared is None:
        return
    written = by_name(compared)
    plot(
        surprise_by_token(written),
        key="beam_beside",
        height=165,
        name="beam-beside-a-sample",
        alt=TEXT("alt", low=compared.beam.mean, high=compared.sample.mean),
        data=pd.DataFrame({name: each.nats for name, each in written.items()}),
    )
    for column, (name, each) in zip(st.columns(len(written), gap="small"), written.items(), strict=True):
        column.caption(TEXT(f"{name} text", share=each.repeats))
        column.code(each.text.strip("\n"), language=None, wrap_lines=True, height=158)
    explain.answer(answer(compared, width))
    explain.measure_it(_how)
    if subject.key[0] in LOOPING and (subject.text, width) != (LOOPS, WIDE):
        # Streamlit's own: it fills the box of the text, which holds the value.
        st.button(TEXT["loops"], key="beam_loops", icon=":material/loop:", on_click=_loops)


def by_name(compared: Compared) -> dict[str, Continuation]:
    """Returns the continuations that there are, by their names in SHADES."""
    written = {"beam": compared.beam, "sample": compared.sample, "author": compared.author}
    return {name: each for name, each in written.items() if each is not None}


def answer(compared: Compared, width: int) -> str:
    """Says how much of the searched text repeats itself beside the author's, or else beside the sample."""
    beam, sample, author = compared.beam, compared.sample, compared.author
    other = author or sample
    if beam.repeats - max(sample.repeats, other.repeats) < MORE:
        return TEXT("not worse", low=beam.mean, high=sample.mean)
    whose = TEXT["greedy's" if width == 1 else "beam's"]
    case = "worse" if author is None else "worse, with author"
    return TEXT(case, whose=whose, beam=beam.repeats, other=other.repeats)


def _how() -> None:
    st.markdown(TEXT("how", run=RUN))


def _loops() -> None:
    st.session_state.update({"text": LOOPS, "beam_width": WIDE})


def _author(subject: Subject, length: int) -> tuple[int, ...]:
    """Returns how the text that is read goes on where it is from, (length,); empty for any other."""
    with suppress(CorpusError):
        corpus = session.corpus(subject.corpus) if subject.corpus else None
        at = corpus.text.rfind(subject.text) if corpus else -1
        if corpus and at >= 0:
            after = corpus.text[at : at + len(subject.text) + 8 * length]
            ids = subject.tokenizer.encode(after)[len(subject.ids) :][:length]
            return tuple(ids) if len(ids) == length else ()
    return ()


def surprise_by_token(written: Mapping[str, Continuation]) -> go.Figure:
    """Draws -ln p (token,) of each continuation as a line."""
    lines = [
        go.line(
            np.arange(1, len(each.nats) + 1),
            each.nats.astype(np.float32),
            SHADES[name][0],
            TEXT(f"line {name}", mean=each.mean),
            TEXT["hover"],
            width=SHADES[name][1],
        )
        for name, each in written.items()
    ]
    return go.figure(
        lines,
        margin={"l": 48, "r": 8, "t": 28, "b": 40},
        xaxis=go.axis(TEXT["axis token"]),
        yaxis=go.axis(TEXT["axis nats"], rangemode="tozero", showgrid=True),
    )
