"""The view "Steering": a text that goes on, with and without a direction added, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import written
from engine.errors import CorpusError, GlassformerError
from pages.inside.circuits.diamond import diamond
from pages.inside.circuits.prompts import LETTERS, NEUTRAL, OWN, WORDS, Steered
from studies.circuits.steering import (
    Cost,
    Direction,
    SteeredContinuation,
    Where,
    beginning,
    continued,
    cost_on,
    direction,
    mood_words,
    read,
    room,
)
from ui import content, explain, memo, session, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe, sentence
from ui.text.numbers import minus
from ui.text.tokens import show_characters
from ui.widgets import line

TEXT = content.beside(__file__)
MOST = {True: 24, False: 100}  # tokens that are written: words, or letters
ROWS, WIDTH = 6, 40  # of the neutral text: 240 tokens
MOST_PROMPT = 200  # characters
COEFFICIENTS: dict[Where, tuple[float, ...]] = {
    "every": (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0),
    "front": (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0),
}
RARE = 0.001  # below this probability, print "one in N" instead of a percentage


@dataclass(frozen=True)
class Setting:
    """All that a continuation hangs on, but the model."""

    preset: Steered
    layer: int
    where: Where
    coefficient: float
    seed: int

    @property
    def added(self) -> tuple[str, str, int, Where]:
        """The inputs that the direction depends on."""
        return self.preset.plus, self.preset.minus, self.layer, self.where


def draw(subject: Subject) -> None:
    """Draws the controls in a row, both texts and the cost side by side, and what they come to."""
    presets = WORDS if subject.is_pretrained else LETTERS
    titles = {name: TEXT(f"preset {name}") for name in (*presets, OWN)}
    name = widgets.select(TEXT["direction"], titles, "steering_preset", kind="pills", wrap=True, hidden=True)
    preset = _own(next(iter(presets.values()))) if name == OWN else presets[name]
    setting = _controls(subject, preset, name)
    try:
        prompt = read(subject.tokenizer, preset.text, TEXT["text"].lower())
        added = _direction(subject.key, setting.added, subject)
    except GlassformerError as error:
        st.warning(sentence(error), icon=":material/info:")
        return
    if name != OWN:
        plus, less = show_characters(preset.plus), show_characters(preset.minus)
        st.caption(TEXT("added", plus=plus, minus=less))
    texts, next_words = st.columns([7, 4], gap="small")
    with texts:
        continuation = _texts(subject, setting, added, prompt)
    if continuation is None:
        return
    with next_words:
        _lifted(subject, continuation)
    explain.answer(answer(continuation, setting.coefficient, name))
    explain.measure_it(_costs, subject, setting, added)


def _own(first: Steered) -> Steered:
    """Returns the visitor's prompts; `first` stands there until some are written."""
    a, b, c = st.columns([3, 3, 4], gap="small")
    with a:
        plus = line(TEXT["towards"], first.plus, "steering_plus", MOST_PROMPT)
    with b:
        less = line(TEXT["away"], first.minus, "steering_minus", MOST_PROMPT)
    with c:
        text = line(TEXT["text"], first.text, "steering_text", MOST_PROMPT)
    return first._replace(plus=plus, minus=less, text=text)


def _controls(subject: Subject, preset: Steered, name: str) -> Setting:
    """Each preset keeps its own settings."""
    a, b, c, d = st.columns([7, 5, 5, 4], gap="medium")
    places = {where: TEXT(f"where {where}") for where in COEFFICIENTS}
    key = f"steering_where_{name}"
    where = widgets.select(TEXT["added to"], places, key, first=preset.where, container=a)
    layers, key = subject.config.n_layers, f"steering_layer_{name}"
    hint = TEXT["block hint"]
    layer = widgets.slide(TEXT["block"], 0, layers - 1, preset.block(layers), key, container=b, hint=hint)
    coefficients = COEFFICIENTS[where]
    wanted = preset.coefficient if where == preset.where else coefficients[-2]
    key = f"steering_coefficient_{name}_{where}"
    label = TEXT["coefficient"]
    coefficient = widgets.slide_over(label, coefficients, wanted, key, container=c, written=signed)
    hint = TEXT["seed hint"]
    seed = widgets.whole(TEXT["seed"], 0, 9999, 0, "steering_seed", container=d, hint=hint)
    return Setting(preset, layer, where, coefficient, seed)


def signed(value: float) -> str:
    """
    >>> signed(-2.0), signed(0.5), signed(0.0)
    ('−2', '+0.5', '0')
    """
    return minus(f"{value:+g}") if value else "0"


def answer(result: SteeredContinuation, coefficient: float, preset: str) -> str:
    """Says whether the mood came, and from where on the text differs (Markdown)."""
    if not coefficient:
        return TEXT["nothing added"]
    before, after = (
        TEXT("share" if share >= RARE else "rare", share=share, draws=draws)
        for share, draws in zip(result.mood, result.draws_needed, strict=True)
    )
    if result.same == len(result.plain):
        changed = "same text"
    elif result.same < 2:
        changed = "one token" if result.same else "other text"
    else:
        changed = "more tokens"
    said = TEXT(
        f"mood {result.came}",
        times=result.times,
        steered=after,
        plain=before,
        changed=TEXT(changed, same=result.same),
    )
    note = f"note {preset}"
    return f"{said} {TEXT(note)}" if note in TEXT else said


@memo.measured()
def _direction(
    key: tuple[str, int], added: tuple[str, str, int, Where], _subject: Subject
) -> Direction:  # two short passes
    return direction(_subject.model, _subject.tokenizer, *added)


