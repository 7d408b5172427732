"""What is said about a written text, and about a beam's rivals, against arithmetic written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.sample import beam_search, fitting, greedy
from engine.sample.branches import Tree, grow, pick
from engine.sample.rivals import Continuation, Rivals, dropped, ending_with, rivals
from engine.sample.surprise import surprise
from engine.tokenizers.char import CharTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny


def test_surprise_is_what_the_model_gave_each_token():
    model, sampling = loud(tiny(), seed=3, factor=4.0), SampleConfig(temperature=1.0, seed=3)
    tree, _ = grow(Tree((1, 2)), model, sampling, None, 6)
    other = next(t for t in range(11) if t != tree.nodes[5].token)
    tree, index = pick(tree, model, sampling, tree.nodes[4].index, other)
    path = tree.path(index)
    found = surprise(path, 11)
    with torch.inference_mode():
        logs = model(torch.tensor([tree.tokens(index)]))[0, 1:-1].double().log_softmax(-1)
    nats = [-logs[i, node.token].item() for i, node in enumerate(path)]
    assert found.nats.tolist() == pytest.approx(nats, abs=1e-5)
    assert found.p.tolist() == pytest.approx([math.exp(-n) for n in nats], abs=1e-6)
    assert found.mean.tolist() == pytest.approx([sum(nats[: i + 1]) / (i + 1) for i in range(6)], abs=1e-5)
    assert found.likelihood.nats == pytest.approx(sum(nats) / 6, abs=1e-5)
    assert found.likelihood.perplexity == pytest.approx(math.exp(sum(nats) / 6), rel=1e-5)
    assert found.guessing == pytest.approx(math.log(11))
    assert found.worst == max(range(6), key=lambda i: nats[i])
    first = sum(logs[i].argmax().item() == node.token for i, node in enumerate(path))
    assert found.likeliest == pytest.approx(first / 6)
    assert found.picked.tolist() == [False] * 5 + [True] and found.finite
    model = loud(tiny(), seed=3)
    with torch.no_grad():
        model.embedding.fill_(math.nan)
    tree, end = grow(Tree((1,)), model, SampleConfig(), None, 2)
    assert not surprise(tree.path(end), 11).finite


def of(total: float, length: int, first: int = 0) -> Continuation:
    return Continuation(tuple(range(first, first + length)), total)


@for_each("winner, greedy, verdict", [
    (of(-3.0, 4), of(-3.0, 4), "same"), (of(-3.0, 4, 1), of(-3.5, 4), "likelier"),
    (of(-3.0, 3, 1), of(-3.5, 4), "shorter"), (of(-3.0, 5, 1), of(-3.5, 4), "likelier"),
    (of(-4.0, 6, 1), of(-3.5, 4), "better score"), (of(-3.5, 6, 1), of(-3.5, 4), "better score"),
])  # fmt: skip
def test_verdicts(winner, greedy, verdict):
    assert Rivals(winner, greedy, greedy).verdict == verdict


def test_a_text_beside_another():
    one, two = of(-3.0, 4), of(-5.0, 2)
    assert (one.per_token, one.probability) == (-0.75, pytest.approx(math.exp(-3)))
    assert one.times(two) == pytest.approx(math.e**2) and two.times(one) == pytest.approx(math.e**-2)
    assert math.isfinite(one.times(of(-1e6, 2)))
    model, prompt = loud(tiny(), seed=5), list(range(10))
    context = model.config.context
    for depth in (1, context // 2, context):
        left = len(prompt[-(context - depth + 1) :])
        assert dropped(len(prompt), depth, context) == len(prompt) - left
    tokenizer = CharTokenizer("ab. ")
    assert ending_with(tokenizer, ".", 4) == {tokenizer.encode(".")[0]}
    assert (
        ending_with(tokenizer, "", 4) == frozenset() == ending_with(tokenizer, ".", tokenizer.encode(".")[0])
    )


def test_rivals_read_the_same_prompt_and_end_at_their_first_stop():
    model, ids = loud(tiny(), seed=5, factor=4.0), (1, 2, 3, 4, 5, 6, 7)
    ends = frozenset({0, 3})
    beam = beam_search(model, ids, 6, 3, stop=ends)
    found = rivals(model, ids, beam, 6, ends, seed=2)
    assert found.winner == Continuation(beam.path(beam.winner), beam.nodes[beam.winner].total)
    room = model.config.context - 5  # the last of six is not read
    for text in (found.greedy, found.sample):
        assert 1 <= len(text.tokens) <= 6 and not ends & set(text.tokens[:-1])
        assert text.tokens[-1] in ends or len(text.tokens) == 6
        prompt = list(ids[-room:])
        with torch.inference_mode():
            logs = model(torch.tensor([[*prompt, *text.tokens]])[:, :-1])[0].double().log_softmax(-1)
        rows = range(len(prompt) - 1, len(prompt) - 1 + len(text.tokens))
        total = sum(logs[i, t].item() for i, t in zip(rows, text.tokens, strict=True))
        assert text.total == pytest.approx(total, abs=1e-4)
    assert len({rivals(model, ids, beam, 6, ends, seed=s).sample.tokens for s in range(8)}) > 1


def test_a_rival_holds_its_stop_token_and_nothing_after_it():
    model, ids = loud(tiny(), seed=5, factor=4.0), (1, 2, 3)
    written = greedy(model, fitting(ids, 6, model.config.context), 6)[0]
    stop = written[3]
    found = rivals(model, ids, beam_search(model, ids, 6, 2), 6, {stop}, seed=2).greedy
    assert found.tokens == written[: written.index(stop) + 1]


def test_the_probability_of_a_node():
    beam = beam_search(loud(tiny(), seed=2), [1], 2, 2)
    for node in beam.nodes:
        assert node.probability == pytest.approx(float(np.exp(node.log_probability)))
