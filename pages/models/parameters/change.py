"""Every field of the chosen model, to be changed: the bar of the Parameters page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.config import ModelConfig
from engine.errors import ConfigError, GlassformerError
from pages.models.parameters.choice import (
    FIRST,
    MODEL,
    Choice,
    NamedModel,
    choose,
    named_model,
    options,
    plain,
)
from studies.costs.ledger import ledger
from ui import content, fields, session, widgets
from ui.fields import Control
from ui.models import PRETRAINED, RUN
from ui.text.markdown import safe

TEXT = content.beside(__file__)
_HINTS = get_type_hints(ModelConfig)
_FILLED = "parameters_filled"  # in the session: the model whose fields the controls hold
# Sliders for the four sizes that are moved most; (least, most, step) of every whole number. More than these
# is nobody's model.
SLIDERS = {
    "n_layers": (1, 128, 1),
    "d_model": (8, 16_384, 8),
    "n_heads": (1, 128, 1),
    "n_kv_heads": (0, 128, 1),
}
LIMITS = SLIDERS | {
    "vocab_size": (1, 2_000_000, 1000),
    "context": (1, 10_000_000, 128),
    "window": (0, 10_000_000, 128),
    "global_every": (0, 128, 1),
    "d_latent": (0, 16_384, 64),
    "d_rotated": (0, 4096, 2),
    "d_query": (0, 16_384, 64),
    "d_head": (0, 4096, 8),
    "d_ff": (0, 1_000_000, 64),
    "token_types": (0, 1000, 1),
    "n_experts": (0, 1024, 1),
    "active_experts": (1, 1024, 1),
    "shared_experts": (0, 64, 1),
}
VOCAB = Control("vocab_size", TEXT["vocabulary"], TEXT["vocabulary hint"], 1000)
GROUPS: dict[str, tuple[str, ...]] = {
    "Sizes": (
        "n_layers",
        "d_model",
        "n_heads",
        "n_kv_heads",
        "vocab_size",
        "context",
        "d_head",
        "d_ff",
        "d_latent",
        "d_rotated",
        "d_query",
    ),
    "Parts": ("position", "mixer", "wiring", "norm", "ffn"),
    "Switches": (
        "tie_embeddings",
        "causal",
        "output_projection",
        "attention_bias",
        "output_bias",
        "ffn_bias",
        "norm_gain",
        "norm_bias",
        "qk_norm",
        "qk_gain",
        "embedding_norm",
    ),
    "Experts": (
        "n_experts",
        "active_experts",
        "shared_experts",
        "router",
        "router_norm",
        "router_scale",
        "balance",
        "balance_rate",
    ),
    "Input and output": ("token_types", "output_head", "pooler", "pooling"),
    "Without parameters": (
        "window",
        "global_every",
        "embedding_scale",
        "score_scale",
        "rope_theta",
        "rope_fraction",
        "norm_eps",
        "dropout",
    ),
}


def chosen_model() -> Choice:
    """Draws the choice of a model and of its fields, in one line. A model that cannot be built gets a
    sentence, and is counted as it was.
    """
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with line:
        name = choose(TEXT["model"], MODEL, _first())
    problem = st.container()
    try:
        choice = plain(name)
    except (GlassformerError, OSError) as error:
        problem.error(safe(str(error)))
        choice = plain(FIRST)
    with line:
        written = _unresolved(name)
        _fill(name, written.model)
        values, notes = _fields(written.model, choice.note)
    try:
        config = ModelConfig(**values).validate()
        counted = ledger(config, _below(written, config), choice.base.parts)
    except ConfigError as error:
        field = fields.label_of(error.field)
        problem.error(TEXT("cannot be built", field=field, error=str(error), model=choice.title))
        return choice
    for field, note in notes.items():
        if values[field] is None:
            note.caption(TEXT("derived", size=getattr(counted.config, field)))
    changed = {
        field: (fields.show(before), fields.show(value))
        for field, (before, value) in _changes(choice.base.config, counted.config).items()
    }
    if changed:
        changes = ", ".join(f"`{field}` {before} → {after}" for field, (before, after) in changed.items())
        line.caption(TEXT("changes", changes=content.Filled(changes)), width="content")
    title = str(TEXT("changed", model=choice.title)) if changed else choice.title
    return replace(choice, ledger=counted, changed=changed, title=title)


def _first() -> str:
    """The model of another page or of a link for all pages, if that is a run or a model of others;
    else the best known one.
    """
    linked = st.session_state.get("kept_model") or widgets.read_url("model")
    other = isinstance(linked, str) and linked.startswith((RUN, PRETRAINED))
    return str(linked) if other and linked in options() else FIRST


def _below(written: NamedModel, config: ModelConfig) -> ModelConfig | None:
    """The encoder, with what was changed in the decoder changed there too, but for what is a decoder's own.
    Raises ConfigError where it cannot be built.
    """
    if written.encoder is None:
        return None
    moved = {field: value for field, (_, value) in _changes(written.model, config).items()}
    return replace(written.encoder, **(moved | {"causal": False, "output_head": "none"})).validate()


def _changes(before: ModelConfig, after: ModelConfig) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, with both values; of numbers that are written alike, no reader sees that."""
    changed = fields.changes(before.to_dict(), after.to_dict())
    return {field: both for field, both in changed.items() if fields.show(both[0]) != fields.show(both[1])}


