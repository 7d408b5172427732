"""The models that can be looked into, by the names in links: shipped, published, untrained, runs, and the
time-lapse of a training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.config import ModelConfig, passes
from engine.data import corpora
from engine.data.tasks.all import MODELLED
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import GlassformerError
from engine.ledger import parameter_formula
from engine.model import build
from engine.presets import PRESETS
from engine.training.kinds import LABELS, PAIRS, Kind
from engine.training.numerics import perplexity
from engine.training.snapshot_series import Lapse, open_lapse
from engine.weights import checkpoints
from engine.weights.checkpoints import Checkpoint
from engine.weights.pretrained import library, pairs, sources
from engine.weights.pretrained.library import Pretrained
from ui import (
    families,
    fetching,
    memo,
    session,
    tuned,
    widgets,
)
from ui.fetching import FILE
from ui.fields import TRAINABLE
from ui.fit_text import PAIR
from ui.site import ROOT
from ui.text.markdown import safe, whole
from ui.text.numbers import counted
from ui.training_step import NEWEST
from ui.tuned import Tuned

if TYPE_CHECKING:
    from engine.service.state import RunView

SHIPPED = {
    "shakespeare-classic": "Shakespeare, classic (trained)",
    "shakespeare-modern": "Shakespeare, modern (trained)",
}
LAPSES = {"timelapse": "Time-lapse: from noise to Shakespeare"}  # one training, at many of its steps
RUN = families.RUN
UNTRAINED, PRETRAINED = "untrained-", "pretrained-"
TASK = "task-"  # a small model of a synthetic task, in checkpoints/tasks
TASK_FOLDER = "tasks"
FIRST_MODEL, REAL_MODEL = "shakespeare-classic", "pretrained-smollm2-135m"

# The choice in the session: its widget, and what the visitor chose, where a view opens with another model.
CHOSEN, CHOICE = "subject_model", "kept_model"
YOURS = "yours"
# What the choice remembers: the view that drew it last, the name that it put into the URL, and the views that
# show the visitor's choice though another model shows their point better.
_DRAWN_ON, _WRITTEN, _INSISTED = "subject_model_page", "subject_model_written", "subject_model_insisted"

Loaded = Checkpoint | Pretrained | Tuned


def is_pretrained(name: str) -> bool:
    """True if others trained the model: its texts are English, its tokens words."""
    return origin(name).startswith((PRETRAINED, FILE))


def origin(name: str) -> str:
    """Returns the name of the model that a fine-tuned one began as; of any other its own."""
    checkpoint = tuned.get(name)
    return name if checkpoint is None else checkpoint.base


def kind_of(name: str) -> str:
    """Returns what a model reads: `words`, the name of a synthetic task, a kind of `ui.families`, or
    `letters`.
    """
    if is_pretrained(name):
        return "words"
    name = origin(name)
    if (kind := families.kind_of(name)) is not None:
        return kind
    run = run_of(name)
    task = run.spec.corpus if run else name.removeprefix(TASK) if name.startswith(TASK) else ""
    return task if task in MODELLED else "letters"


def title_of(name: str, run: RunView | None = None) -> str:
    if name.startswith(tuned.TUNED):
        checkpoint = tuned.get(name)
        return checkpoint.title if checkpoint else "A fine-tuned model"
    if (title := families.title_of(name)) is not None:
        return title
    if name in SHIPPED or name in LAPSES:
        return (SHIPPED | LAPSES)[name]
    if name.startswith(TASK):
        return f"Task: {MODELLED[name.removeprefix(TASK)].title} (trained)"
    if name.startswith(UNTRAINED):
        return f"{PRESETS[name.removeprefix(UNTRAINED)].title}, untrained"
    if name.startswith(PRETRAINED):
        short = name.removeprefix(PRETRAINED)
        return sources.KNOWN[short].title if short in sources.KNOWN else f"{short}, from this server's folder"
    if name.startswith(FILE):
        return f"{fetching.file_name(name)}, from a file"
    return f"Your run: {run.name}" if run else "A run"


def titled(name: str) -> str:
    """Returns the title of a model, that of a run with its name."""
    return title_of(name, run_of(name))


def choose_model(
    first: str = FIRST_MODEL,
    inside: Callable[[str], AbstractContextManager[object]] | None = None,
    *,
    best: Sequence[str] = (),
    view: str = "",
    walked: bool = False,
) -> str:
    """Returns the name of the model to look into. The URL then holds it, and under YOURS the visitor's
    own choice where a view opens with another. The choice is drawn `inside` what that makes of the name.

    It is what the URL names, unless the visitor `walked` here from another view, whose model that is; else
    the first of the `best` for the `view`, where the visitor's choice is none of them; else that choice: the
    model looked at before, or the run in hand; else the page's `first`, or a shipped one.
    """
    asked_for = st.query_params.get("model")
    # A path or a model's name may hold more than letters: it counts only if it is among the options.
    named = asked_for if asked_for and is_pretrained(asked_for) else session.from_url("model")
    views = runs_of(named, _opens)
    options = _options(views, named)
    fetching.take(CHOSEN)
    view_key = f"{widgets.page_drawn()}/{view}"
    arrived = view_key != st.session_state.get(_DRAWN_ON)
    linked = not walked and asked_for is not None and asked_for != st.session_state.get(_WRITTEN)
    current: str = st.session_state.get(CHOSEN, "")
    if arrived or linked or current not in options:
        # The value of a widget of another page is none of this page's: Streamlit would draw the first option.
        carried: str | None = st.session_state.get(CHOICE)
        yours = session.from_url(YOURS, options)
        choices = (carried, *((yours, named) if walked else ()), RUN + str(st.session_state.get("run_id")))
        own_choice = next((name for name in choices if name in options), None)
        opens = [] if own_choice in best or view_key in _insisted() else best
        wanted = (None if walked else named, *opens, own_choice, first, FIRST_MODEL)
        current = next((name for name in wanted if name in options), options[0])
        st.session_state[CHOSEN] = st.session_state[_WRITTEN] = current
        if not walked and current == named:
            st.session_state[CHOICE] = yours if yours is not None and current in best else current
        else:
            st.session_state[CHOICE] = own_choice if own_choice is not None and current in best else current
        missing = (None if walked else asked_for) or (carried if arrived else None)
        if missing and missing not in options:
            shown = safe(title_of(current, views.get(current)))
            with st.container(key="another_model"):
                st.caption(f":material/info: {_missing(missing)}; {shown} is shown instead.")
    # In each run: a popover mounts its boxes when it first opens, and the browser knows no earlier value.
    st.session_state[CHOSEN] = current
    with inside(current) if inside else nullcontext():
        # Streamlit's own: a link may name somebody else's run, a missing one is said, and the URL always
        # holds the name, also of the first.
        name: str = st.selectbox(
            "Model",
            options,
            key=CHOSEN,
            format_func=lambda n: whole(title_of(n, views.get(n))),
            help="A shipped model, a published one, an untrained one, or a run at any of its steps: a shipped"
            " run, or one of yours.",
        )
    if name != st.session_state[_WRITTEN]:  # chosen by hand
        st.session_state[CHOICE] = name
        _insisted().add(view_key)
    st.session_state[_WRITTEN], st.session_state[_DRAWN_ON] = name, view_key
    widgets.write_url("model", name)
    widgets.write_url(YOURS, visitors_choice(name, best))
    return name


def visitors_choice(name: str, best: Sequence[str]) -> str | None:
    """Returns the visitor's choice where a view shows another model, which is one of the `best` for it; None
    where that is the choice itself.
    """
    choice: str | None = st.session_state.get(CHOICE)
    return choice if name in best and choice is not None and choice not in best else None


def chosen_run() -> RunView | None:
    """Returns the training that is looked into on pages with a bar, as the address of one without says, else
    the visitor's choice; None where that is another model. The address then says it.
    """
    name = session.from_url("model") or str(st.session_state.get(CHOICE, ""))
    if (run := run_of(name)) is not None:
        widgets.write_url("model", name)
    return run


def choose(name: str) -> None:
    """Looks into another model, from the next run of the script on: as if it were chosen in the bar."""
    st.session_state[CHOSEN] = name


def first_of(names: Sequence[str]) -> str:
    """Returns the first of the models that is on this server; FIRST_MODEL where none is."""
    here = _options({}, None)
    return next((name for name in names if name in here), FIRST_MODEL)


def _options(runs: Iterable[str], named: str | None) -> list[str]:
    """Returns the names of all models that can be looked into here: those of `runs` first."""
    return [
        *runs,
        *tuned.offered(named),
        *(name for name in (*SHIPPED, *LAPSES) if (ROOT / "checkpoints" / name).is_dir()),
        *families.offered(),
        *(TASK + name for name in MODELLED if (ROOT / "checkpoints" / TASK_FOLDER / name).is_dir()),
        *(PRETRAINED + name for name in session.published()),
        *fetching.files(named),
        *(UNTRAINED + name for name in TRAINABLE),
    ]


def _insisted() -> set[str]:
    views: set[str] = st.session_state.setdefault(_INSISTED, set())
    return views


def run_of(name: str) -> RunView | None:
    """Returns the training of that name; None for a model that is not trained here, and one that has gone."""
    return session.manager().view(name.removeprefix(RUN)) if name.startswith(RUN) else None


def runs_of(named: str | None, opens: Callable[[RunView], bool]) -> dict[str, RunView]:
    """Returns this browser's trainings that can be opened, newest first, and the one that a link names, by
    their names in links.
    """
    mine = reversed(session.manager().runs(session.owner()))
    views = {RUN + view.id: view for view in mine if opens(view)}
    if named and named not in views and (linked := run_of(named)) is not None and opens(linked):
        views[named] = linked
    return views


def runs(kind: Kind, named: str | None) -> dict[str, str]:
    """Returns the trainings of a kind that have something to look into, by their names in links -> title."""
    views = runs_of(named, lambda view: view.spec.kind is kind and bool(view.snapshots))
    return {name: title_of(name, view) for name, view in views.items()}


def _opens(view: RunView) -> bool:
    """True if the model can be looked into yet: a single stack, or the encoder of two."""
    return bool(view.snapshots) and (view.spec.kind.inside or view.spec.kind is PAIRS)


def _missing(name: str) -> str:
    if name.startswith(tuned.TUNED):
        return tuned.GONE
    if name.startswith(RUN):
        if (view := run_of(name)) is not None and view.spec.kind is LABELS:
            return "That run is a classifier, which writes no text: see Families, Classifier"
        return "That run is no longer on this server"
    known = sources.KNOWN.get(name.removeprefix(PRETRAINED)) if name.startswith(PRETRAINED) else None
    return f"{known.short} is not on this server" if known else "There is no such model"


def model_of(name: str, step: int, steps: tuple[int, ...]) -> Loaded:
    """Returns the model of a name. A snapshot that went away while we looked, or a file that cannot be read,
    ends the page with a sentence.
    """
    try:
        if (tuned_model := tuned.get(name)) is not None:
            return tuned_model
        if (loaded := families.model_of(name, step)) is not None:
            return families.as_read(loaded)
        if is_training(name):
            return families.as_read(_snapshot(name, max(steps) if step == NEWEST else step))
        if name.startswith(PRETRAINED):
            return published(name)
        if name.startswith(FILE):
            return _pretrained(fetching.file_name(name), str(fetching.path_of(name)))
        if name.startswith(TASK):
            return task_model(name.removeprefix(TASK))
        if name in SHIPPED:
            return _shipped(name)
        return families.as_read(_untrained(name.removeprefix(UNTRAINED)))
    except GlassformerError as error:
        st.error(safe(str(error)))
        st.stop()
        raise


@memo.loaded("Reading the model …")
def _shipped(name: str) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


def published(name: str) -> Pretrained:
    """Returns the published model of that name. Raises PretrainedError where it cannot be read."""
    return _pretrained(name.removeprefix(PRETRAINED), None)


# Not in the store: its weights, at most `max_pretrained` of four bytes, are mapped from a file.
@st.cache_resource(max_entries=2, show_spinner="Reading the model: a few seconds the first time …")
def _pretrained(name: str, path: str | None) -> Pretrained:
    """One copy for everybody who looks."""
    return library.load(name, session.profile().max_pretrained, path)


def task_model(task: str) -> Checkpoint:
    """Returns the model of a synthetic task. Raises CheckpointError when it is not there."""
    return _shipped(f"{TASK_FOLDER}/{task}")


def is_training(name: str) -> bool:
    """True if its model can be looked into at several steps: a run, or a time-lapse."""
    return name.startswith(RUN) or name in LAPSES


@memo.loaded()
def _snapshot(name: str, step: int) -> Checkpoint:
    return model_after(name, step)


def model_after(name: str, step: int) -> Checkpoint:
    """Returns the model of a training after one of its steps. Raises GlassformerError when that is gone."""
    if name in LAPSES:
        return lapse_of(name).at(step)
    if (half := families.model_of(name, step)) is not None:
        return half
    return session.manager().model(name.removeprefix(RUN), step)


@memo.loaded()
def lapse_of(name: str) -> Lapse:
    """Returns the time-lapse of that name in LAPSES. Raises CheckpointError when it is not whole."""
    return open_lapse(ROOT / "checkpoints" / name)


@memo.loaded()
def _untrained(preset: str) -> Checkpoint:
    """A preset's model as it is before its first step, with the alphabet of the shipped ones."""
    values = json.loads((ROOT / "checkpoints" / FIRST_MODEL / checkpoints.TOKENIZER).read_text("utf-8"))
    tokenizer = tokenizer_from_dict(values)
    config = ModelConfig(**{**PRESETS[preset].model.to_dict(), "vocab_size": tokenizer.vocab_size})
    model = build(config).requires_grad_(False).eval()
    return Checkpoint(model, model.config, tokenizer, {"corpus": "shakespeare"})


