"""The bar on top of every page that looks inside: which model, at which step of its training, reading which
text.

    with subject_bar() as subject:
        recording = subject.recording()
        ...draw the page...

All of it is in the URL (`model`, `step`, `text`) and goes along from page to page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from engine import checkpoints, corpora, tokenizers
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, ResolvedConfig, passes
from engine.errors import GlassformerError
from engine.ledger import parameter_formula
from engine.measure.recording import Recording, record
from engine.model import Transformer, build
from engine.presets import PRESETS
from engine.tokenizers import Tokenizer, token_bytes
from ui import state
from ui import step as training_step
from ui.fields import TRAINABLE, visible
from ui.players.scrubber import scrubber
from ui.reading import EXAMPLES, FIRST_TEXT, MAX_TEXT, most_tokens, read
from ui.site import ROOT
from ui.step import NEWEST
from ui.text.markdown import safe, whole
from ui.text.tokens import show_bytes

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from engine.service.state import RunView

SHIPPED = {
    "shakespeare-classic": "Shakespeare, classic (trained)",
    "shakespeare-modern": "Shakespeare, modern (trained)",
}
UNTRAINED, RUN = "untrained-", "run-"
FIRST_MODEL = "shakespeare-classic"
SCRUBBER = "subject_scrubber"


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, and the text that it reads. `key` and `ids` name it in caches: `model` itself must not be
    hashed.
    """

    key: tuple[str, int]  # (model, step of its training; NEWEST where it has none)
    title: str
    model: Transformer = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    text: str  # as the model sees it: cut, and without the characters it does not know
    ids: tuple[int, ...]
    corpus: str | None  # name of the text it was trained on, where the server has that; else None

    @property
    def config(self) -> ResolvedConfig:
        return self.model.config

    @cached_property
    def labels(self) -> list[str]:
        """The tokens of the text as they are shown: spaces and line breaks visible. (position,)"""
        return [self.vocabulary[i] for i in self.ids]

    @cached_property
    def vocabulary(self) -> list[str]:
        """Every token as it is shown, by id: (vocab,)"""
        words = [show_bytes(token) for token in token_bytes(self.tokenizer)]
        return words + ["[mask]"] * (self.config.vocab_size - len(words))

    def recording(self) -> Recording:
        """Every activation of the forward pass over the text; cached by model, step and text."""
        return _recording(self.key, self.ids, self.model)


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen in the bar: a model by its name, and what it reads; None where the bar does not ask.
    `facts` is the place below the name.
    """

    name: str
    text: str | None
    facts: DeltaGenerator = field(repr=False)


def choose_subject(text: str = FIRST_TEXT, asks: bool = True) -> Choice:
    """Draws the choice of a model, and, where the bar `asks`, of what it reads: `text` until there is
    another.
    """
    state.drop_endless()
    left, right = st.columns([3, 5], gap="medium", vertical_alignment="top" if asks else "bottom")
    with left:
        name = _choose_model()
        if asks:
            facts = st.empty()
    with right:
        if not asks:
            return Choice(name, None, st.empty())
        return Choice(name, _choose_text(text), facts)


@contextmanager
def subject_of(choice: Choice) -> Iterator[Subject]:
    """Reads the model at the step of the scrubber, which is drawn on leaving.

    Coming last, that tells the browser that the pictures of a step have all been sent. Within a fragment of
    its own, it moves without the bar being drawn again.
    """
    name = choice.name
    run = state.manager().view(name.removeprefix(RUN)) if name.startswith(RUN) else None
    steps = run.snapshots if run else ()
    timeline = st.container(height=78, border=False) if steps else st.container()
    step = training_step.current(name, steps)
    found = _model(name, step, steps)
    choice.facts.caption(_facts(found, run, step, steps), help=_loss_help(found) if run is None else None)
    asked = FIRST_TEXT if choice.text is None else choice.text
    ids, shown, notes = read(asked, found.tokenizer, most_tokens(found.config))
    for note in notes if choice.text is not None else ():
        st.caption(f":material/info: {safe(note)}")
    at = step if step != NEWEST else max(steps, default=NEWEST)
    corpus = found.metrics.get("corpus")
    try:
        yield Subject(
            (name, at),
            title_of(name, run),
            found.model,
            found.tokenizer,
            shown,
            ids,
            corpus if corpus in corpora.CORPORA else None,
        )
    finally:
        if run is not None:
            with timeline:
                scrubber(steps, run.history, step, model=name, key=SCRUBBER)
            if run.active:
                st.fragment(_wait_for_snapshots, run_every=1.0)(run.id, steps)


@contextmanager
def subject_bar(text: str = FIRST_TEXT) -> Iterator[Subject]:
    """The whole bar at once."""
    with subject_of(choose_subject(text)) as subject:
        yield subject


# The model --------------------------------------------------------------------------------------


def title_of(name: str, run: RunView | None = None) -> str:
    if name in SHIPPED:
        return SHIPPED[name]
    if name.startswith(UNTRAINED):
        return f"{PRESETS[name.removeprefix(UNTRAINED)].title}, untrained"
    return f"Your run: {run.name}" if run else "A run"


def _choose_model() -> str:
    """The name of the model to look into: from the URL, else the one looked at on another page, else the run
    in hand, else a shipped one.
    """
    manager = state.manager()
    views = {RUN + view.id: view for view in reversed(manager.runs(state.owner())) if view.snapshots}
    named = state.from_url("model")
    if (
        named
        and named.startswith(RUN)
        and named not in views
        and (view := manager.view(named.removeprefix(RUN))) is not None
        and view.snapshots
    ):
        views[named] = view  # somebody else's, by its link
    options = [
        *views,
        *(name for name in SHIPPED if (ROOT / "checkpoints" / name).is_dir()),
        *(UNTRAINED + name for name in TRAINABLE),
    ]
    current = st.session_state.get("subject_model")
    if current not in options:
        hand = RUN + str(st.session_state.get("run_id"))
        current = next(
            (n for n in (named, st.session_state.get("kept_model"), hand, FIRST_MODEL) if n in options),
            options[0],
        )
        st.session_state["subject_model"] = current
        asked_for = st.query_params.get("model")
        if asked_for and asked_for != current:
            missing = (
                "That run is not on this server (any more)"
                if asked_for.startswith(RUN)
                else "There is no such model"
            )
            st.caption(
                f":material/info: {missing}; {safe(title_of(current, views.get(current)))} is shown instead."
            )
    # Streamlit's own: a link may name somebody else's run, a missing one is said, and the URL always
    # holds the name, also of the first.
    name: str = st.selectbox(
        "Model",
        options,
        key="subject_model",
        format_func=lambda n: whole(title_of(n, views.get(n))),
        help="A shipped model, an untrained one, or a run of yours, at any of its steps.",
    )
    st.session_state["kept_model"] = name
    _put("model", name)
    return name


def _put(name: str, value: str | None) -> None:
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def _model(name: str, step: int, steps: tuple[int, ...]) -> Checkpoint:
    """The model of a name. A snapshot that went away while we looked ends the page with a sentence."""
    try:
        if name.startswith(RUN):
            return _snapshot(name.removeprefix(RUN), max(steps) if step == NEWEST else step)
        return _shipped(name) if name in SHIPPED else _untrained(name.removeprefix(UNTRAINED))
    except GlassformerError as error:
        st.error(safe(str(error)))
        st.stop()
        raise


@st.cache_resource(max_entries=4, show_spinner="Reading the model …")
def _shipped(name: str) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


@st.cache_resource(max_entries=32, show_spinner=False)
def _snapshot(run: str, step: int) -> Checkpoint:
    return state.manager().model(run, step)


@st.cache_resource(max_entries=8, show_spinner=False)
def _untrained(preset: str) -> Checkpoint:
    """A preset's model as it is before its first step, with the alphabet of the shipped ones."""
    import json

    values = json.loads((ROOT / "checkpoints" / FIRST_MODEL / checkpoints.TOKENIZER).read_text("utf-8"))
    tokenizer = tokenizers.from_dict(values)
    config = ModelConfig(**{**PRESETS[preset].model.to_dict(), "vocab_size": tokenizer.vocab_size})
    model = build(config).requires_grad_(False).eval()
    return Checkpoint(model, model.config, tokenizer, {"corpus": "shakespeare"})


