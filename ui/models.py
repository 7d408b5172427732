"""The models that can be looked into, by their names in links: a source for each origin, which a name tells
by how it begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, passes
from engine.data import corpora
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import GlassformerError
from engine.model import build
from engine.training.numerics import perplexity
from runs.kinds import LABELS, PAIRS, Kind
from runs.snapshot_series import Lapse, open_lapse
from studies.costs.ledger import parameter_formula
from studies.costs.presets import PRESETS
from studies.pairs.paired import PAIR_TASKS
from studies.tasks.all import MODELLED
from studies.weights.pretrained import library, pairs, sources
from studies.weights.pretrained.library import Pretrained
from ui import families, fetching, memo, session, tuned
from ui.fields import TRAINABLE
from ui.fit_text import GAPS, PAIR
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.numbers import counted
from ui.training_step import NEWEST
from ui.tuned import Tuned

if TYPE_CHECKING:
    from runs.state import RunView

RUN, UNTRAINED, PRETRAINED, TASK = families.RUN, "untrained-", "pretrained-", "task-"
TASK_FOLDER = "tasks"
FIRST_MODEL, REAL_MODEL = "shakespeare-classic", "pretrained-smollm2-135m"
SHIPPED = {
    FIRST_MODEL: "Shakespeare, classic (trained)",
    "shakespeare-modern": "Shakespeare, modern (trained)",
}
LAPSES = {"timelapse": "Time-lapse: from noise to Shakespeare"}  # one training, at many of its steps
TRAINED_ON = {"shakespeare": "Tiny Shakespeare", "python": "the Python manual"} | {
    name: f"task: {task.title}" for name, task in MODELLED.items()
}

Loaded = Checkpoint | Pretrained | Tuned


class Source:
    """Models of one origin, whose names begin alike: which are here, and what is known of one. By itself that
    of a name that nobody knows.
    """

    begins: ClassVar[str] = ""
    good_for: ClassVar[str] = ""

    def owns(self, name: str) -> bool:
        return name.startswith(self.begins)

    def short(self, name: str) -> str:
        return name.removeprefix(self.begins)

    def offers(self, named: str | None) -> list[str]:
        """Returns the names of those that are here; of what visitors made, theirs and the one that a link
        names.
        """
        return []

    def title(self, name: str) -> str:
        return "A model"

    def missing(self, name: str) -> str:
        """Says why a model of that name is not offered."""
        return "There is no such model"

    def reads(self, name: str) -> str:
        """Returns what its texts are made of, in the terms of `ui.fit_text.examples_of`."""
        return "letters"

    def load(self, name: str, step: int) -> Loaded:
        """Returns a model; of a training after one of its steps. Raises GlassformerError when it is gone or
        not whole.
        """
        raise GlassformerError(self.missing(name))

    def use(self, name: str) -> str:
        return self.good_for

    def facts(self, loaded: Loaded) -> list[str]:
        """Returns what is known of its training."""
        corpus, loss = (
            TRAINED_ON.get(str(loaded.metrics.get("corpus"))),
            loaded.metrics.get("validation_loss"),
        )
        said = [corpus] if corpus else []
        if isinstance(loss, float):
            said.append(f"validation loss {loss:.3f} (perplexity {perplexity(loss):.1f})")
        return said

    def further(self, loaded: Loaded, steps: int | None) -> str | None:
        """Returns where its facts are from, and what they compare with; `steps` are kept of a training."""
        return _compared(loaded.metrics, loaded.config.context)


class Shipped(Source):
    good_for = "studying a GPT-2-style model head by head, on characters; it knows no facts"

    def owns(self, name: str) -> bool:
        return name in SHIPPED

    def offers(self, named: str | None) -> list[str]:
        return [name for name in SHIPPED if _is_shipped(name)]

    def title(self, name: str) -> str:
        return SHIPPED[name]

    def load(self, name: str, step: int) -> Checkpoint:
        return _shipped(name)

    def use(self, name: str) -> str:
        modern = "comparing RoPE, RMSNorm and SwiGLU with the classic model; it knows no facts"
        return modern if name == "shakespeare-modern" else self.good_for


class Training(Source):
    """Models that can be looked into at several steps."""

    def after(self, name: str, step: int) -> Checkpoint:
        """Returns the model after one of its steps. Raises GlassformerError when that is gone."""
        raise NotImplementedError

    def load(self, name: str, step: int) -> Checkpoint:
        return families.as_read(_snapshot(name, step))

    def further(self, loaded: Loaded, steps: int | None) -> str | None:
        if steps is None:
            return super().further(loaded, steps)
        if not (repeat := repeat_of(loaded)):
            return None
        return (
            f"One run, with snapshots at {steps} of its steps. {repeat:.0%} of its training windows repeat"
            " their own beginning, so looking back pays off, and heads learn to copy. Losses are measured on"
            " the plain text."
        )


class Lapses(Training):
    good_for = "watching heads form and text improve over one training run"

    def owns(self, name: str) -> bool:
        return name in LAPSES

    def offers(self, named: str | None) -> list[str]:
        return [name for name in LAPSES if _is_shipped(name)]

    def title(self, name: str) -> str:
        return LAPSES[name]

    def after(self, name: str, step: int) -> Checkpoint:
        return lapse_of(name).at(step)


class Runs(Training):
    begins = RUN
    good_for = "inspecting your own run, at any of its snapshots"

    def offers(self, named: str | None) -> list[str]:
        return list(runs_of(named, _opens))

    def title(self, name: str) -> str:
        run = run_of(name)
        return f"Your run: {run.name}" if run else "A run"

    def missing(self, name: str) -> str:
        if (run := run_of(name)) is not None and run.spec.kind is LABELS:
            return "That run is a classifier, which writes no text: see Families, Classifier"
        return "That run is no longer on this server"

    def reads(self, name: str) -> str:
        if (task := families.pair_task(name)) is not None:
            return PAIR + task
        run = run_of(name)
        return run.spec.corpus if run and run.spec.corpus in MODELLED else "letters"

    def load(self, name: str, step: int) -> Checkpoint:
        if families.pair_task(name) is not None:  # which are kept already
            return self.after(name, step)
        return super().load(name, step)

    def after(self, name: str, step: int) -> Checkpoint:
        if (pair := families.pair_of(name, step)) is not None:
            return families.reader(name, step, pair)
        return session.manager().model(self.short(name), step)


class TunedHere(Source):
    begins = tuned.TUNED
    good_for = "seeing what fine-tuning changed in the base model"

    def offers(self, named: str | None) -> list[str]:
        return tuned.offered(named)

    def title(self, name: str) -> str:
        checkpoint = tuned.get(name)
        return checkpoint.title if checkpoint else "A fine-tuned model"

    def missing(self, name: str) -> str:
        return tuned.GONE

    def reads(self, name: str) -> str:
        base = origin(name)
        return "letters" if base == name else kind_of(base)

    def load(self, name: str, step: int) -> Loaded:
        return tuned.get(name) or super().load(name, step)

    def facts(self, loaded: Loaded) -> list[str]:
        return ["fine-tuned here"]

    def further(self, loaded: Loaded, steps: int | None) -> str | None:
        return None


class Encoders(Source):
    begins = families.ENCODER
    good_for = "context from both sides: it fills in masked tokens but writes no text"

    def offers(self, named: str | None) -> list[str]:
        return [self.begins + short for short in families.ENCODERS if families.is_here(self.begins + short)]

    def title(self, name: str) -> str:
        return families.ENCODERS.get(self.short(name), super().title(name))

    def reads(self, name: str) -> str:
        return GAPS

    def load(self, name: str, step: int) -> Checkpoint:
        return families.as_read(families.encoder(name))


class Pairs(Source):
    """Encoder-decoders, of which every page can look into the half that reads."""

    begins = PAIR
    good_for = "alignment: which source token each target token attends to"

    def owns(self, name: str) -> bool:
        return not name.startswith(RUN) and families.pair_task(name) is not None

    def offers(self, named: str | None) -> list[str]:
        return [self.begins + task for task in PAIR_TASKS if families.is_here(self.begins + task)]

    def title(self, name: str) -> str:
        return f"{PAIR_TASKS[self.short(name)].title}: encoder-decoder"

    def reads(self, name: str) -> str:
        return name

    def load(self, name: str, step: int) -> Checkpoint:
        pair = families.pair_of(name)
        assert pair is not None
        return families.reader(name, NEWEST, pair)

    def facts(self, loaded: Loaded) -> list[str]:
        exact = loaded.metrics.get("exact")
        return super().facts(loaded) if exact is None else [f"{exact:.1%} exact match on held-out targets"]


class Tasks(Source):
    """A small model for each synthetic task."""

    begins = TASK
    good_for = "checking heads: the sources of each answer are known"

    def offers(self, named: str | None) -> list[str]:
        return [self.begins + task for task in MODELLED if _is_shipped(f"{TASK_FOLDER}/{task}")]

    def title(self, name: str) -> str:
        return f"Task: {MODELLED[self.short(name)].title} (trained)"

    def reads(self, name: str) -> str:
        task = self.short(name)
        return task if task in MODELLED else "letters"

    def load(self, name: str, step: int) -> Checkpoint:
        return task_model(self.short(name))


class Published(Source):
    """Models that others trained, on much English text: their tokens are words."""

    begins = PRETRAINED

    def offers(self, named: str | None) -> list[str]:
        return [self.begins + short for short in session.published()]

    def title(self, name: str) -> str:
        known = sources.KNOWN.get(short := self.short(name))
        return known.title if known else f"{short}, from this server's folder"

    def missing(self, name: str) -> str:
        known = sources.KNOWN.get(self.short(name))
        return f"{known.short} is not on this server" if known else super().missing(name)

    def reads(self, name: str) -> str:
        return "words"

    def load(self, name: str, step: int) -> Loaded:
        return published(name)

    def use(self, name: str) -> str:
        facts = "facts, induction and your own text; it continues text but does not follow instructions"
        return facts if name.startswith(REAL_MODEL) else ""

    def facts(self, loaded: Loaded) -> list[str]:
        assert isinstance(loaded, Pretrained)
        bits, known = f"{loaded.bits:.3g} bits per weight", loaded.facts
        if known is None:
            return [bits]
        return [f"by {known.made_by}, {known.tokens} tokens (published)", known.licence, bits]

    def further(self, loaded: Loaded, steps: int | None) -> str | None:
        assert isinstance(loaded, Pretrained)
        c, known = loaded.config, loaded.facts
        said = [f"Width {c.d_model}, context {c.context:,}, {c.vocab_size:,} tokens."]
        if known is not None:
            said.append(
                f"{known.repository} from Hugging Face, trained on {known.tokens} tokens according to its"
                f" developers: {known.source}."
            )
        said.append(
            f"Read from {safe(loaded.path.name)}, which stores {loaded.bits:.3g} bits per weight on average;"
            " computed in float32."
        )
        return " ".join(said)


class Opened(Published):
    """Published ones in a file on this computer."""

    begins = fetching.FILE

    def offers(self, named: str | None) -> list[str]:
        return fetching.files(named)

    def title(self, name: str) -> str:
        return f"{fetching.file_name(name)}, from a file"

    def missing(self, name: str) -> str:
        return Source.missing(self, name)

    def load(self, name: str, step: int) -> Loaded:
        return _pretrained(fetching.file_name(name), str(fetching.path_of(name)))


class Untrained(Source):
    """Presets as they are before their first step."""

    begins = UNTRAINED
    good_for = "a baseline: what random weights do before any training"

    def offers(self, named: str | None) -> list[str]:
        return [self.begins + preset for preset in TRAINABLE]

    def title(self, name: str) -> str:
        return f"{PRESETS[self.short(name)].title}, untrained"

    def load(self, name: str, step: int) -> Checkpoint:
        return _untrained(self.short(name))


# In the order in which the bar offers them
SOURCES: tuple[Source, ...] = (
    *(Runs(), TunedHere(), Shipped(), Lapses(), Encoders(), Pairs(), Tasks()),
    *(Published(), Opened(), Untrained()),
)


def source_of(name: str) -> Source:
    """Returns the source of a model by its name."""
    return next((source for source in SOURCES if source.owns(name)), Source())


def offered(named: str | None = None) -> list[str]:
    """Returns the names of all models that can be looked into here, this visitor's first; also one that a
    link names.
    """
    return [name for source in SOURCES for name in source.offers(named)]


def title_of(name: str) -> str:
    return source_of(name).title(name)


def kind_of(name: str) -> str:
    """Returns what a model reads: `words`, a synthetic task, `gaps`, a pair's name, or `letters`."""
    return source_of(name).reads(name)


