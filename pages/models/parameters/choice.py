"""Which model the ledger is opened for: a run, a shipped one, a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from engine import checkpoints
from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ConfigError, GlassformerError
from engine.parts.registry import HEALTHY, Parts, parts_of
from engine.presets import Preset
from studies.costs.lecture_models import LECTURE_MODELS
from studies.costs.ledger import Ledger, ledger
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.weights.pretrained import pairs, sources
from studies.weights.pretrained.load import open_model
from ui import content, memo, session, widgets
from ui.models import LAPSES, PRETRAINED, RUN, SHIPPED, run_of, title_of
from ui.site import ROOT
from ui.text.markdown import whole

TEXT = content.beside(__file__)
FIRST = "gpt2"
MODEL, OTHER = "parameters_model", "parameters_other"
WIDE = 320  # pixels of the box: the longest title of a preset
ALL = PRESETS | LECTURE_MODELS | ENCODER_DECODERS


@dataclass(frozen=True)
class Choice:
    """A model to be counted: what it was chosen as, and what became of it by changing fields (`changed`, with
    both values).
    """

    title: str
    note: str  # Markdown
    base: Ledger
    ledger: Ledger
    changed: Mapping[str, tuple[Any, Any]]

    @property
    def config(self) -> ResolvedConfig:
        return self.ledger.config

    def variant(self, **fields: Any) -> Ledger | None:
        """Returns the ledger with other fields; None where they do not go together with the rest."""
        try:
            encoder = self.ledger.encoder
            return ledger(
                replace(self.config, **fields),
                None if encoder is None else replace(encoder, **fields),
                self.ledger.parts,
            )
        except ConfigError:
            return None


def options() -> dict[str, str]:
    """Returns name -> title: this person's runs, newest first, the shipped models, those of others, the
    presets.
    """
    mine = [view for view in session.manager().runs(session.owner()) if view.spec.kind.inside]
    runs = {RUN + view.id: str(TEXT("your run", name=view.name)) for view in reversed(mine)}
    shipped = {
        name: title
        for name, title in (SHIPPED | LAPSES).items()
        if (ROOT / "checkpoints" / name / checkpoints.CONFIG).is_file()
    }
    published = {PRETRAINED + name: title_of(PRETRAINED + name) for name in session.published()}
    return {**runs, **shipped, **published, **{name: preset.title for name, preset in ALL.items()}}


@dataclass(frozen=True)
class NamedModel:
    """A model by its name. `encoder` is what `model`, then a decoder, reads."""

    model: ModelConfig
    encoder: ModelConfig | None = None
    parts: Parts = HEALTHY
    preset: Preset | None = None


def named_model(name: str) -> NamedModel:
    """Finds a model by its name. Raises GlassformerError when it is gone."""
    if name in ALL:
        preset = ALL[name]
        return NamedModel(preset.model, preset.encoder, preset=preset)
    if name in SHIPPED or name in LAPSES:
        path = ROOT / "checkpoints" / name / checkpoints.CONFIG
        config, parts = checkpoints.architecture(path.read_bytes(), str(path))
        return NamedModel(config, parts=parts)
    if name.startswith(PRETRAINED):
        return NamedModel(*_opened(name.removeprefix(PRETRAINED)))
    view = run_of(name)
    if view is None:
        raise GlassformerError(TEXT["run gone"])
    return NamedModel(view.spec.model, parts=parts_of(view.spec.parts))


@memo.measured(copied=True)
def _opened(name: str) -> tuple[ModelConfig, ModelConfig | None]:
    """The configuration in a published model's file, and that of its encoder where it is a decoder that reads
    one: its weights stay on disk.
    """
    folder = sources.find(name)
    if folder is None:
        raise GlassformerError(TEXT["model gone"])
    if pairs.is_pair(folder):
        both = pairs.open_pair(folder).config
        return both.decoder, both.encoder
    return open_model(folder).config, None


def choose(label: str, key: str, first: str) -> str:
    """Draws a select box over all models. The name is in the URL under `key`, also that of the `first`, which
    hangs on the other pages; an unknown one falls back to it, and that is said.
    """
    titles = options()
    named = widgets.read_url(key)
    if named not in titles and (view := run_of(named)) is not None:
        titles = {named: str(TEXT("a run", name=view.name))} | titles  # somebody else's, by its link
    if named and named not in titles:
        st.caption(TEXT("no such model", model=titles[first]))
        st.session_state[key] = first
    written = {name: whole(title) for name, title in titles.items()}
    return widgets.select(label, written, key, first=first, kind="list", hidden=True, always=True, width=WIDE)


def plain(name: str) -> Choice:
    """Returns a model's choice without changes."""
    model = named_model(name)
    preset, counted = model.preset, ledger(model.model, model.encoder, model.parts)
    if preset is not None:
        about = [preset.summary]
        if preset.published:
            about.append(TEXT("published as", what=content.Filled(preset.published)))
        if preset.source:
            about.append(TEXT("source", source=content.Filled(preset.source)))
        return Choice(preset.title.removesuffix(" (published)"), " ".join(about), counted, counted, {})
    title = options().get(name, "A run").removeprefix(TEXT("your run", name=""))
    if name.startswith(PRETRAINED):
        note = _published(name.removeprefix(PRETRAINED))
    else:
        note = TEXT["of this server" if name.startswith(RUN) else "shipped"]
    return Choice(title, note, counted, counted, {})


def _published(name: str) -> str:
    known = sources.KNOWN.get(name)
    if known is None:
        return TEXT["of a folder"]
    return TEXT(
        "of others",
        made_by=content.Filled(known.made_by),
        tokens=known.tokens,
        licence=content.Filled(known.licence),
        source=content.Filled(known.source),
    )