# What is known of it ----------------------------------------------------------------------------


TRAINED_ON = {"shakespeare": "Tiny Shakespeare", "python": "the Python manual"} | {
    name: f"task: {task.title}" for name, task in MODELLED.items()
}


# What a model is good for, by the name that a link has, or how it begins.
GOOD_FOR = {
    "shakespeare-classic": "studying a GPT-2-style model head by head, on characters; it knows no facts",
    "shakespeare-modern": "comparing RoPE, RMSNorm and SwiGLU with the classic model; it knows no facts",
    "timelapse": "watching heads form and text improve over one training run",
    REAL_MODEL: "facts, induction and your own text; it continues text but does not follow instructions",
    TASK: "checking heads: the sources of each answer are known",
    UNTRAINED: "a baseline: what random weights do before any training",
    RUN: "inspecting your own run, at any of its snapshots",
    tuned.TUNED: "seeing what fine-tuning changed in the base model",
    families.ENCODER: "context from both sides: it fills in masked tokens but writes no text",
    PAIR: "alignment: which source token each target token attends to",
}


def good_for(name: str) -> str:
    """Returns a sentence about the use of a model; empty for one that is not known here."""
    use = next((use for start, use in GOOD_FOR.items() if name.startswith(start)), "")
    return f"Good for {use}." if use else ""