def is_pretrained(name: str) -> bool:
    """True if others trained the model: its texts are English, its tokens words."""
    return kind_of(name) == "words"


def is_training(name: str) -> bool:
    """True if its model can be looked into at several steps: a run, or a time-lapse."""
    return isinstance(source_of(name), Training)


def origin(name: str) -> str:
    """Returns the name of the model that a fine-tuned one began as; of any other its own."""
    checkpoint = tuned.get(name)
    return name if checkpoint is None else checkpoint.base


def good_for(name: str) -> str:
    """Returns a sentence about the use of a model; empty for one that is not known here."""
    use = source_of(name).use(name)
    return f"Good for {use}." if use else ""


# Those of a training ----------------------------------------------------------------------------


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
    return {name: title_of(name) for name in views}


def _opens(view: RunView) -> bool:
    """True if the model can be looked into yet: a single stack, or the encoder of two."""
    return bool(view.snapshots) and (view.spec.kind.inside or view.spec.kind is PAIRS)


def model_after(name: str, step: int) -> Checkpoint:
    """Returns the model of a training after one of its steps. Raises GlassformerError when that is gone."""
    source = source_of(name)
    assert isinstance(source, Training)
    return source.after(name, step)


@memo.loaded()
def _snapshot(name: str, step: int) -> Checkpoint:
    return model_after(name, step)


