"""A fact in the stream, held against logits computed here from the recorded streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ShapeError, TokenizerError
from engine.measure.fact import Answer, Fact, Written, answer_of, trace
from engine.measure.habits import Named
from engine.measure.lens import logit_lens
from engine.measure.recording import record
from engine.tokenizers.char import CharTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (3, 9, 1, 6, 2)
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {}, "rms": {"norm": "rmsnorm", "position": "rope", "ffn": "swiglu"},
    "biases": {"norm_bias": True, "attention_bias": True, "ffn_bias": True},
    "parallel": {"wiring": "parallel", "tie_embeddings": False}, "no mixer": {"mixer": "none"},
    "no ffn": {"ffn": "none"}, "post": {"wiring": "post"}, "no residual": {"wiring": "none"},
}  # fmt: skip


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
@for_each("answer", [0, 7, None])
def test_rank_and_probability_at_every_depth(fields: dict[str, Any], answer: int | None) -> None:
    model = loud(tiny(**fields))
    recording = record(model, IDS)
    found = trace(model, recording, answer)
    ends = "norm2" if fields.get("wiring") == "post" else "resid_post"
    streams = [recording["blocks.0.resid_pre"], *(recording[f"blocks.{i}.{ends}"] for i in range(2))]
    for depth, stream in enumerate(streams):
        with torch.no_grad():
            x = model.norm_final(torch.tensor(stream[None, -1:]))[0, 0]
            p = (model.output_matrix @ x).double().softmax(0).numpy()
        wanted = found.answer
        assert found.rank[depth] == sorted(p, reverse=True).index(p[wanted]) + 1
        assert found.probability[depth] == pytest.approx(p[wanted], rel=1e-4)
        assert found.guess[depth] == p.argmax()
    if answer is None:
        assert found.answer == recording.likeliest(4) and found.rank[-1] == 1
    lens = logit_lens(model, recording)
    np.testing.assert_array_equal(found.guess, lens.guess[:, -1])


@for_each("name", ["plain", "rms", "biases", "parallel", "no mixer", "no ffn"])
def test_who_wrote_it(name: str) -> None:
    """Each sublayer's output, brought through the final norm's own division, by its own arithmetic."""
    model = loud(tiny(**VARIANTS[name]))
    recording = record(model, IDS)
    found = trace(model, recording, 7).written
    assert found is not None
    x = torch.tensor(recording["blocks.1.resid_post"][-1]).double()
    matrix = model.output_matrix.detach().double()
    u = matrix[7] - matrix.mean(0)
    norm = model.norm_final
    rms = model.config.norm == "rmsnorm"
    middle = x if rms else x - x.mean()
    size = (middle.square().mean() + model.config.norm_eps).sqrt()

    def pushes(write: str) -> float:
        if write not in recording:
            return 0.0
        w = torch.tensor(recording[write][-1]).double()
        w = w if rms else w - w.mean()
        return float((u * norm.gain.detach().double()) @ w / size)

    np.testing.assert_allclose(found.attention, [pushes(f"blocks.{i}.attn_out") for i in range(2)], atol=1e-4)
    np.testing.assert_allclose(
        found.feedforward, [pushes(f"blocks.{i}.ffn_out") for i in range(2)], atol=1e-4
    )
    assert found.before == pytest.approx(pushes("embed") + pushes("pos_embed"), abs=1e-4)
    logits = recording.logits[-1].astype(np.float64)
    assert found.total == pytest.approx(logits[7] - logits.mean(), abs=1e-3)
    parts = found.by_attention + found.by_feedforward + found.before + found.rest
    assert parts == pytest.approx(found.total, abs=1e-6)
    assert (found.head is None) == (name == "no mixer")


def test_where_nothing_is_a_sum_nobody_wrote_it() -> None:
    for wiring in ("post", "none"):
        model = loud(tiny(wiring=wiring))
        assert trace(model, record(model, IDS), 7).written is None
    model = loud(tiny())
    with pytest.raises(ShapeError, match="tokens below 11"):
        trace(model, record(model, IDS), 11)


def told(rank: list[int]) -> Fact:
    return Fact(7, np.array(rank), np.zeros(len(rank)), np.zeros(len(rank), int), None)


def test_first_depth_leap_and_largest_part() -> None:
    assert told([9, 1, 2, 1, 1]).first == 3 and told([9, 1, 2, 1, 1]).best == 1
    assert told([1, 1]).first == 0
    assert told([9, 1, 2]).first is None and told([9, 3, 4]).best == 1
    assert told([5, 4, 1]).first == 2
    assert told([100, 90, 30, 10, 1]).leap == 4 and told([100, 10, 9, 8]).leap == 1
    assert told([1, 1]).leap is None and told([1, 5]).leap is None and told([8, 4, 2]).leap == 1
    written = Written(np.array([1.0, -3.0]), np.array([0.5, 2.0]), Named(0, 1, 0.7), 0.25, 0.0, 0.75)
    assert written.most == ("feedforward", 1, 2.0)
    assert (written.by_attention, written.by_feedforward) == (-2.0, 2.5)
    assert Written(np.array([4.0]), np.array([0.5]), None, 0, 0, 0).most == ("attention", 0, 4.0)


LETTERS = CharTokenizer(" abcdeP")


class Words:
    """A vocabulary whose words begin with their blank: of a text the first word, then letters."""

    def encode(self, text: str) -> list[int]:
        if text[:3] == " Pa":
            return [10, *(ord(c) for c in text[3:])]
        return [{"P": 11, " ": 12}.get(c, ord(c)) for c in text]

    def unknown(self, text: str) -> list[str]:
        return []


def logits(**letters: float) -> np.ndarray:
    found = np.zeros(128)
    for letter, value in letters.items():
        found[{"word": 10, "P": 11, "blank": 12}[letter]] = value
    return found


def test_an_answer_is_read_as_it_was_meant() -> None:
    words: Any = Words()
    assert answer_of(words, "abc", "Pa", logits(P=2)) == Answer(11, 2, False)
    assert answer_of(words, "abc", "Pa", logits(P=2, word=3)) == Answer(10, 1, True)
    assert answer_of(words, "abc", "Paris", logits(word=3)) == Answer(10, 4, True)
    assert answer_of(words, "abc ", "Pa", logits(word=3)) == Answer(11, 2, False), "there is a blank already"
    assert answer_of(words, "abc", " Pa", logits(P=9)) == Answer(10, 1, False), (
        "with its blank as it was written"
    )
    assert answer_of(words, "abc", "P4", logits(blank=9)) == Answer(11, 2, False), "not the blank alone"
    place = LETTERS.encode("P")[0]
    assert answer_of(LETTERS, "abc", "Pa", np.arange(7)[::-1]) == Answer(place, 2, False)
    bare = CharTokenizer("abP")
    assert answer_of(bare, "ab", "P", np.zeros(3)) == Answer(2, 1, False)


@for_each(("text", "said"), [("", "is empty"), ("x!", "lacks x !")])
def test_an_answer_that_is_none(text: str, said: str) -> None:
    with pytest.raises(TokenizerError, match=said):
        answer_of(LETTERS, "abc", text, np.zeros(7))