def facts(loaded: Loaded, total: int | None, step: int, steps: tuple[int, ...]) -> str:
    """Returns the line below a model's name: its sizes, and how it was trained; `total` steps, where it is
    looked into at one of them.
    """
    c = loaded.config
    words = [
        f"{parameter_formula(c, loaded.model.parts):,} parameters",
        f"{counted(c.n_layers, 'block')} × {counted(c.n_heads, 'head')}, width {c.d_model}",
    ]
    if (exact := families.exact_of(loaded)) is not None:
        return " · ".join(["its encoder", *words, exact])
    if isinstance(loaded, Pretrained):
        half = ["its encoder"] if pairs.is_pair(loaded.path) else []
        return " · ".join(half + words + _published(loaded))
    if isinstance(loaded, Tuned):
        return " · ".join([*words, "fine-tuned here"])
    if families.reads_only(loaded):
        words.insert(0, "its encoder")
    if corpus := TRAINED_ON.get(str(loaded.metrics.get("corpus"))):
        words.append(corpus)
    loss = loaded.metrics.get("validation_loss")
    if isinstance(loss, float):
        words.append(f"validation loss {loss:.3f} (perplexity {perplexity(loss):.1f})")
    if total is not None:
        words.append(
            f"{'newest: ' if step == NEWEST else ''}step {max(steps) if step == NEWEST else step:,} of"
            f" {total:,}"
        )
    return " · ".join(words)


