"""Right answers of the questions, measured on models that ship or worked out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine import checkpoints
from engine.config import SampleConfig
from engine.data import corpora
from engine.data.tokenizers import bpe
from engine.model import Transformer, build
from engine.recording import record, softmax
from engine.sample import complete, stages
from studies.attention.ablation import Switches, compare
from studies.experiments import no_causal_mask, scaling
from studies.lab.reference.second import forward
from studies.positions import permutation
from studies.residual.stream import outputs, writes
from studies.tasks.all import TASKS
from studies.tasks.problems import answered

SHIPPED = Path(__file__).parents[2] / "checkpoints"
ROUNDING = 1e-4  # of a vector's largest number: float32 in another order of sums
EVEN = 0.9  # of the largest entropy: from there on no character is preferred
LEVEL = 0.8  # of a first guess that is called sure
LARGE, CLEAR = 0.85, 0.2  # a weight of a head; what a prediction must lose for that to be seen
VOCABULARY, READ = 512, 100_000  # tokens, and characters of the text that they are learned from
ADDITION = "addition"


@dataclass(frozen=True)
class Key:
    """The name of the right option, and the numbers and words that question, options and reason hold."""

    right: str
    fields: Mapping[str, Any]


def untrained(prompt: str, layers: int, seed: int) -> Key:
    """Measures how even the first prediction of a model with random weights is."""
    shipped = _shipped("shakespeare-classic")
    model = build(replace(shipped.model.config, n_layers=layers), seed)
    shares = _next(model, shipped.tokenizer.encode(prompt))
    vocab = len(shares)
    even = _entropy(shares) > EVEN * math.log(vocab)
    return Key("random" if even else "words", {"top": shares.max(), "even": 1 / vocab, "vocab": vocab})


def facts(name: str, model: str) -> Key:
    """Measures the uncertainty about the first character of a speaker's lines, one unknown and one known."""
    shipped = _shipped(model)
    unknown, known = (
        _entropy(_next(shipped.model, shipped.tokenizer.encode(f"{each}:\n"))) for each in (name, "ROMEO")
    )
    vocab = shipped.tokenizer.vocab_size
    right = "continues" if unknown < EVEN * math.log(vocab) else "even"
    return Key(right, {"choices": math.exp(unknown), "known": math.exp(known), "vocab": vocab})


def memory(statement: str, prompt: str, letter: str, model: str) -> Key:
    """Compares a model that has read a statement, and written on, with one that has not."""
    used, fresh = _shipped(model), _shipped(model)
    complete(used.model, used.tokenizer, statement, 40, 0.8, seed=0)
    at = used.tokenizer.encode(letter)[0]
    after, never = (_next(each.model, each.tokenizer.encode(prompt)) for each in (used, fresh))
    right = "same" if np.array_equal(after, never) else "learned" if after[at] > never[at] else ""
    return Key(right, {"share": never[at]})


def tokens(word: str, syllables: str) -> Key:
    """Cuts an invented word by byte-pair encoding that was learned from the Python manual."""
    cutter = bpe.train(corpora.load("python").text[:READ], VOCABULARY)
    ids = cutter.encode(word)
    pieces = [cutter.decode([i]) for i in ids]
    cut = "-".join(pieces)
    right = "syllables" if cut == syllables else "pieces" if len(ids) > 1 else "unknown"
    return Key(right, {"vocab": VOCABULARY, "pieces": " + ".join(f"“{piece}”" for piece in pieces)})


def temperature(text: str, hot: float, model: str) -> Key:
    """Compares the ranks of all next characters at temperature 1 and at a higher one."""
    shipped = _shipped(model)
    logits = record(shipped.model, shipped.tokenizer.encode(text), only={"logits"}).logits[-1]
    cold, warm = (
        stages(logits, SampleConfig(temperature=each), ())[-1].probabilities.astype(np.float64)
        for each in (1.0, hot)
    )
    order = np.argsort(-cold, kind="stable")
    falling = bool((np.diff(warm[order]) <= 0).all())
    right = "new" if (cold == 0).any() else "order" if falling else "noise"
    first, second = cold[order[:2]]
    return Key(right, {"first": first, "second": second, "after": warm[order[0]], "vocab": len(cold)})