@st.cache_resource(max_entries=16, show_spinner=False)
def _recording(key: tuple[str, int], ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


def _facts(found: Checkpoint, run: RunView | None, step: int, steps: tuple[int, ...]) -> str:
    c = found.config
    words = [
        f"{parameter_formula(c, found.model.parts):,} parameters",
        f"{c.n_layers} layers × {c.n_heads} heads",
        f"width {c.d_model}",
        f"context {c.context}",
    ]
    loss = found.metrics.get("validation_loss")
    if run is None and isinstance(loss, float):
        words.append(f"validation loss {loss:.3f}")
    if run is not None:
        words.append(
            f"{'newest: ' if step == NEWEST else ''}step {max(steps) if step == NEWEST else step:,} of"
            f" {run.total_steps:,}"
        )
    return " · ".join(words)


def _loss_help(found: Checkpoint) -> str | None:
    """What the validation loss of a shipped model may be held against, and what not."""
    train, step = found.metrics.get("train"), found.metrics.get("step")
    if not (
        isinstance(train, dict) and isinstance(step, int) and found.metrics.get("corpus") == "shakespeare"
    ):
        return None
    own = passes(step, int(train["batch_size"]), found.config.context, corpora.SHAKESPEARE_TRAIN)
    other = passes(10_000, 64, 128, corpora.SHAKESPEARE_TRAIN)
    return (
        f"Validation loss: nats per character on text that it never read, after {own:.0f} passes over the"
        " text that it learned from. The 0.92 that texts give for Tiny Shakespeare is the *training* loss of"
        f" a larger model (8 layers, width 256) after {other:.0f} passes: by then it knows much by heart."
    )


def _wait_for_snapshots(run: str, steps: tuple[int, ...]) -> None:
    """Runs the page again when the training has got further."""
    manager = state.manager()
    manager.watch(run)
    view = manager.view(run)
    if view is None or view.snapshots != steps or not view.active:
        st.rerun()


# The text ---------------------------------------------------------------------------------------


def _choose_text(first: str) -> str:
    if "text" not in st.session_state and "kept_text" in st.session_state and "text" not in st.query_params:
        st.session_state["text"] = st.session_state["kept_text"]
    hint = "What the model reads. Ctrl+Enter takes it over."
    # No `max_chars`: with it a browser drops a longer paste without a word.
    typed = st.text_area(
        "Text", first, key="text", bind="query-params", height=90, help=hint, on_change=_cut_text
    )
    length = max(len(typed or ""), st.session_state.get("text_length", 0))
    if length > MAX_TEXT:
        st.caption(f":material/info: That text has {length:,} characters; the first {MAX_TEXT:,} are taken.")
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        "Examples",
        list(EXAMPLES),
        key="text_example",
        on_change=_take_example,
        label_visibility="collapsed",
        wrap=True,
    )
    text = visible(typed or "")[:MAX_TEXT]
    st.session_state["kept_text"] = typed
    return text


def _cut_text() -> None:
    """A long text would not fit into a link."""
    typed = st.session_state["text"] or ""
    st.session_state["text_length"] = len(typed)
    st.session_state["text"] = typed[:MAX_TEXT]


def _take_example() -> None:
    chosen = st.session_state.get("text_example")
    if chosen in EXAMPLES:
        st.session_state["text"] = EXAMPLES[chosen]
        st.session_state["text_length"] = 0
        st.session_state["text_example"] = None
