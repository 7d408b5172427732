"""Steering, held against the plain way: the whole text through the whole model again for every token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import SampleConfig
from engine.errors import ConfigError, ShapeError, TokenizerError
from engine.measure import steering
from engine.measure.steering import (
    Continued,
    Direction,
    Where,
    aligned,
    beginning,
    continued,
    cost,
    direction,
    mood_words,
    read,
)
from engine.model import Transformer
from engine.probe import Patcher, Recorder
from engine.progress import Progress, finish
from engine.sample.generate import generate
from engine.tokenizers.char import CharTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

LETTERS = CharTokenizer("\n abcdefgh")
BARE = CharTokenizer("abcdefghijk")
GREEDY = SampleConfig(temperature=0.0)
VARIANTS: dict[str, dict[str, Any]] = {
    "learned": {},
    "rope": {"position": "rope", "norm": "rmsnorm", "ffn": "swiglu", "n_kv_heads": 2},
    "alibi": {"position": "alibi", "wiring": "parallel"},
    "post": {"wiring": "post", "position": "sinusoidal"},
}


def model_of(**fields: Any) -> Transformer:
    return loud(tiny(vocab_size=LETTERS.vocab_size, context=24, **fields))


def resid(model: Transformer, ids: list[int], layer: int) -> torch.Tensor:
    seen = Recorder()
    with torch.no_grad():
        model(torch.tensor([ids]), seen)
    return seen[f"blocks.{layer}.resid_pre"][0]


def plainly(model: Transformer, table: torch.Tensor, layer: int, prompt: list[int], count: int) -> list[int]:
    """The likeliest tokens, with table[:length] (position, d_model) added: no cache, no batch."""
    text = list(prompt)
    for _ in range(count):
        edit = {f"blocks.{layer}.resid_pre": lambda x: x + table[: x.shape[1]]}
        with torch.no_grad():
            text.append(int(model(torch.tensor([text]), Patcher(edit))[0, -1].argmax()))
    return text[len(prompt) :]


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
@for_each("where", ["front", "every"])
def test_a_continuation_is_that_of_the_plain_way(fields: dict[str, Any], where: Where) -> None:
    model = model_of(**fields)
    found = direction(model, LETTERS, "abc", "hg", 1, where)
    one, other = LETTERS.encode("\nabc"), LETTERS.encode("\nhg ")  # filled up with a blank
    table = torch.zeros(24, 16)
    if where == "front":
        table[1:4] = 2.5 * (resid(model, one, 1) - resid(model, other, 1))[1:]
    else:
        short = resid(model, other[:3], 1)[1:].mean(0)
        table[1:] = 2.5 * (resid(model, one, 1)[1:].mean(0) - short)
    prompt = [*LETTERS.encode("\nfed")]
    made = finish(continued(model, found, 2.5, prompt, 12, GREEDY))
    assert list(made.steered) == plainly(model, table, 1, prompt, 12)
    assert list(made.plain) == list(generate(model, prompt, 12, GREEDY))
    assert made.plain != made.steered
    assert made.plain[: made.same] == made.steered[: made.same]
    assert made.plain[made.same] != made.steered[made.same]


def test_nothing_added_changes_nothing_and_the_draws_are_those_of_the_seed() -> None:
    model, sampling = model_of(), SampleConfig(temperature=0.9, seed=5, top_p=0.9, repetition_penalty=1.3)
    found = direction(model, LETTERS, "abc", "hgf", 1, "every")
    prompt = LETTERS.encode("\nfed")
    made = finish(continued(model, found, 0.0, prompt, 15, sampling))
    assert made.plain == made.steered == tuple(generate(model, prompt, 15, sampling))
    assert made.same == 15 and not made.lifted


def test_the_mood_is_the_probability_of_the_words_that_are_wanted() -> None:
    """Against whole passes, one for each step: no cache, no batch."""
    model = model_of()
    found = direction(model, LETTERS, "abc", "hg", 1, "every")
    wanted = mood_words(LETTERS, "abc", "hg")
    assert [LETTERS.decode([i]) for i in wanted] == ["a", "b", "c"]
    prompt = LETTERS.encode("\nfed")
    made = finish(continued(model, found, 2.5, prompt, 6, GREEDY, wanted))
    shares = []
    for text, coefficient in ((made.plain, 0.0), (made.steered, 2.5)):
        ids = [*prompt, *text[:-1]]
        with torch.no_grad():
            p = model(torch.tensor([ids]), Patcher(found.edits(coefficient)))[0].double().softmax(-1)
        shares.append(float(p[len(prompt) - 1 :, list(wanted)].sum(-1).mean()))
    assert made.mood == pytest.approx(shares, abs=1e-6)
    assert made.times == pytest.approx(shares[1] / shares[0], rel=1e-4)
    assert made.one_in == pytest.approx([1 / share for share in shares], rel=1e-4)


@for_each(
    ("mood", "came"),
    [((0.01, 0.02), "came"), ((0.02, 0.01), "went"), ((0.01, 0.019), "stayed"), ((0.0, 0.0), "stayed")],
)
def test_whether_the_mood_came(mood: tuple[float, float], came: str) -> None:
    assert Continued((1,), (1,), (), mood).came == came


def test_words_of_a_mood_are_those_that_the_other_prompt_lacks() -> None:
    assert [LETTERS.decode([i]) for i in mood_words(LETTERS, "ab a", "b")] == ["a"], "no blank, no b"
    assert mood_words(LETTERS, "ab", "ba") == ()


def test_what_is_lifted() -> None:
    model = model_of()
    found = direction(model, LETTERS, "abc", "hgf", 0, "every")
    prompt = LETTERS.encode("\nfed")
    made = finish(continued(model, found, 3.0, prompt, 1, GREEDY))
    with torch.no_grad():
        before = model(torch.tensor([prompt]))[0, -1].softmax(-1)
        after = model(torch.tensor([prompt]), Patcher(found.edits(3.0)))[0, -1].softmax(-1)
    gained = (after - before).numpy()
    assert [lift.token for lift in made.lifted] == [i for i in np.argsort(-gained)[:6] if gained[i] > 0]
    first = made.lifted[0]
    assert first.before == pytest.approx(float(before[first.token]), abs=1e-5)
    assert first.after == pytest.approx(float(after[first.token]), abs=1e-5)


@for_each("where", ["front", "every"])
def test_the_cost_is_the_loss_of_every_row(where: Where) -> None:
    model = model_of()
    found = direction(model, LETTERS, "abc", "hgf", 1, where)
    rows = steering.rows_of(LETTERS.encode("abcdefgh" * 5), beginning(LETTERS), 12, 3)
    assert rows.shape == (3, 12) and rows[:, 0].eq(LETTERS.encode("\n")[0]).all()
    steps, seen = cost(model, found, (-2.0, 0.0, 2.0), rows), []
    try:
        while True:
            seen.append(next(steps))
    except StopIteration as end:
        made = end.value
    assert seen == [Progress(i, 3) for i in (1, 2, 3)]
    first = 4 if where == "front" else 1
    for c, loss in zip((-2.0, 0.0, 2.0), made.loss, strict=True):
        own = []
        for row in rows:
            with torch.no_grad():
                logits = model(row[None], Patcher(found.edits(c)))[0]
            own += [float(-logits[i].log_softmax(-1)[row[i + 1]]) for i in range(first, 11)]
        assert loss == pytest.approx(np.mean(own), abs=1e-5)
        assert made.at(c) == pytest.approx(np.exp(np.mean(own)), rel=1e-4)
    assert made.tokens == 3 * (11 - first)
    with torch.no_grad():
        plain = model(rows)[:, first:-1].flatten(0, 1)
    assert made.loss[1] == pytest.approx(float(F.cross_entropy(plain, rows[:, first + 1 :].flatten())))
    assert made.loss[0] != pytest.approx(made.loss[1], abs=1e-3)


def test_where_and_how_strongly_it_is_added() -> None:
    model = model_of()
    found = direction(model, LETTERS, "ab", "hg", 1, "front")
    one, other = (resid(model, LETTERS.encode(text), 1)[1:] for text in ("\nab", "\nhg"))
    assert found.length == pytest.approx(float((one - other).norm(dim=1).mean()), rel=1e-5)
    assert found.stream == pytest.approx(float(torch.cat([one, other]).norm(dim=1).mean()), rel=1e-5)
    assert found.strength(-3.0) == pytest.approx(3 * found.length / found.stream)
    vectors = torch.tensor([[1.0], [2.0]])
    front = Direction(0, "front", vectors, 1, 1.0, 1.0)
    assert front.added(2.0, 0, 5).ravel().tolist() == [0, 2, 4, 0, 0]
    assert front.added(2.0, 2, 4).ravel().tolist() == [4, 0]
    assert front.added(2.0, 3, 4).ravel().tolist() == [0]
    every = Direction(0, "every", vectors[:1], 1, 1.0, 1.0)
    assert every.added(-1.0, 0, 3).ravel().tolist() == [0, -1, -1]
    assert every.added(-1.0, 7, 9).ravel().tolist() == [-1, -1]
    assert aligned(LETTERS, "abc", "d") == (tuple(LETTERS.encode("\nabc")), tuple(LETTERS.encode("\nd  ")))
    assert beginning(BARE) == () and read(BARE, "ab") == tuple(BARE.encode("ab"))
    with pytest.raises(TokenizerError, match="blank"):
        aligned(BARE, "abc", "d")
    with pytest.raises(TokenizerError, match="first prompt is empty"):
        aligned(LETTERS, "", "d")
    with pytest.raises(TokenizerError, match="does not know x"):
        read(LETTERS, "xa")


def test_what_cannot_be_steered() -> None:
    model = model_of()
    found = direction(model, LETTERS, "abc", "hgf", 1, "front")
    prompt = LETTERS.encode("\nfed")
    with pytest.raises(ShapeError, match="shorten the text"):
        finish(continued(model, found, 1.0, prompt, 21, GREEDY))
    with pytest.raises(ShapeError, match="causal"):
        finish(continued(model_of(causal=False), found, 1.0, prompt, 2, GREEDY))
    with pytest.raises(ShapeError, match="shorten"):
        direction(model, LETTERS, "a" * 30, "b", 0, "front")
    with pytest.raises(ConfigError, match="layer"):
        direction(model, LETTERS, "a", "b", 2, "front")
    with pytest.raises(ShapeError, match="too many"):
        finish(cost(model, found, (0.0,), torch.zeros(1, 5, dtype=torch.int64)))
    with pytest.raises(ShapeError, match="does not fill"):
        steering.rows_of([1, 2], [0], 4, 1)