def confidence(language: str, text: str, model: str) -> Key:
    """Counts how many of a model's sure guesses are right on a text of another language."""
    shipped = _shipped(model)
    ids = shipped.tokenizer.encode(text)[: shipped.model.config.context]
    shares = softmax(record(shipped.model, ids, only={"logits"}).logits[:-1].astype(np.float64))
    sure = shares.max(-1) > LEVEL
    hits = int((shares.argmax(-1) == np.array(ids[1:]))[sure].sum())
    count, mean = int(sure.sum()), float(shares.max(-1)[sure].mean())
    low = round(mean * count) - 2  # about a standard deviation below what these probabilities promise
    right = "fewer" if hits < low else "expected" if hits < count else "all"
    ends = {"below": low - 1, "low": low, "high": count - 1}
    fields = {"count": count, "level": LEVEL, "mean": mean, "right": hits} | ends
    return Key(right if hits else "none", fields)


def errors(seed: int, count: int) -> Key:
    """Has a second program answer the sums that a model of addition has answered, with the same weights."""
    shipped, task = checkpoints.load(SHIPPED / "tasks" / ADDITION), TASKS[ADDITION]
    draws = random.Random(f"sums/{seed}")
    lines = [f"\n{task.draw(draws, i)}\n" for i in range(count)]
    ids = torch.tensor([shipped.tokenizer.encode(line) for line in lines])
    ours = answered(shipped.model, shipped.tokenizer, task, ids)
    weights = {name: p.detach() for name, p in shipped.model.named_parameters()}
    begin = task.given  # the last character that is given, behind a line break
    agree = True
    for line in ours:
        read = torch.tensor(shipped.tokenizer.encode(f"\n{line.line}"))
        theirs = forward(shipped.model.config, weights, read[:-1])["logits"].argmax(-1)
        agree = agree and bool((theirs[begin:] == read[begin + 1 :]).all())
    wrong = [line for line in ours if not line.right]
    a, b, total = re.findall(r"\d+", wrong[-1].line)
    written = f"{int(a)} + {int(b)} = {int(total)}"
    return Key("same" if agree else "others", {"wrong": len(wrong), "sum": written})


def three_sizes(budget: float) -> Key:
    """Compares the smallest, the best and the largest model of a stored budget, means over seeds."""
    runs = [run for run in scaling.shipped() if run.plan.budget == budget]
    read = {run.parameters: run.tokens for run in runs}
    sizes = sorted(read)
    losses = [float(np.mean([run.loss for run in runs if run.parameters == size])) for size in sizes]
    best = int(np.argmin(losses[1:-1])) + 1
    shown = {"small": 0, "middle": best, "large": len(sizes) - 1}
    order = sorted(shown, key=lambda name: losses[shown[name]])
    gaps = [losses[shown[b]] - losses[shown[a]] for a, b in pairwise(order)]
    right = order[0] if gaps[0] > 0.02 else "alike"
    fields: dict[str, float] = {name: sizes[at] for name, at in shown.items()}
    fields |= {f"{name}_loss": losses[at] for name, at in shown.items()}
    fields |= {f"{name}_text": int(float(f"{read[sizes[at]]:.1e}")) for name, at in shown.items()}
    return Key(right, fields | {"seeds": len({run.plan.seed for run in runs})})


def attention(text: str, model: str) -> Key:
    """Switches off, one at a time, the heads that give one character nearly all of their weight."""
    shipped = _shipped(model)
    ids = shipped.tokenizer.encode(text)
    recording = record(shipped.model, ids)
    shares = softmax(recording.logits[-1].astype(np.float64))
    first = int(shares.argmax())
    sharp: list[tuple[float, float, int, str]] = []  # (the first guess without the head, weight, where, head)
    for layer in range(recording.config.n_layers):
        for head, row in enumerate(recording[f"blocks.{layer}.pattern"][:, -1]):
            if (weight := float(row.max())) > LARGE:
                off = compare(shipped.model, recording, Switches(heads_off=((layer, head),))).after
                without = float(softmax(off.logits[-1])[first])
                sharp.append((without, weight, int(row.argmax()), f"{layer}.{head}"))
    before = float(shares[first])
    idle = min(sharp, key=lambda each: abs(each[0] - before))
    needed = min(sharp)
    open_question = abs(idle[0] - before) < CLEAR / 2 and before - needed[0] > CLEAR
    fields = {"before": before, "after": idle[0], "weight": idle[1], "position": _position(text, idle[2])}
    fields |= {"other_after": needed[0], "other_weight": needed[1], "head": idle[3], "last": len(ids) - 1}
    return Key("reads" if open_question else "needed", fields)


