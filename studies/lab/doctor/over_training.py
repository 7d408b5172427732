"""Checks of a training's text and of its course."""

from __future__ import annotations

import math

import numpy as np
import torch

from engine.config import SampleConfig
from engine.data.tokenizers import written
from engine.sample import generate
from engine.training.batches import measure
from studies.lab.doctor.case import Case, NotApplicable
from studies.lab.doctor.check import Measurement

YOUNG = 0.3  # nats above counting pairs: a model that young writes noise, healthy or not
WINDOW = 32  # tokens of validation text that are looked for in the training text
ENOUGH, READ = 100, 75_000  # steps and tokens before which a training is not judged
LENGTH, SHOWN = 80, 60  # tokens that a model writes to be judged, and letters of them that are shown
TEMPERATURE = 0.8  # the usual one: at 1 a young model writes more noise than its loss says
LOOKED = 8192  # tokens of held-out text that it reads


def next_tokens(case: Case) -> Measurement:
    """Measures the share of targets that are the next input."""
    if case.settings.objective != "next_token":
        raise NotApplicable("This model is trained to fill in masked tokens, not to predict the next token.")
    batch = case.batch()
    x, y = batch.inputs[:, 1:], batch.targets[:, :-1]
    here = float((batch.inputs == batch.targets).double().mean())
    return Measurement(float((x == y).double().mean()), {"here": here})


def unseen(case: Case) -> Measurement:
    """Measures the share of the validation split's windows of WINDOW tokens that training has, too."""
    corpus = case.batches().corpus
    train, validation = (_windows(tokens.numpy()) for tokens in (corpus.train, corpus.validation))
    if not len(train) or not len(validation):
        raise NotApplicable(f"The text is too short: a window has {WINDOW} tokens.")
    return Measurement(float(np.isin(validation, train).mean()), {"window": WINDOW})


def _windows(tokens: np.ndarray) -> np.ndarray:
    """Every run of WINDOW tokens as one number (a polynomial modulo 2^64)."""
    count = max(0, len(tokens) - WINDOW + 1)
    result, factor = np.zeros(count, np.uint64), np.uint64(6364136223846793005)
    with np.errstate(over="ignore"):
        for i in range(WINDOW):
            result = result * factor + tokens[i : i + count].astype(np.uint64) + np.uint64(1)
    return result


def gap(case: Case) -> Measurement:
    """Measures the validation loss minus the training loss at the end, nats."""
    looks = case.curve.evaluations if case.curve else ()
    looks = tuple(e for e in looks if e.step >= ENOUGH)
    if not looks:
        raise NotApplicable(f"Its training has no evaluation at step {ENOUGH} or later.")
    last = looks[-1]
    return Measurement(
        last.validation_loss - last.train_loss, {"train": last.train_loss, "validation": last.validation_loss}
    )


def learned(case: Case) -> Measurement:
    """Measures the final training loss minus the loss of counting letters, nats."""
    losses, counting = case.smoothed(), case.batches().corpus.baselines["unigram"]
    assert case.curve is not None
    read = case.curve.steps[-1] * case.settings.batch_size * case.model.config.context
    if case.curve.steps[-1] < ENOUGH or read < READ:
        raise NotApplicable(f"Training has read {read:,} tokens, too few to judge.")
    return Measurement(float(losses[-1]) - counting, {"loss": float(losses[-1]), "counting": counting})


def largest_rise(case: Case) -> Measurement:
    """Measures the largest rise of the smoothed loss above its earlier minimum, in nats."""
    losses = case.smoothed()
    assert case.curve is not None
    if case.curve.diverged or not np.isfinite(losses).all():
        return Measurement(math.inf, {"step": int(case.curve.steps[-1])})
    rises = losses - np.minimum.accumulate(losses)
    at = int(rises.argmax())
    return Measurement(float(rises[at]), {"step": int(case.curve.steps[min(at + 9, len(losses) - 1)])})


@torch.no_grad()
def what_it_writes(case: Case) -> Measurement:
    """Measures how surprising the model's text is to counted pairs of tokens, minus what its loss lets one
    expect, nats per token; the median of TEXTS texts. Far above 0 it is nonsense, far below it repeats.
    """
    if case.corpus is None or not case.predicts_next:
        raise NotApplicable("There is no text to compare its own text with.")
    if case.settings.objective != "next_token":
        raise NotApplicable("This model fills in masked tokens and writes no text.")
    model, batches = case.evaluated, case.batches()
    corpus = batches.corpus
    loss = measure(model, batches, corpus.validation, LOOKED).nats
    if not loss < corpus.baselines["bigram"] + YOUNG:
        raise NotApplicable(f"At a loss of {loss:.2f} nats any model still writes noise.")
    texts = []
    for seed, prompt in enumerate(case.ids.tolist()):
        ids = list(generate(model, prompt, LENGTH, SampleConfig(temperature=TEMPERATURE, seed=seed)))
        texts.append((surprise(corpus.train.numpy(), np.array(ids), corpus.vocab_size), seed, ids))
    counted, _, ids = sorted(texts)[len(texts) // 2]
    expected = max(loss, corpus.baselines["bigram"])
    text = " ".join(written(corpus.tokenizer, ids).split())[:SHOWN]
    return Measurement(counted - expected, {"loss": loss, "counted": counted, "text": text})


def surprise(train: np.ndarray, ids: np.ndarray, vocab: int) -> float:
    """Returns the mean -ln p of each token, p = (count of it after the last + 1) / (that one's + V)."""
    pairs, often = np.unique(train[:-1].astype(np.int64) * vocab + train[1:], return_counts=True)
    asked = ids[:-1].astype(np.int64) * vocab + ids[1:]
    place = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
    both = np.where(pairs[place] == asked, often[place], 0)
    before = np.bincount(train[:-1], minlength=vocab)[ids[:-1]]
    return float(-np.log((both + 1.0) / (before + vocab)).mean())