def _published(loaded: Pretrained) -> list[str]:
    bits = f"{loaded.bits:.3g} bits per weight"
    if loaded.facts is None:
        return [bits]
    return [
        f"by {loaded.facts.made_by}, {loaded.facts.tokens} tokens (published)",
        loaded.facts.licence,
        bits,
    ]


def facts_help(loaded: Loaded, steps: int | None) -> str | None:
    """Returns the source of a published model's facts, baselines for the validation loss of a shipped one,
    and how a time-lapse, kept at so many `steps`, was trained.
    """
    if isinstance(loaded, Pretrained):
        return _origin(loaded)
    if isinstance(loaded, Tuned):
        return None
    if steps is None:
        return _loss_help(loaded.metrics, loaded.config.context)
    repeat = repeat_of(loaded)
    if not repeat:
        return None
    return (
        f"One run, with snapshots at {steps} of its steps. {repeat:.0%} of its training windows repeat their"
        " own beginning, so looking back pays off, and heads learn to copy. Losses are measured on the plain"
        " text."
    )


def trained_as(name: str) -> Mapping[str, Any] | None:
    """Returns the fields of the training of a model that comes with the app, as its file says; None for any
    other.
    """
    if name in LAPSES:
        return lapse_of(name).train.to_dict()
    known = _shipped(name).metrics.get("train") if name in SHIPPED else None
    return known if isinstance(known, Mapping) else None


