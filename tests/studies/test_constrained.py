"""Constrained decoding: the automaton is Python's own `re`, draws have the grammar's probabilities, all are valid."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError
from studies.generation import constrained
from studies.generation.constrained import FORMS, LONGEST, Form, drawing, grammar_of, taken, writable
from studies.generation.grammar import DEAD, TokenGrammar
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.models import REAL, SHIPPED, opened

LETTERS = "abc-"
TOY = "a(b|c){1,2}-|c[a-b]?a-"


def texts(length: int) -> list[str]:
    return ["".join(each) for n in range(length + 1) for each in itertools.product(LETTERS, repeat=n)]


def matches(grammar: TokenGrammar, text: str) -> bool:
    state, used = grammar.read(grammar.start, text)
    return state in grammar.ends and used == len(text)


@for_each(
    "pattern", [TOY, "ab", "a|b|ca", "(a|b)c?-", "[a-c]{2,3}-", "a(b(c|a))?-", r"\-a{2}\-", "(ab|a)(c|bc)-"]
)
def test_a_grammar_matches_what_pythons_expressions_match(pattern: str) -> None:
    grammar = TokenGrammar(pattern, list(LETTERS))
    every = texts(6)
    assert [t for t in every if matches(grammar, t)] == [t for t in every if re.fullmatch(pattern, t)]


@for_each("pattern", ["a(b", "a)b", "[ab", "a{2"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        TokenGrammar(pattern, list(LETTERS))


def test_tokens_are_allowed_that_can_still_be_completed() -> None:
    words = ["a", "ab", "b-", "bb", "c", "-", "", "b", "xa", "c-a", "cb"]
    grammar = TokenGrammar(TOY, words)
    whole = [t for t in texts(6) if re.fullmatch(TOY, t)]
    for state, done in ((grammar.start, ""), (grammar.read(grammar.start, "a")[0], "a")):
        wanted = [n for n, word in enumerate(words) if word and any(t.startswith(done + word) for t in whole)]
        assert sorted(grammar.allowed(state)[:, 0].tolist()) == wanted
        for token, to in grammar.allowed(state).tolist():
            assert to == grammar.read(state, words[token])[0] != DEAD
    with pytest.raises(ConfigError):
        TokenGrammar("xyz", list(LETTERS))
    assert grammar.read(grammar.start, "ab-ccc")[1] == 3, "a text is read to its end"


@for_each("form", FORMS)
def test_no_text_of_a_form_begins_another_and_none_is_too_long(form: str) -> None:
    grammar = TokenGrammar(FORMS[form].pattern, [chr(n) for n in (10, *range(32, 127))])
    longest, states = 0, {grammar.start}
    while states - grammar.ends:
        longest += 1
        states = {int(to) for state in states - grammar.ends for to in grammar.allowed(state)[:, 1]}
    assert longest <= LONGEST and all(len(grammar.allowed(end)) == 0 for end in grammar.ends)


@for_each("form", FORMS)
def test_the_check_and_the_grammar_agree_on_random_texts(form: str) -> None:
    signs = [chr(n) for n in (10, *range(32, 127))]
    grammar, random = TokenGrammar(FORMS[form].pattern, signs), np.random.default_rng(0)
    for _ in range(300):
        state, text = grammar.start, ""
        while state not in grammar.ends:
            token, state = random.choice(grammar.allowed(state))
            text += signs[token]
        assert FORMS[form].check(text), text
        at = random.integers(len(text))
        broken = text[:at] + random.choice(signs) + text[at + 1 :]
        assert FORMS[form].check(broken) or not matches(grammar, broken), broken
    assert not any(
        FORMS[form].check(text) for text in ("", "{}", "2023-02-30", "12", "KING", '{"name": 3, "age": 4}')
    )


def every_text(model: Any, prompt: list[int], tokenizer: CharTokenizer) -> dict[str, tuple[float, float]]:
    """Valid text -> (p by the model alone, q under the grammar), by going through all of them."""
    grammar, found = TokenGrammar(TOY, [tokenizer.decode([n]) for n in range(4)]), {}

    def go(state: int, ids: list[int], p: float, q: float) -> None:
        if state in grammar.ends:
            found[tokenizer.decode(ids)] = p, q
            return
        with torch.inference_mode():
            each = model(torch.tensor([prompt + ids]))[0, -1].double().softmax(-1).tolist()
        rows = grammar.allowed(state).tolist()
        mass = sum(each[token] for token, _ in rows)
        for token, to in rows:
            go(to, [*ids, token], p * each[token], q * each[token] / mass)

    go(grammar.start, [], 1.0, 1.0)
    return found


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, CharTokenizer]:
    form = Form(TOY, lambda text: re.fullmatch(TOY, text) is not None, "", "")
    monkeypatch.setattr(constrained, "FORMS", {"toy": form})
    monkeypatch.setattr(constrained, "LONGEST", 6)
    tokenizer = CharTokenizer(LETTERS)
    return loud(tiny(vocab_size=tokenizer.vocab_size, context=12), seed=3, factor=2.0), tokenizer


def test_draws_under_the_grammar_have_its_probabilities_and_the_masses_sum_up(toy: Any) -> None:
    """Over all texts the mean of prod Z is the model's own probability of a valid one, exactly."""
    model, tokenizer = toy
    exact = every_text(model, [0, 1], tokenizer)
    alone = sum(p for p, _ in exact.values())
    assert sum(q for _, q in exact.values()) == pytest.approx(1) and 0.02 < alone < 0.9
    assert sum(q * (p / q) for p, q in exact.values()) == pytest.approx(alone)
    count = 3000
    drawn = finish(drawing(model, tokenizer, [0, 1], "toy", count))
    tally = Counter(text.text for text in drawn.bound)
    assert set(tally) <= set(exact)
    chi = sum((tally[text] - count * q) ** 2 / (count * q) for text, (_, q) in exact.items())
    assert chi < len(exact) + 5 * math.sqrt(2 * len(exact))
    for text in drawn.bound[:50]:
        p, q = exact[text.text]
        assert text.log_p == pytest.approx(math.log(p), abs=1e-4)
        assert text.left == pytest.approx(p / q, rel=1e-4) and text.valid
    free = sum(text.valid for text in drawn.free) / count
    assert free == pytest.approx(alone, abs=4 * math.sqrt(alone / count))
    assert drawn.expected == pytest.approx(alone, abs=0.05)


