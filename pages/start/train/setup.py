"""Setup of a training: is it possible, how large is it, how long will it take, and why is the preset as it
is. The guide to its time is an earlier run, or a short measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ConfigError, GlassformerError
from engine.parts.registry import parts_of
from engine.presets import Preset
from engine.training.train import check
from pages.start.train.data import Data
from pages.start.train.run_kinds import kind_of
from runs import estimate as arithmetic
from runs import profiles
from runs.state import RunSpec, RunView
from studies.costs.presets import PRESETS
from studies.pairs.dataset import LabelledText, PairedText
from studies.pairs.encoders import ENCODERS
from studies.pairs.presets import PAIRED
from ui import content, session
from ui.controls import fill
from ui.fields import CONTROLS, DATA, GROUPS, Values, changes, configs, label_of, preset_values, recipe, show
from ui.text.markdown import sentence

TEXT = content.beside(__file__)
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
        allowed = content.Filled(error.allowed)
        said = TEXT(
            "refused", label=content.Filled(label_of(error.field)), value=show(error.value), allowed=allowed
        )
        problems.setdefault(field, said)
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
        sizes = TEXT("together", heads=c.n_heads, d_head=c.d_head, kv_heads=c.n_kv_heads, d_ff=c.d_ff)
        containers["Model: sizes"].caption(sizes)


def obstacles(chosen: Setup) -> None:
    """Shows what prevents a training, or what will be strange about it."""
    groups = {"Data": DATA, **GROUPS}
    for field, problem in chosen.problems.items():
        where = next(
            (group for group, controls in groups.items() if any(c.field == field for c in controls)), ""
        )
        problem = content.Filled(problem)
        st.error(TEXT("under", problem=problem, group=where) if where else problem)
    if not chosen.problems and (warning := kind_of(chosen.spec).warning):
        st.warning(warning)


def in_short(chosen: Setup, last: RunView | None) -> None:
    """Draws, beside the button, how much is trained and how long it takes."""
    if chosen.problems:
        return
    guess = estimate(chosen, last)
    line = TEXT(
        "in short, time" if guess else "in short",
        parameters=chosen.spec.parameters,
        steps=chosen.spec.train.steps,
        seconds=guess[0] if guess else 0.0,
    )
    st.markdown(line, width="content")


def summary(chosen: Setup, last: RunView | None) -> None:
    """Draws parameters, tokens in a step, and how long it will take."""
    if chosen.problems:
        return
    spec, token, guess = chosen.spec, kind_of(chosen.spec).token, estimate(chosen, last)
    tokens = spec.kind.tokens(spec.model, spec.train, spec.corpus)
    size = TEXT("size", parameters=spec.parameters, vocabulary=spec.model.vocab_size, token=token)
    reads = TEXT(
        "reads characters" if token == "token" else "reads",
        tokens=tokens,
        characters=tokens * chosen.characters_per_token,
        steps=spec.train.steps,
    )
    takes = TEXT("takes", seconds=guess[0], source=guess[1]) if guess else TEXT["first run"]
    st.markdown(f"{size}  \n{reads}  \n{takes}")


def estimate(chosen: Setup, last: RunView | None) -> tuple[float, str] | None:
    """Returns (the seconds from pressing Train to the end, how they were estimated). `last` is this owner's
    last run, whose speed is the best guide.

    None before the first run on a GPU: its speed is not measured in the server, which leaves it to the
    trainings.
    """
    spec = chosen.spec
    train, parts = spec.train, parts_of(spec.parts)
    if last is not None and last.step and last.seconds > 0:
        before = last.spec
        model, encoder = before.kind.cost_stacks(before.model, before.corpus)
        pace = arithmetic.Pace(model, before.train, last.step, last.seconds, parts_of(before.parts), encoder)
        rate, source = pace.work_a_second, TEXT["last run"]
    else:
        measured = _cpu_rate(session.profile().threads_per_run, train.precision)
        if measured is None:
            return None
        rate, source = measured, TEXT["this machine"]
    held_out = chosen.validation_tokens
    return spec.kind.seconds(spec.model, train, spec.corpus, held_out, rate, parts), source


@st.cache_resource(show_spinner=False)
def _cpu_rate(threads: int, precision: str) -> float | None:
    """Measured once for each server."""
    return arithmetic.cpu_rate(threads, precision)


def changes_note(preset: Preset, values: Values) -> None:
    """Shows what was changed from the preset, and the way back."""
    differences = changed(preset, values)
    if not differences:
        return
    moved = (
        TEXT("change", label=content.Filled(label_of(field).lower()), old=show(old), new=show(new))
        for field, (old, new) in differences.items()
    )
    st.caption(TEXT("changed", changes=content.Filled(", ".join(moved))))
    st.button(
        TEXT["back"],
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
        value = TEXT["derived"] if derives else show(values[field])
        lines.append(f"- {label_of(field)} **{value}**{old}{why}.")
    if not lines:
        title, about = content.Filled(preset.title), content.Filled(preset.summary)
        lines = [TEXT("preset", title=title, summary=about)]
    st.markdown("\n".join(lines))
    if preset.source:
        st.caption(TEXT("source", source=content.Filled(preset.source)))
