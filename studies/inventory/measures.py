"""Right answers of the questions, measured on models that ship or worked out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
NEAR = 0.3  # nats by which two uncertainties may differ and still be about the same
SEEN = 0.1  # nats by which a loss must change to be said to fall or rise
LEVEL = 0.8  # of a first guess that is called sure
CLEARLY = 3  # right guesses too few to be what the probabilities promise
LARGE, CLEAR = 0.85, 0.2  # a weight of a head; what a prediction must lose for that to be seen
VOCABULARY, READ = 512, 100_000  # tokens, and characters of the text that they are learned from
ADDITION = "addition"
HELD_OUT = """\
Servant:
Mistress, your father prays you leave your books
And help to dress your sister's chamber up:
You know to-morrow is the wedding-day.

BIANCA:
Farewell, sweet masters both; I must be gone.

LUCENTIO:
Faith, mistress, then I have no cause to stay.

HORTENSIO:
But I have cause to pry into this p"""  # Tiny Shakespeare, of the part that no model was trained on


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
    even = EVEN * math.log(shipped.tokenizer.vocab_size)
    right = "even" if unknown > even else "continues" if abs(unknown - known) < NEAR else ""
    vocab = _shipped(model).tokenizer.vocab_size
    return Key(right, {"choices": math.exp(unknown), "known": math.exp(known), "vocab": vocab})


def memory(statement: str, prompt: str, letter: str, model: str) -> Key:
    """Compares a model that has read a statement, and written on, with one that has not."""
    used, fresh = _shipped(model), _shipped(model)
    complete(used.model, used.tokenizer, statement, 40, 0.8, seed=0)
    at = used.tokenizer.encode(letter)[0]
    after, never = (_next(each.model, each.tokenizer.encode(prompt)) for each in (used, fresh))
    changed = "learned" if after[at] > never[at] else "avoided"
    return Key("same" if np.array_equal(after, never) else changed, {"share": never[at]})


def tokens(word: str, syllables: str) -> Key:
    """Cuts an invented word by byte-pair encoding that was learned from the Python manual."""
    cutter = bpe.train(corpora.load("python").text[:READ], VOCABULARY)
    pieces = [cutter.decode([i]) for i in cutter.encode(word)]
    if len(pieces) == 1:
        right = "unknown"
    elif "-".join(pieces) == syllables:
        right = "syllables"
    else:
        right = "pieces" if min(map(len, pieces)) == 1 else ""
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
    right, count, promised = _sure(shipped, text)
    home, home_count, home_promised = _sure(shipped, HELD_OUT)
    expected = round(promised)
    option = "fewer" if right <= expected - CLEARLY else "expected" if right < count else "all"
    fields = {"count": count, "level": LEVEL, "mean": promised / count, "right": right, "expected": expected}
    fields |= {"home_share": home / home_count, "home_mean": home_promised / home_count}
    return Key(option if right else "none", fields)


def _sure(shipped: checkpoints.Checkpoint, text: str) -> tuple[int, int, float]:
    """(the right ones of a model's sure guesses at a text's characters, how many those are, the sum of their
    probabilities)
    """
    width, right, count, promised = shipped.model.config.context, 0, 0, 0.0
    for start in range(0, len(text), width):
        ids = shipped.tokenizer.encode(text[start : start + width])
        shares = softmax(record(shipped.model, ids, only={"logits"}).logits[:-1].astype(np.float64))
        sure = shares.max(-1) > LEVEL
        right += int((shares.argmax(-1) == np.array(ids[1:]))[sure].sum())
        count, promised = count + int(sure.sum()), promised + float(shares.max(-1)[sure].sum())
    return right, count, promised


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


def budget_of(budget: float) -> Key:
    """Follows the loss over the sizes of a stored budget, means over seeds."""
    runs = [run for run in scaling.shipped() if run.plan.budget == budget]
    sizes = sorted({run.parameters for run in runs})
    losses = [float(np.mean([run.loss for run in runs if run.parameters == size])) for size in sizes]
    best = int(np.argmin(losses))
    falls, rises = losses[0] - losses[best], losses[-1] - losses[best]
    steady = sorted(losses[: best + 1], reverse=True) + sorted(losses[best + 1 :]) == losses
    if max(falls, rises) < SEEN:
        right = "flat"
    elif steady:
        right = "valley" if min(falls, rises) > SEEN else "falls" if falls > rises else "rises"
    else:
        right = ""
    fields = {"small": sizes[0], "large": sizes[-1], "least": sizes[best], "least_loss": losses[best]}
    read = {run.parameters: run.tokens for run in runs}
    fields |= {"most": read[sizes[0]], "fewest": read[sizes[-1]]}
    fields |= {"small_loss": losses[0], "large_loss": losses[-1], "seeds": len({r.plan.seed for r in runs})}
    return Key(right, fields)


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
    at = words.index(word)
    after = order.tolist().index(at)  # where it stands in the reverse
    stays = float(np.abs(compared.before[after] - compared.after[after]).max()) < ROUNDING
    same = float(compared.by_word[at]) < ROUNDING
    fields = {"second": " ".join(words[i] for i in order), "other": words[after]}
    return Key("same" if same else "swapped" if stays else "counted", fields)


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
    """Compares the last vector of the stream with the embedding, the last write, and sums of such."""
    shipped = _shipped(model)
    recording = record(shipped.model, shipped.tokenizer.encode(text))
    final = outputs(recording)[-1][-1].astype(np.float64)
    parts = [write.array[-1].astype(np.float64) for write in writes(recording)]
    last = recording.config.n_layers - 1
    block = sum(recording[f"blocks.{last}.{name}"][-1].astype(np.float64) for name in ("attn_out", "ffn_out"))
    begin = recording["blocks.0.resid_pre"][-1].astype(np.float64)
    ways = {"sum": sum(parts), "copy": begin, "last": block, "skip": begin + block}
    apart = {name: float(np.abs(way - final).max() / np.abs(final).max()) for name, way in ways.items()}
    right = min(apart, key=lambda name: apart[name])
    fields = {"blocks": recording.config.n_layers, "share": float(begin @ final / (final @ final))}
    return Key(right if apart[right] < ROUNDING else "", fields)


def perplexity(fine: str, coarse: str, letters: int, length: int, tokens: int) -> Key:
    """Brings a perplexity per character to the unit of a token; `fine` and `coarse` name the models."""
    product = letters**length
    power = " · ".join([str(letters)] * length)
    return Key("coarse" if tokens < product else "fine", {"power": power, "product": product})


MEASURES: Mapping[str, Callable[..., Key]] = {
    "untrained": untrained,
    "facts": facts,
    "memory": memory,
    "tokens": tokens,
    "temperature": temperature,
    "confidence": confidence,
    "errors": errors,
    "scaling": budget_of,
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