def repeat_of(loaded: Loaded) -> float:
    """Returns the share of training windows that repeat themselves; 0 where that is not known."""
    train = loaded.metrics.get("train")
    return float(train.get("repeat", 0.0)) if isinstance(train, Mapping) else 0.0


def _origin(loaded: Pretrained) -> str:
    c, known = loaded.config, loaded.facts
    words = [f"Width {c.d_model}, context {c.context:,}, {c.vocab_size:,} tokens."]
    if known is not None:
        words.append(
            f"{known.repository} from Hugging Face, trained on {known.tokens} tokens according to its"
            " developers:"
            f" {known.source}."
        )
    words.append(
        f"Read from {safe(loaded.path.name)}, which stores {loaded.bits:.3g} bits per weight on average;"
        " computed in float32."
    )
    return " ".join(words)


def _loss_help(metrics: Mapping[str, object], context: int) -> str | None:
    train, step = metrics.get("train"), metrics.get("step")
    if not (isinstance(train, dict) and isinstance(step, int) and metrics.get("corpus") == "shakespeare"):
        return None
    epochs = passes(step, int(train["batch_size"]), context, corpora.SHAKESPEARE_TRAIN)
    other = passes(10_000, 64, 128, corpora.SHAKESPEARE_TRAIN)
    return (
        f"Validation loss: nats per character on held-out text, after {epochs:.0f} epochs over its training"
        " text."
        " The 0.92 that a lecture gives for Tiny Shakespeare is the *training* loss of a larger model (8"
        f" layers, width 256) after {other:.0f} epochs: by then it has memorised much of the text."
    )