def _unresolved(name: str) -> NamedModel:
    """Returns the configuration as it was written: derived fields stay derived when another moves."""
    try:
        return named_model(name)
    except (GlassformerError, OSError):
        return named_model(FIRST)


def _fill(name: str, config: ModelConfig) -> None:
    """Another model is chosen than that whose fields were changed: its values go into the fields, but for
    those that a link names.
    """
    before, st.session_state[_FILLED] = st.session_state.get(_FILLED, name), name
    if before == name:
        return
    linked = st.query_params if widgets.just_arrived() else ()
    for field in _HINTS:
        if (key := _key(field)) in linked:
            st.session_state.pop(key, None)
        else:
            st.session_state[key] = _to_widget(field, getattr(config, field))


def _key(field: str) -> str:
    return f"parameters_{field}"


def _fields(config: ModelConfig, note: str) -> tuple[dict[str, Any], dict[str, DeltaGenerator]]:
    """Every field as a control, in groups, below what is to be known of the model: (the values for a
    ModelConfig, places below those of sizes that can be derived).
    """
    session.drop_endless()
    values: dict[str, Any] = {}
    notes: dict[str, DeltaGenerator] = {}
    with st.popover(TEXT["any field"], icon=":material/tune:"):
        if note:
            st.caption(note)
        for title, group in GROUPS.items():
            st.markdown(f"**{title}**")
            grid = st.grid("auto", min_column_width=190, gap="small")
            for field in group:
                with grid.cell():
                    values[field] = _from_widget(field, _widget(field, config), config)
                    if type(None) in get_args(_HINTS[field]):
                        notes[field] = st.empty()
    return values, notes


def _widget(field: str, config: ModelConfig) -> Any:
    control = VOCAB if field == "vocab_size" else fields.CONTROLS[field]
    # Streamlit's own: another model fills all fields anew, so nothing is kept for the session, and no bound
    # may refuse what a model has.
    hint, default = _HINTS[field], _to_widget(field, getattr(config, field))
    shared: dict[str, Any] = {"key": _key(field), "help": f"{control.help} `{field}`", "bind": "query-params"}
    if get_origin(hint) is Literal:
        names = list(get_args(hint))
        return st.selectbox(control.label, names, index=names.index(default), **shared)
    if hint is bool:
        return st.toggle(control.label, value=default, **shared)
    if hint is float:
        return st.number_input(control.label, value=default, step=float(control.step), format="%g", **shared)
    low, high, step = LIMITS[field]
    # A stranger's link or an unusual run must not stop the page: the value it has is always allowed.
    draw: Any = st.slider if field in SLIDERS else st.number_input
    return draw(
        control.label, min_value=low, max_value=max(high, default), value=default, step=step, **shared
    )


def _to_widget(field: str, value: Any) -> Any:
    """A derived size is 0 in its widget."""
    return 0 if value is None else float(value) if _HINTS[field] is float else value


def _from_widget(field: str, value: Any, config: ModelConfig) -> Any:
    if value is None:  # emptied
        return getattr(config, field)
    return (
        None
        if value == 0 and not isinstance(value, bool) and type(None) in get_args(_HINTS[field])
        else value
    )