@memo.loaded()
def lapse_of(name: str) -> Lapse:
    """Returns the time-lapse of that name in LAPSES. Raises CheckpointError when it is not whole."""
    return open_lapse(ROOT / "checkpoints" / name)


# Reading them -----------------------------------------------------------------------------------


def model_of(name: str, step: int, steps: tuple[int, ...]) -> Loaded:
    """Returns the model of a name. A snapshot that went away while we looked, or a file that cannot be read,
    ends the page with a sentence.
    """
    try:
        return source_of(name).load(name, max(steps) if step == NEWEST and steps else step)
    except GlassformerError as error:
        st.error(safe(str(error)))
        st.stop()
        raise


def _is_shipped(folder: str) -> bool:
    return (ROOT / "checkpoints" / folder).is_dir()


@memo.loaded("Reading the model …")
def _shipped(name: str) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


def task_model(task: str) -> Checkpoint:
    """Returns the model of a synthetic task. Raises CheckpointError when it is not there."""
    return _shipped(f"{TASK_FOLDER}/{task}")


def published(name: str) -> Pretrained:
    """Returns the published model of that name. Raises PretrainedError where it cannot be read."""
    return _pretrained(name.removeprefix(PRETRAINED), None)


# Not in the store: its weights, at most `max_pretrained` of four bytes, are mapped from a file.
@st.cache_resource(max_entries=2, show_spinner="Reading the model: a few seconds the first time …")
def _pretrained(name: str, path: str | None) -> Pretrained:
    """One copy for everybody who looks."""
    return library.load(name, session.profile().max_pretrained, path)