def _texts(
    subject: Subject, setting: Setting, added: Direction, prompt: tuple[int, ...]
) -> SteeredContinuation | None:
    """Both texts, side by side."""
    length = room(subject.model, prompt, MOST[subject.is_pretrained])
    sampling = SampleConfig(temperature=0.8, top_p=0.9, seed=setting.seed)
    wanted = mood_words(subject.tokenizer, setting.preset.plus, setting.preset.minus)
    continuation = measured(
        ("steering", subject.key, setting.added, setting.coefficient, prompt, length, setting.seed),
        partial(continued, subject.model, added, setting.coefficient, prompt, length, sampling, wanted),
        TEXT["writing"],
    )
    if continuation is None:
        return None
    plain, steered = st.columns(2, gap="small")
    for column, title, ids in (
        (plain, TEXT["without"], continuation.plain),
        (steered, TEXT["with"], continuation.steered),
    ):
        text = show_lines(written(subject.tokenizer, ids))
        with column.container(border=True, height=250, key=f"gf-text-{title}"):  # a text: no words of ours
            st.markdown(f"**{title}:** :gray[{show_lines(setting.preset.text)}]{text}")
    return continuation


def _costs(subject: Subject, setting: Setting, added: Direction) -> None:
    """Draws the effect on a text that has nothing to do with the direction."""
    cost, coefficient = _cost(subject, setting, added), setting.coefficient
    if cost is not None and coefficient:
        st.markdown(
            TEXT(
                "cost",
                ratio=cost.ratio(coefficient),
                before=cost.at(0.0),
                after=cost.at(coefficient),
                tokens=cost.tokens,
                strength=added.strength(coefficient),
            )
        )


def show_lines(text: str) -> str:
    """Returns a text in a paragraph, its line breaks visible."""
    return safe(text.replace("\n", " ⏎ "))


def _cost(subject: Subject, setting: Setting, added: Direction) -> Cost | None:
    """Measures the cost as a curve over the coefficient."""
    coefficients = COEFFICIENTS[setting.where]
    text, begin = _neutral(subject.key[0], subject), beginning(subject.tokenizer)
    width = min(WIDTH, subject.config.context)
    result = measured(
        ("steering cost", subject.key, setting.added),
        partial(cost_on, subject.model, added, coefficients, text, begin, width, ROWS),
        TEXT["reading"],
    )
    if result is None:
        return None
    plot(
        cost_curve(coefficients, result.perplexity, setting.coefficient),
        key="steering_cost",
        height=190,
        name="steering-cost",
        data={
            "coefficient": np.asarray(coefficients),
            "loss_nats": result.loss,
            "perplexity": result.perplexity,
        },
        alt=TEXT("alt cost", tokens=result.tokens),
    )
    return result


@memo.measured()
def _neutral(name: str, _subject: Subject) -> tuple[int, ...]:
    """Tokens of a text that has nothing to do with the prompts: of the end of what a model was trained on,
    else our own.
    """
    text = NEUTRAL
    if _subject.corpus is not None:
        with suppress(CorpusError):
            text = session.corpus(_subject.corpus).text[-2000:]
    unknown = set(_subject.tokenizer.unknown(text))
    return tuple(_subject.tokenizer.encode("".join(c for c in text if c not in unknown)))


def _lifted(subject: Subject, continuation: SteeredContinuation) -> None:
    """Which next words it lifts, right after the text that is gone on with."""
    if not continuation.lifted:
        st.caption(TEXT["none gained"])
        return
    tokens = [subject.vocabulary[lift.token] for lift in continuation.lifted]
    before, after = ([getattr(lift, side) for lift in continuation.lifted] for side in ("before", "after"))
    plot(
        lifted_bars(tokens, before, after),
        key="steering_lifted",
        height=270,
        name="steering-lifted",
        data={"token": tokens, "without": before, "with": after},
        alt=TEXT["alt lifted"],
    )


def cost_curve(coefficients: Sequence[float], perplexity: np.ndarray, chosen: float) -> go.Figure:
    """Draws perplexity (coefficient,), on a logarithmic scale; a diamond on the chosen one. The coefficients
    stand side by side at equal distances, since they double.
    """
    names = [signed(value) for value in coefficients]
    at = list(coefficients).index(chosen)
    hover = TEXT["hover of a perplexity"]
    return go.figure(
        [
            go.line(np.arange(len(names)), perplexity, "residual", "", hover, points=6),
            diamond(at, float(perplexity[at])),
        ],
        margin={"l": 62, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.ticks(np.arange(len(names)), names, title=TEXT["coefficient axis"]),
        yaxis={"title": {"text": TEXT["perplexity axis"]}, "type": "log", "nticks": 5, "tickformat": ".3~s"},
    )


def lifted_bars(words: Sequence[str], before: Sequence[float], after: Sequence[float]) -> go.Figure:
    """Draws probabilities of next tokens without and with the addition, the largest gain on top."""
    at = -np.arange(len(words))
    rest: dict[str, Any] = {"y": at, "orientation": "h", "hovertemplate": "%{x:.4f}<extra></extra>"}
    bars = [
        go.Bar(x=after, name=TEXT["bars with"], marker={"color": colour("output")}, **rest),
        go.Bar(x=before, name=TEXT["bars without"], marker={"color": colour("quiet")}, **rest),
    ]
    return go.figure(
        bars,
        margin={"l": 8, "r": 12, "t": 26, "b": 40},
        xaxis={"title": {"text": TEXT["probability axis"]}, "rangemode": "tozero", "nticks": 5},
        yaxis=go.ticks(at, [plain(w) for w in words]),
    )


VIEW = View("steering", TEXT, draw, code=(direction, continued), brings_text=True, takes=(SAYS, CAUSAL))
