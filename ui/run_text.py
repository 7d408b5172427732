"""The text that a run trains on, and the losses that predictors without a network reach on it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import ConfigError, CorpusError
from engine.training.numerics import in_bits
from runs.state import RunSpec
from studies.experiments.race_table import Unit
from studies.tasks.task import Task
from ui import memo, session
from ui.background_jobs import Key, known
from ui.figures.losses import FLOOR


def merges_of(text: str, cut: str) -> Key:
    """Returns the key under which the training of a text's tokenizer is known (ui.background_jobs)."""
    return "merges", hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), cut


@memo.loaded()
def custom_corpus(text: str, tokenizer: str) -> Corpus:
    """Tokenizes and splits a text, once for each text and tokenizer. Raises CorpusError."""
    return corpora.from_text(text, tokenizer=tokenizer, cutter=known(merges_of(text, tokenizer)))


def corpus_of(spec: RunSpec) -> Corpus | None:
    """Returns the text of a run, cut into its tokens; None where it is no longer here."""
    cut = spec.train.tokenizer
    try:
        if spec.corpus == "text" and spec.text:
            return custom_corpus(spec.text, cut)
        return session.corpus(spec.corpus, cut)
    except (CorpusError, ConfigError):
        return None


def baselines(spec: RunSpec, unit: Unit = "nats") -> Mapping[str, float]:
    """Returns the losses that predictors without a network reach on the text of a run, and the floor of a
    task's loss under FLOOR; none where the text is no longer here.
    """
    corpus = corpus_of(spec)
    if corpus is None:
        return {}
    lines = corpus.baselines if unit == "nats" else corpus.baselines_in_bits
    task = corpus.task
    lowest = task.floor(spec.model.context) if isinstance(task, Task) else math.nan
    if not math.isfinite(lowest):
        return lines
    return {**lines, FLOOR: in_bits(lowest) if unit == "bits" else lowest}


def counting(name: str = "shakespeare", unit: Unit = "nats") -> Mapping[str, float]:
    """Returns the losses of counting on a text that comes with the app; none where it is not here."""
    try:
        corpus = session.corpus(name)
    except CorpusError:
        return {}
    return corpus.baselines if unit == "nats" else corpus.baselines_in_bits
