"""Setup of a training: is it possible, how large is it, how long will it take, and why is the preset as it
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.pairs import LabelledText, PairedText
from engine.errors import ConfigError, GlassformerError
from engine.presets import ENCODERS, PAIRED, PRESETS, Preset
from engine.service import profiles
from engine.service.state import RunSpec, RunView
from engine.training import kinds
from engine.training.train import check
from pages.start.train import pairs, words
from pages.start.train.data import Data
from pages.start.train.estimate import estimate
from ui import session
from ui.controls import fill
from ui.fields import CONTROLS, DATA, GROUPS, Values, changes, configs, label_of, preset_values, recipe, show
from ui.text.markdown import safe, sentence

SOMEWHERE_ELSE = ""  # a problem that belongs to no control


@dataclass(frozen=True)
class Setup:
    """`spec` is what Train would start; `problems` (field -> sentence) say why it cannot be, if it cannot."""

    spec: RunSpec
    problems: dict[str, str]
    validation_tokens: int
    characters_per_token: float = 1.0
    paired: PairedText | LabelledText | None = None


def setup(preset: Preset, values: Values, data: Data) -> Setup:
    """Puts the controls' values and the text together, and checks them as the server will."""
    source = data.corpus or data.paired
    model, train = configs(values, source.vocab_size if source else preset.model.vocab_size)
    spec = RunSpec(
        model, train, data.name, data.text if data.name == "text" else None, name=name_of(preset, values)
    )
    problems: dict[str, str] = {}
    for look in (model.validate, train.validate):
        _note(problems, look)
    if not problems:
        _note(problems, lambda: profiles.check(session.profile(), spec))
    if data.paired is None and data.corpus is None:
        if "tokenizer" not in problems:  # which is why there is none
            problems.setdefault(SOMEWHERE_ELSE, data.problem)
    elif data.corpus is not None and not problems:
        _note(problems, lambda: check(model, train, data.corpus))
    return Setup(
        spec,
        problems,
        len(data.corpus.validation) if data.corpus else 0,
        data.corpus.characters_per_token if data.corpus else 1.0,
        data.paired,
    )


def _note(problems: dict[str, str], look) -> None:  # type: ignore[no-untyped-def]
    try:
        look()
    except ConfigError as error:
        field = error.field if error.field in CONTROLS else SOMEWHERE_ELSE
        problems.setdefault(field, f"**{label_of(error.field)}** {safe(show(error.value))}: {error.allowed}.")
    except GlassformerError as error:
        problems.setdefault(SOMEWHERE_ELSE, sentence(error))


def name_of(preset: Preset, values: Values) -> str:
    """Returns a name for the run: the preset's, and the first settings that were changed."""
    known = PRESETS | PAIRED | ENCODERS
    key = next((name for name, other in known.items() if other.title == preset.title), "run")
    settings = [
        f"{label_of(field).lower()} {show(new)}"
        for field, (_, new) in changed(preset, values).items()
        if field != "sample_prompt"
    ]
    return ", ".join([key, *settings[:2], *(["…"] if len(settings) > 2 else [])])[: profiles.MAX_NAME]


def changed(preset: Preset, values: Values) -> dict[str, tuple[object, object]]:
    """Returns the controls that were moved away from the preset."""
    return changes(recipe(preset), values)


def mark_problems(problems: Mapping[str, str], containers: Mapping[str, DeltaGenerator]) -> None:
    """Draws each sentence beside the control it is about."""
    for field, problem in problems.items():
        if field in containers:
            containers[field].error(problem)


def derived(spec: RunSpec, problems: Mapping[str, str], containers: Mapping[str, DeltaGenerator]) -> None:
    """Draws the sizes that follow from others, as they will be."""
    if not problems:
        c = spec.model.resolved()
        containers["Model: sizes"].caption(words.together(c.n_heads, c.d_head, c.n_kv_heads, c.d_ff))


def obstacles(chosen: Setup) -> None:
    """Shows what prevents a training, or what will be strange about it."""
    groups = {"Data": DATA, **GROUPS}
    for field, problem in chosen.problems.items():
        where = next(
            (group for group, controls in groups.items() if any(c.field == field for c in controls)), ""
        )
        st.error(words.under(problem, where))
    if not chosen.problems and (strange := pairs.strange(chosen.spec)):
        st.warning(strange)


def in_short(chosen: Setup, last: RunView | None) -> None:
    """Draws, beside the button, how much is trained and how long it takes."""
    if chosen.problems:
        return
    train, parameters = chosen.spec.train, chosen.spec.parameters
    guess = estimate(chosen.spec, chosen.validation_tokens, session.profile(), last)
    line = words.in_short(parameters, train.steps, guess.words if guess else "")
    st.markdown(line, width="content")


def summary(chosen: Setup, last: RunView | None) -> None:
    """Draws parameters, tokens in a step, and how long it will take."""
    if chosen.problems:
        return
    model, train = chosen.spec.model, chosen.spec.train
    guess = estimate(chosen.spec, chosen.validation_tokens, session.profile(), last)
    what = pairs.noun_of(chosen.spec) if chosen.spec.kind is not kinds.LABELS else "symbol"
    tokens = chosen.spec.kind.tokens(model, train, chosen.spec.corpus)
    parameters = chosen.spec.parameters
    read = tokens * chosen.characters_per_token if what == "token" else None
    long = (guess.words, guess.source) if guess else None
    st.markdown(words.summary(parameters, model.vocab_size, what, tokens, read, train.steps, long))


def changes_note(preset: Preset, values: Values) -> None:
    """Shows what was changed from the preset, and the way back."""
    differences = changed(preset, values)
    if not differences:
        return
    changes = (
        f"{label_of(field).lower()} {safe(show(old))} → **{safe(show(new))}**"
        for field, (old, new) in differences.items()
    )
    st.caption(words.changed(", ".join(changes)))
    st.button(
        words.BACK,
        type="tertiary",
        icon=":material/undo:",
        on_click=fill,
        args=(recipe(preset),),
        key="back_to_preset",
    )


def preset_notes(preset: Preset) -> None:
    """Draws all in which a preset differs from `classic`, with the reasons: nothing about it is hidden."""
    base, values = preset_values(PRESETS["classic"]), preset_values(preset)
    fields = [f for f in values if values[f] != base[f] or f in preset.why]
    lines = []
    for field in fields:
        why = f": {preset.why[field]}" if field in preset.why else ""
        old = f" (classic: {show(base[field])})" if values[field] != base[field] else ""
        derives = not values[field] and field in ("d_ff", "d_head", "n_kv_heads")
        value = "derived" if derives else show(values[field])
        lines.append(f"- {label_of(field)} **{value}**{old}{why}.")
    st.markdown("\n".join(lines) if lines else f"**{preset.title}.** {preset.summary}")
    if preset.source:
        st.caption(f"Source: {preset.source}.")