@memo.loaded()
def _untrained(preset: str) -> Checkpoint:
    """A preset's model as it is before its first step, with the alphabet of the shipped ones."""
    values = json.loads((ROOT / "checkpoints" / FIRST_MODEL / checkpoints.TOKENIZER).read_text("utf-8"))
    tokenizer = tokenizer_from_dict(values)
    config = ModelConfig(**{**PRESETS[preset].model.to_dict(), "vocab_size": tokenizer.vocab_size})
    model = build(config).requires_grad_(False).eval()
    return Checkpoint(model, model.config, tokenizer, {"corpus": "shakespeare"})


# What is known of one ---------------------------------------------------------------------------


def facts(name: str, loaded: Loaded, total: int | None, step: int, steps: tuple[int, ...]) -> str:
    """Returns the line below a model's name: its sizes, and how it was trained; `total` steps, where it is
    looked into at one of them.
    """
    c = loaded.config
    half = families.reads_only(loaded) or (isinstance(loaded, Pretrained) and pairs.is_pair(loaded.path))
    said = [
        *(["its encoder"] if half else []),
        f"{parameter_formula(c, loaded.model.parts):,} parameters",
        f"{counted(c.n_layers, 'block')} × {counted(c.n_heads, 'head')}, width {c.d_model}",
        *source_of(name).facts(loaded),
    ]
    if total is not None:
        at = f"newest: step {max(steps):,}" if step == NEWEST else f"step {step:,}"
        said.append(f"{at} of {total:,}")
    return " · ".join(said)


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


def _compared(metrics: Mapping[str, object], context: int) -> str | None:
    """Says what the validation loss of a shipped model compares with."""
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