def heads(text: str, model: str) -> Key:
    """Counts the characters to which each head gives a weight above 0."""
    shipped = _shipped(model)
    ids = shipped.tokenizer.encode(text)
    patterns = record(shipped.model, ids).stacked("pattern")  # (layer, head, query, key)
    counts = set((patterns[:, :, -1] > 0).sum(-1).ravel().tolist())
    n_heads = shipped.model.config.n_heads
    share = len(ids) // n_heads
    names = {len(ids): "all", share: "shared", 1: "single"}
    right = names.get(min(counts), "kind") if len(counts) == 1 else "kind"
    return Key(right, {"heads": n_heads, "length": len(ids), "share": share})


def order_of_words(first: str, word: str) -> Key:
    """Compares the vectors of a word in a sentence and in its reverse, without positions and mask."""
    words = first.split()
    order = permutation.new_order(len(words), "reverse")
    compared = permutation.compare(permutation.word_ids(words), order, permutation.Plan())
    largest = float(compared.by_word[words.index(word)])
    second = " ".join(words[i] for i in order)
    return Key("same" if largest < ROUNDING else "before", {"second": second})


def mask(steps: int) -> Key:
    """Reads the losses of a stored training with the causal mask and without."""
    both = no_causal_mask.shipped()
    at = both.masked.steps.index(steps)
    masked, unmasked = (each.losses[at] for each in (both.masked, both.unmasked))
    metrics = no_causal_mask.square(no_causal_mask.UNMASKED).metrics
    written = " ".join(both.unmasked.texts[at].split())[:16]
    fields = {"masked": masked, "unmasked": unmasked, "written": written}
    if unmasked > masked / 2:
        return Key("speed", fields)
    return Key("leaks" if metrics["end_loss"] > masked else "better", fields)


def residual(text: str, model: str) -> Key:
    """Compares the last vector of the stream with the embedding, with the last write and with their sum."""
    shipped = _shipped(model)
    recording = record(shipped.model, shipped.tokenizer.encode(text))
    final = outputs(recording)[-1][-1].astype(np.float64)
    parts = [write.array[-1].astype(np.float64) for write in writes(recording)]
    last = recording.config.n_layers - 1
    block = sum(recording[f"blocks.{last}.{name}"][-1].astype(np.float64) for name in ("attn_out", "ffn_out"))
    begin = recording["blocks.0.resid_pre"][-1].astype(np.float64)
    ways = {"sum": sum(parts), "copy": begin, "last": block, "mean": sum(parts) / len(parts)}
    apart = {name: float(np.abs(way - final).max() / np.abs(final).max()) for name, way in ways.items()}
    right = min(apart, key=lambda name: apart[name])
    fields = {"blocks": recording.config.n_layers, "share": float(begin @ final / (final @ final))}
    return Key(right if apart[right] < ROUNDING else "", fields)


def perplexity(fine: str, coarse: str, letters: float, length: float, tokens: float) -> Key:
    """Spreads a perplexity per token over the token's characters; `fine` and `coarse` name the models."""
    spread = tokens ** (1 / length)
    return Key("coarse" if spread < letters else "fine", {"spread": spread})


MEASURES: Mapping[str, Callable[..., Key]] = {
    "untrained": untrained,
    "facts": facts,
    "memory": memory,
    "tokens": tokens,
    "temperature": temperature,
    "confidence": confidence,
    "errors": errors,
    "scaling": three_sizes,
    "attention": attention,
    "heads": heads,
    "positions": order_of_words,
    "mask": mask,
    "residual": residual,
    "perplexity": perplexity,
}


def _shipped(name: str) -> checkpoints.Checkpoint:
    return checkpoints.load(SHIPPED / name)


def _next(model: Transformer, ids: list[int]) -> np.ndarray:
    """The probabilities of the next token, (vocab,) float64."""
    return softmax(record(model, ids, only={"logits"}).logits[-1].astype(np.float64))


def _entropy(shares: np.ndarray) -> float:
    """In nats."""
    return float(-(shares * np.log(shares)).sum())


def _position(text: str, at: int) -> str:
    """The character of a text at an index, in words.

    >>> _position("to be", 2), _position("to be", 4)
    ('the space 2 characters before it', 'that character itself')
    """
    back = len(text) - 1 - at
    if not back:
        return "that character itself"
    name = "the space" if text[at] == " " else f"the “{text[at]}”"
    return f"{name} {back} {'character' if back == 1 else 'characters'} before it"
