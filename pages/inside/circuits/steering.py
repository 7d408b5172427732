"""The view of steering: a text that goes on, with and without a direction added, and what that costs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import written
from engine.errors import CorpusError, GlassformerError
from engine.measure.circuits.steering import (
    Cost,
    Direction,
    SteeredContinuation,
    Where,
    beginning,
    continued,
    cost,
    direction,
    mood_words,
    read,
    room,
    rows_of,
)
from pages.inside.circuits import figures_weights as figures
from pages.inside.circuits import words_weights as words
from pages.inside.circuits.steering_prompts import COEFFICIENTS, LETTERS, OWN, WORDS, Preset, custom_preset
from pages.inside.circuits.words_weights import NEUTRAL
from ui import explain, memo, session, widgets
from ui.background_jobs import measured
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, sentence

MOST = {True: 24, False: 100}  # tokens that are written: words, or letters
ROWS, WIDTH = 6, 40  # of the neutral text: 240 tokens


@dataclass(frozen=True)
class Setting:
    """All that a continuation hangs on, but the model."""

    preset: Preset
    layer: int
    where: Where
    coefficient: float
    seed: int

    @property
    def added(self) -> tuple[str, str, int, Where]:
        """The inputs that the direction depends on."""
        return self.preset.plus, self.preset.minus, self.layer, self.where


def draw_steering(subject: Subject) -> None:
    """Draws the controls in a row, both texts and the cost side by side, and what they come to."""
    presets = WORDS if subject.is_pretrained else LETTERS
    titles = {name: preset.title for name, preset in presets.items()} | {OWN: words.YOUR_OWN}
    name = widgets.select(words.DIRECTION, titles, "steering_preset", kind="pills", wrap=True, hidden=True)
    preset = custom_preset(next(iter(presets.values()))) if name == OWN else presets[name]
    setting = _controls(subject, preset, name)
    try:
        prompt = read(subject.tokenizer, preset.text, words.TEXT.lower())
        added = _direction(subject.key, setting.added, subject)
    except GlassformerError as error:
        st.warning(sentence(error), icon=":material/info:")
        return
    if name != OWN:
        st.caption(words.added(preset.plus, preset.minus))
    texts, next_words = st.columns([7, 4], gap="small")
    with texts:
        continuation = _texts(subject, setting, added, prompt)
    if continuation is None:
        return
    with next_words:
        _lifted(subject, continuation)
    explain.answer(words.steered(continuation, setting.coefficient, preset.note))
    explain.measure_it(_costs, subject, setting, added)


def _costs(subject: Subject, setting: Setting, added: Direction) -> None:
    """Draws the effect on a text that has nothing to do with the direction."""
    cost = _cost(subject, setting, added)
    if cost is not None and setting.coefficient:
        st.markdown(words.costs(cost, setting.coefficient, added))


def _controls(subject: Subject, preset: Preset, name: str) -> Setting:
    """Each preset keeps its own settings."""
    a, b, c, d = st.columns([7, 5, 5, 4], gap="medium")
    where = widgets.select(
        words.ADDED_TO, words.WHERE, f"steering_where_{name}", first=preset.where, container=a
    )
    layers, key = subject.config.n_layers, f"steering_layer_{name}"
    hint = words.STEERING_BLOCK_HINT
    layer = widgets.slide(
        words.INPUT_OF_BLOCK, 0, layers - 1, preset.block(layers), key, container=b, hint=hint
    )
    coefficients = COEFFICIENTS[where]
    wanted = preset.coefficient if where == preset.where else coefficients[-2]
    coefficient = widgets.slide_over(
        words.COEFFICIENT,
        coefficients,
        wanted,
        f"steering_coefficient_{name}_{where}",
        container=c,
        written=words.coefficient,
    )
    seed = widgets.whole(words.SEED, 0, 9999, 0, "steering_seed", container=d, hint=words.SEED_HINT)
    return Setting(preset, layer, where, coefficient, seed)


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
        lambda: continued(subject.model, added, setting.coefficient, prompt, length, sampling, wanted),
        words.WRITING,
    )
    if continuation is None:
        return None
    plain, steered = st.columns(2, gap="small")
    for column, title, ids in (
        (plain, words.WITHOUT, continuation.plain),
        (steered, words.WITH, continuation.steered),
    ):
        text = show_lines(written(subject.tokenizer, ids))
        with column.container(border=True, height=250, key=f"gf-text-{title}"):  # a text: no words of ours
            st.markdown(f"**{title}:** :gray[{show_lines(setting.preset.text)}]{text}")
    return continuation


def show_lines(text: str) -> str:
    """Returns a text in a paragraph, its line breaks visible."""
    return safe(text.replace("\n", " ⏎ "))


def _cost(subject: Subject, setting: Setting, added: Direction) -> Cost | None:
    """Measures the cost as a curve over the coefficient."""
    coefficients = COEFFICIENTS[setting.where]
    width = min(WIDTH, subject.config.context)
    result = measured(
        ("steering cost", subject.key, setting.added),
        lambda: cost(
            subject.model,
            added,
            coefficients,
            rows_of(_neutral(subject), beginning(subject.tokenizer), width, ROWS),
        ),
        words.READING_OTHER,
    )
    if result is None:
        return None
    plot(
        figures.cost_curve(coefficients, result.perplexity, setting.coefficient),
        key="steering_cost",
        height=190,
        name="steering-cost",
        data={
            "coefficient": np.asarray(coefficients),
            "loss_nats": result.loss,
            "perplexity": result.perplexity,
        },
        alt=words.COST_ALT.format(tokens=result.tokens),
    )
    return result


def _neutral(subject: Subject) -> list[int]:
    """Tokens of a text that has nothing to do with the prompts: of the end of what a model was trained on,
    else our own.
    """
    text = NEUTRAL
    if subject.corpus is not None:
        with suppress(CorpusError):
            text = session.corpus(subject.corpus).text[-2000:]
    unknown = set(subject.tokenizer.unknown(text))
    return subject.tokenizer.encode("".join(c for c in text if c not in unknown))


def _lifted(subject: Subject, continuation: SteeredContinuation) -> None:
    """Which next words it lifts, right after the text that is gone on with."""
    if not continuation.lifted:
        st.caption(words.NONE_GAINED)
        return
    tokens = [subject.vocabulary[lift.token] for lift in continuation.lifted]
    before, after = ([getattr(lift, side) for lift in continuation.lifted] for side in ("before", "after"))
    plot(
        figures.lifted_bars(tokens, before, after),
        key="steering_lifted",
        height=270,
        name="steering-lifted",
        data={"token": tokens, "without": before, "with": after},
        alt=words.LIFTED_ALT,
    )
