"""Shannon's game: passages of held-out text, and nats that are a language model's, against arithmetic of their own."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.data import corpora
from engine.errors import CorpusError, ShapeError
from engine.recording import record
from studies.generation.guessing_game import (
    GUESSES,
    Passage,
    Turn,
    bounds,
    class_p,
    draw_passage,
    model_log_p,
    nats_of,
    ngram_log_p,
    outcomes,
    turn_nats,
    turns_of,
)
from studies.generation.scoring import score
from tests.engine.helpers import loud, tiny
from tests.source import ROOT

VALUES = Path(__file__).parents[1] / "js" / "guessing.json"
LINES = "the cat sat on the mat.\nthe dog, the cat and a hat:\nall sat there at last!\n" * 12


def drawn(seed: int, lead: int = 20, most: int = 40) -> tuple[np.ndarray, Passage]:
    corpus = corpora.from_text(LINES)
    alphabet = corpus.tokenizer.decode(list(range(corpus.vocab_size)))
    text = corpus.train.numpy()
    blanks = {alphabet.index(" "), alphabet.index("\n")}
    return text, draw_passage(
        text, seed, lead=lead, most=most, blanks=blanks, line_break=alphabet.index("\n")
    )


def test_a_passage_is_of_the_text_begins_with_a_line_and_is_guessed_from_a_word_on() -> None:
    starts = set()
    for seed in range(30):
        text, found = drawn(seed)
        assert text[found.start : found.start + len(found.lead) + 40].tolist() == [*found.lead, *found.ids]
        written = corpora.from_text(LINES).tokenizer.decode([*text[: found.start + len(found.lead)].tolist()])
        assert found.start and written[found.start - 1] == "\n" and written[-1] in " \n"
        assert len(found.ids) == 40 and len(found.lead) >= 20
        starts.add(found.start)
        assert drawn(seed)[1] == found, "a seed names a passage"
    assert len(starts) > 5


def test_a_short_text_has_a_short_passage_and_one_of_a_few_characters_none() -> None:
    text = np.arange(8)
    found = draw_passage(text, 3, lead=100, most=240, blanks=(), line_break=None)
    assert [*found.lead, *found.ids] == text.tolist() and len(found.lead) == 4
    with pytest.raises(CorpusError, match="has 7 characters; 8 are needed"):
        draw_passage(text[:7], 3, lead=100, most=240, blanks=(), line_break=None)


def test_the_model_reads_all_before_a_character_as_far_as_its_context_reaches() -> None:
    model = loud(tiny(), seed=3, factor=4.0)  # a context of 8
    for lead, count in ((3, 3), (6, 9), (12, 4)):
        random = Random(lead)
        ids = [random.randrange(11) for _ in range(lead + count)]
        found = model_log_p(model, Passage(0, tuple(ids[:lead]), tuple(ids[lead:])))
        assert found.shape == (count, 11)
        for i in range(count):
            window = ids[max(0, lead + i - 8) : lead + i]
            by_itself = torch.tensor(record(model, window)["logits"][-1]).double().log_softmax(-1)
            assert found[i] == pytest.approx(by_itself.numpy(), abs=1e-5)


def test_ngrams_are_those_of_an_independent_count() -> None:
    train, found = drawn(2)
    v, whole = corpora.from_text(LINES).vocab_size, [*found.lead, *found.ids]
    runs = {n: Counter(zip(*(train.tolist()[i:] for i in range(n)), strict=False)) for n in (1, 2, 3)}
    before = {n: Counter(zip(*(train.tolist()[i:-1] for i in range(n)), strict=False)) for n in (1, 2)}
    log_p = ngram_log_p(train, found, v)
    for rows in log_p.values():
        assert rows.shape == (40, v) and np.exp(rows).sum(1) == pytest.approx(np.ones(40))
    nats = {name: nats_of(rows, found.ids) for name, rows in log_p.items()}
    assert list(nats) == ["uniform", "unigram", "bigram", "trigram"]
    for i in range(len(found.ids)):
        at = len(found.lead) + i
        a, b, c = whole[at - 2 : at + 1]
        wanted = (
            1 / v,
            (runs[1][(c,)] + 1) / (len(train) + v),
            (runs[2][b, c] + 1) / (before[1][(b,)] + v),
            (runs[3][a, b, c] + 1)
            / (Counter(zip(train.tolist(), train.tolist()[1:-1], strict=False))[a, b] + v),
        )
        assert [nats[name][i] for name in nats] == pytest.approx([-math.log(p) for p in wanted])


def possible(vocab: int) -> list[Turn]:
    most = outcomes(vocab) - 1
    return [*(Turn(g, True) for g in range(1, most + 1)), *(Turn(g, False) for g in range(most + 1))]


@pytest.mark.parametrize("vocab", [3, 5, 65])
def test_before_each_character_the_probabilities_of_all_tokens_sum_to_one(vocab: int) -> None:
    """For a reader who would guess in some order, and give up after so many guesses or never."""
    most = outcomes(vocab) - 1
    for before in product(possible(vocab)[:: most or 1], repeat=2):
        for patience in range(most + 1):
            guessed = [Turn(g, True) for g in range(1, patience + 1)]
            rest = [Turn(patience, False)] * (vocab - patience)
            total = sum(math.exp(-turn_nats([*before, turn], vocab)[-1]) for turn in (*guessed, *rest))
            assert total == pytest.approx(1)


def test_a_guess_number_costs_what_it_was_rare_before() -> None:
    turns = [Turn(1, True), Turn(1, True), Turn(2, True), Turn(5, False), Turn(1, False)]
    sixth = 1 / 6
    wanted = [sixth, 1.5 / 4, 0.5 / 5, 0.5 / 6 / 60, (1 - 2.5 / 7) / 64]
    assert turn_nats(turns, 65) == pytest.approx([-math.log(p) for p in wanted])
    for wrong in (Turn(0, True), Turn(6, True), Turn(6, False), Turn(-1, False)):
        with pytest.raises(ShapeError, match="at most 5 guesses"):
            turn_nats([wrong], 65)


def test_a_predictor_plays_by_guessing_the_likeliest_first() -> None:
    log_p = np.log([[0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])
    for ids, guesses in (((1, 3, 0), (1, 1, 1)), ((0, 2, 1), (2, 2, 2)), ((2, 1, 2), (3, 3, 3))):
        assert turns_of(log_p, ids) == [Turn(number, True) for number in guesses]
    assert turns_of(log_p, (3, 0, 3)) == [Turn(3, False)] * 3, "three guesses of four tokens"
    wide = np.log(np.arange(1.0, 11.0)[None, ::-1] / 55)
    assert [turns_of(wide, [i])[0] for i in (0, 4, 5, 9)] == [
        Turn(1, True),
        Turn(5, True),
        Turn(5, False),
        Turn(5, False),
    ]


def test_bounds_are_shannons() -> None:
    """Of ranks that all lie within the guesses: his own formulas, the lower one as he writes it."""
    ranks = [1] * 12 + [2] * 5 + [3] * 2 + [5]
    q = [ranks.count(i) / len(ranks) for i in range(1, 7)]
    found = bounds([Turn(rank, True) for rank in ranks], 65)
    assert found.upper == pytest.approx(-sum(p * math.log(p) for p in q if p))
    assert found.lower == pytest.approx(sum(i * (q[i - 1] - q[i]) * math.log(i) for i in range(1, 6)))
    assert 0 < found.lower < found.upper < turn_nats([Turn(rank, True) for rank in ranks], 65).mean()
    missed = bounds([Turn(GUESSES, False), Turn(2, False)], 65)
    assert missed.upper == pytest.approx((math.log(60) + math.log(63)) / 2)
    assert missed.lower == pytest.approx(
        (6 * math.log(6) - 5 * math.log(5) + 3 * math.log(3) - 2 * math.log(2)) / 2
    )
    with pytest.raises(ShapeError, match="at least one"):
        bounds([], 65)


def test_a_class_is_one_distribution_whatever_it_votes() -> None:
    for counts in ([0] * 65, [1] + [0] * 64, [3, 0, 20, *[0] * 62]):
        p = class_p(counts)
        assert p.sum() == pytest.approx(1) and p.min() > 0
        assert p == pytest.approx([(n + 1 / 65) / (sum(counts) + 1) for n in counts])


def test_the_browsers_arithmetic_is_held_to_this() -> None:
    """tests/js/guessing.json, which tests/js/guessing.test.js holds the browser's to; it is written anew by
    running this module."""
    for fixed, now in zip(json.loads(VALUES.read_text("utf-8")), values(), strict=True):
        assert fixed["turns"] == now["turns"] and fixed["vocab"] == now["vocab"]
        for name in ("nats", "lower", "upper"):
            assert fixed[name] == pytest.approx(now[name], abs=1e-8)


def values() -> list[dict[str, Any]]:
    cases = []
    for seed, vocab in ((0, 65), (1, 65), (2, 4), (3, 2)):
        random, all_turns = Random(seed), possible(vocab)
        turns = [random.choice(all_turns) for _ in range(40)]
        found = bounds(turns, vocab)
        cases.append(
            {
                "vocab": vocab,
                "turns": [{"guesses": turn.guesses, "right": turn.right} for turn in turns],
                "nats": turn_nats(turns, vocab).round(9).tolist(),
                "lower": round(found.lower, 9),
                "upper": round(found.upper, 9),
            }
        )
    return cases


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["shakespeare-classic", "shakespeare-modern"])
@pytest.mark.skipif(corpora.shakespeare_path() is None, reason="Tiny Shakespeare is not here")
def test_nats_of_shipped_models_are_the_engines_by_another_path(name: str) -> None:
    """Each character scored by itself, by the page Perplexity's arithmetic; and the whole validation split by the
    corpus' own baselines."""
    found, corpus = checkpoints.load(ROOT / "checkpoints" / name), corpora.load("shakespeare")
    assert found.tokenizer == corpus.tokenizer
    text, train = corpus.validation.numpy(), corpus.train.numpy()
    blanks = {corpus.tokenizer.encode(c)[0] for c in " \n"}
    for seed in range(3):
        drawn = draw_passage(
            text, seed, lead=100, most=60, blanks=blanks, line_break=corpus.tokenizer.encode("\n")[0]
        )
        log_p, whole = model_log_p(found.model, drawn), [*drawn.lead, *drawn.ids]
        for i, token in enumerate(drawn.ids):
            at = len(drawn.lead) + i
            window = whole[max(0, at - found.model.config.context) : at + 1]
            logits = np.vstack([record(found.model, window[:-1])["logits"], np.zeros(corpus.vocab_size)])
            assert -log_p[i, token] == pytest.approx(score(logits, window).nats[-1], abs=1e-4)
    most = Passage(0, tuple(text[:2].tolist()), tuple(text[2:].tolist()))
    for name, rows in ngram_log_p(train, most, 65).items():
        assert nats_of(rows, most.ids).mean() == pytest.approx(corpus.baselines[name], rel=1e-4)


if __name__ == "__main__":
    VALUES.write_text("[\n" + ",\n".join(map(json.dumps, values())) + "\n]\n", "utf-8")