def test_a_text_without_the_grammar_stops_where_it_leaves_it(toy: Any) -> None:
    model, tokenizer = toy
    for text in finish(drawing(model, tokenizer, [2], "toy", 40, seed=9)).free:
        assert text.valid == (re.fullmatch(TOY, text.text) is not None)
        assert text.valid or len(text.text) == len(text.steps) - 1


def test_a_step_keeps_the_proportions_of_what_is_allowed() -> None:
    grammar = TokenGrammar(TOY, [*LETTERS, "x", "y", "z"])
    p = np.array([0.1, 0.4, 0.3, 0.1, 0.05, 0.03, 0.02])
    assert taken(p, grammar, grammar.start, 0.0, True).mass == pytest.approx(0.4), "a and c"
    assert [taken(p, grammar, grammar.start, u, True).token for u in (0.0, 0.24, 0.26, 0.99)] == [0, 0, 2, 2]
    step = taken(p, grammar, grammar.start, 0.2, False)
    assert step.token == 1 and step.log_p == pytest.approx(math.log(0.4))
    assert step.before[0] == (1, 0.4) and step.after == ((2, 0.3), (0, 0.1))


@for_each("name", SHIPPED)
def test_a_shipped_model_writes_valid_names_and_nothing_with_digits(name: str) -> None:
    model, tokenizer = opened(name)
    assert writable(tokenizer) == ("speaker",)
    prompt = tokenizer.encode(FORMS["speaker"].question)
    drawn = finish(drawing(model, tokenizer, prompt, "speaker", 100))
    assert all(text.valid for text in drawn.bound) and not all(text.valid for text in drawn.free)
    free = sum(text.valid for text in drawn.free) / 100
    assert drawn.expected == pytest.approx(free, abs=0.2)


@for_each("name", REAL, without="SmolLM2 is not installed")
def test_a_real_model_writes_a_valid_date_and_valid_json_every_time(name: str) -> None:
    model, tokenizer = opened(name)
    assert writable(tokenizer) == tuple(FORMS)
    for form in ("date", "json"):
        prompt = tokenizer.encode(FORMS[form].question)
        drawn = finish(drawing(model, tokenizer, prompt, form, 12))
        assert all(text.valid for text in drawn.bound) and not all(text.valid for text in drawn.free)
        assert grammar_of(form, tokenizer).start == 0
