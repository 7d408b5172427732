"""Stages of sampling: against Hugging Face's processors, by worked numbers, and at the edges."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import sample
from engine.config import SampleConfig
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError, ShapeError
from engine.sample import stages
from engine.sample.stages import draws
from pages.output.generation.beam_search import verdict
from studies.generation.beam import beam_search
from studies.generation.branches import Tree, grow, pick
from studies.generation.decoding_comparison import Continuation, Rivals, dropped, ending_with, rivals
from studies.generation.outcome import last_torn, likeliest_ids, outcome, removed_by, tally
from studies.generation.surprise import surprise
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

OFF = SampleConfig(temperature=1.0)


def logits_of(size: int, seed: int = 0) -> torch.Tensor:
    return 3.0 * torch.randn(size, generator=torch.Generator().manual_seed(seed))


def theirs(logits: torch.Tensor, config: SampleConfig, previous: list[int]) -> torch.Tensor:
    """The same settings through Hugging Face's own processors, in our order."""
    from transformers.generation import logits_process as hf

    made = {
        "repetition_penalty": lambda: hf.RepetitionPenaltyLogitsProcessor(config.repetition_penalty),
        "temperature": lambda: hf.TemperatureLogitsWarper(config.temperature),
        "top_k": lambda: hf.TopKLogitsWarper(config.top_k),
        "top_p": lambda: hf.TopPLogitsWarper(config.top_p),
        "min_p": lambda: hf.MinPLogitsWarper(config.min_p),
    }
    scores, ids = logits[None].clone(), torch.tensor([previous])
    for name in sample.order(config):
        if getattr(config, name) != {"top_k": 0, "min_p": 0.0}.get(name, 1.0):
            scores = made[name]()(ids, scores)
    return scores[0]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000), size=st.integers(2, 90), temperature=st.sampled_from([0.2, 0.8, 1.0, 1.5]),
    k=st.integers(0, 100), p=st.floats(0.0, 1.0), m=st.floats(0.0, 1.0),
    penalty=st.sampled_from([0.5, 1.0, 1.3, 5.0]), last=st.booleans(),
)  # fmt: skip
def test_the_stages_agree_with_hugging_face(seed, size, temperature, k, p, m, penalty, last):
    pytest.importorskip("transformers", reason="requirements-dev.txt has it")
    config = SampleConfig(
        temperature=temperature, top_k=k, top_p=p, min_p=m, repetition_penalty=penalty, penalty_last=last
    )
    logits, previous = logits_of(size, seed), [0, size - 1, 0]
    ours, other = sample.warp(logits, config, torch.tensor(previous)), theirs(logits, config, previous)
    assert torch.equal(torch.isneginf(ours), torch.isneginf(other))
    kept = ~torch.isneginf(ours)
    assert torch.allclose(ours[kept], other[kept], atol=1e-6)
    assert np.allclose(sample.stages(logits, config, previous)[-1].logits, ours.numpy(), atol=1e-6)


def test_a_record_for_each_stage_says_what_it_removed():
    logits = torch.tensor([math.log(p) for p in (0.4, 0.3, 0.15, 0.1, 0.05)])
    records = {
        s.name: s for s in sample.stages(logits, SampleConfig(temperature=1.0, top_k=4, top_p=0.8, min_p=0.5))
    }
    assert list(records) == ["logits", *sample.NAMES]
    assert records["logits"].remaining == 5 and records["logits"].mass == 1.0
    assert records["top_k"].removed.tolist() == [False, False, False, False, True]
    assert records["top_k"].mass == pytest.approx(0.95)
    # Renormalised over four: 0.421, 0.316, 0.158, 0.105. The first two reach 0.737, the third 0.895: it is
    # still needed.
    assert records["top_p"].removed.tolist() == [False, False, False, True, False]
    assert records["top_p"].mass == pytest.approx(0.85 / 0.95)
    # Half of the largest: 0.4 / 0.85 = 0.471, so 0.3 / 0.85 = 0.353 stays and 0.176 goes.
    assert records["min_p"].removed.tolist() == [False, False, True, False, False]
    assert records["min_p"].remaining == 2
    assert records["min_p"].probabilities == pytest.approx([4 / 7, 3 / 7, 0, 0, 0])
    assert records["logits"].entropy == pytest.approx(
        -sum(p * math.log(p) for p in (0.4, 0.3, 0.15, 0.1, 0.05))
    )
    four = sample.stages(torch.zeros(4), OFF)[-1]
    assert four.choices == pytest.approx(4.0)


def test_temperature_zero_is_greedy_and_ties_stay():
    logits = torch.tensor([1.0, 3.0, 3.0, 0.0])
    last = sample.stages(logits, SampleConfig(temperature=0.0))[-1]
    assert last.remaining == 1
    assert last.probabilities.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert sample.likeliest(logits) == 1
    assert all(sample.draw(last.probabilities, u) == 1 for u in (0.0, 0.5, 0.999))
    logits = torch.tensor([2.0, 1.0, 1.0, 0.0])
    assert (
        sample.stages(logits, SampleConfig(temperature=1.0, top_k=2))[-1].remaining == 3
    )  # equals of the k-th stay, as in Hugging Face
    even = torch.zeros(4)
    nucleus = sample.stages(even, SampleConfig(temperature=1.0, top_p=0.5))[-1]
    assert nucleus.probabilities.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert sample.stages(even, SampleConfig(temperature=1.0, min_p=1.0))[-1].remaining == 4


def test_a_tiny_temperature_keeps_the_signs_that_the_penalty_reads():
    logits = torch.tensor([6.45, 6.30, 1.0])
    for scale in (1e-2, 1e-3, 9.9e-4, 1e-6, 1e-38):
        for penalty, wanted in ((0.5, 1), (2.0, 0)):
            last = SampleConfig(temperature=scale, repetition_penalty=penalty, penalty_last=True)
            assert sample.stages(logits, last, [1])[-1].probabilities.argmax() == wanted, (scale, penalty)
    logits = torch.tensor([2.0, -2.0, 1.0])
    last = sample.stages(logits, SampleConfig(temperature=1.0, repetition_penalty=2.0), [0, 1, 1, 77, -1])[-1]
    assert last.logits.tolist() == [1.0, -4.0, 1.0]  # ids outside the vocabulary are nobody's


def test_draws_follow_the_distribution_and_the_seed():
    p = np.array([0.5, 0.0, 0.3, 0.2])
    us = sample.uniform(3, 4000)
    counts = np.bincount([sample.draw(p, float(u)) for u in us], minlength=4)
    assert counts[1] == 0 and np.abs(counts / 4000 - p).max() < 4 * math.sqrt(0.25 / 4000)
    assert torch.equal(sample.uniform(3, 10), us[:10]) and not torch.equal(sample.uniform(4, 10), us[:10])
    assert sample.draw(p, math.nextafter(1.0, 0.0)) == 3
    assert sample.draw(np.array([0.0, 1.0, 0.0]), math.nextafter(1.0, 0.0)) == 1
    assert [sample.draw(2 * p, u) for u in (0.1, 0.6, 0.9)] == [0, 2, 3]  # the sum need not be 1


WRONG = [
    {"temperature": -1.0}, {"temperature": math.nan}, {"top_k": -1}, {"top_k": 1.5}, {"top_p": 1.1},
    {"min_p": -0.1}, {"repetition_penalty": 0.0}, {"seed": -1}, {"seed": 2**31}, {"penalty_last": 1},
]  # fmt: skip


def test_settings_and_logits_that_cannot_be_used_are_refused():
    for wrong in WRONG:
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            sample.stages(torch.zeros(3), SampleConfig(**wrong))
    for bad in (torch.zeros(2, 3), torch.zeros(0), torch.full((3,), math.nan), torch.full((3,), -math.inf)):
        with pytest.raises(ShapeError):
            sample.stages(bad, OFF)
    odd = torch.tensor([math.nan, 1.0, math.inf])
    assert sample.stages(odd, OFF)[-1].probabilities.tolist() == [0.0, 0.0, 1.0]


@for_each("changes", [
    {}, {"position": "rope", "n_kv_heads": 2, "ffn": "swiglu"}, {"position": "t5", "wiring": "post", "mixer": "shared_qk"},
    {"position": "alibi", "output_head": "scaled", "norm": "rmsnorm"},
])  # fmt: skip
def test_the_decoder_computes_what_the_model_computes(changes):
    model = loud(tiny(**changes))
    warm = SampleConfig(temperature=1.0, seed=5)
    ways = (sample.steps(model, [1, 2, 3], 2 * model.config.context, warm, cached=c) for c in (True, False))
    pairs = list(zip(*ways, strict=True))
    assert [a.token for a, _ in pairs] == [b.token for _, b in pairs]
    for a, b in pairs:
        assert torch.allclose(a.logits, b.logits, atol=2e-5 * float(b.logits.abs().max()) + 1e-6)
        assert (a.position, a.begin) == (b.position, b.begin) and b.computed == b.position - b.begin
    assert [a.computed for a, _ in pairs[:4]] == [3, 1, 1, 1]


def test_what_a_step_reports_and_that_its_logits_stay():
    model = loud(tiny())
    context = model.config.context
    records = list(sample.steps(model, [1], context + 3, SampleConfig(seed=1)))
    assert [r.position for r in records] == list(range(1, context + 4))
    moved = [r for r in records if r.begin]
    assert moved[0].position == context + 1
    assert moved[0].begin == context + 1 - context // 2
    assert moved[0].computed == context // 2
    assert records[0].probability == pytest.approx(float(records[0].logits.softmax(-1)[records[0].token]))
    model = loud(tiny(norm="none", wiring="none"))
    with torch.inference_mode():
        reader = sample.Decoder(model)
        first = [reader.read([token]) for token in (1, 2, 3)]
        kept = [logits.clone() for logits in first]
        reader.reset()
        again = [reader.read([token]) for token in (3, 2, 1)]
    assert all(torch.equal(a, b) for a, b in zip(first, kept, strict=True))
    assert not torch.equal(first[0], again[0])


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


def test_width_one_must_be_greedy_only_where_no_branch_may_end():
    """A branch that ends frees its place, and the search goes on from the second best token: not greedily."""
    same = Rivals(of(-3.0, 4), of(-3.0, 4), of(-3.0, 4))
    assert "as it must: width 1 is greedy" in verdict(same, 1, False)
    assert "as it must" not in verdict(same, 1, True) + verdict(same, 2, False)
    differ = 0
    for seed in range(40):
        model, ids = loud(tiny(), seed=seed, factor=4.0), (1, 2, 3)
        for ends in ((), (0, 1, 2, 3)):
            beam = finish(beam_search(model, ids, 6, 1, length_penalty=2.0, stop=ends))
            found = rivals(model, ids, beam, 6, ends, 0)
            assert ends or found.verdict == "same"
            differ += found.verdict != "same"
    assert differ > 0


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
    assert ending_with(tokenizer, "", 4) == frozenset()
    assert frozenset() == ending_with(tokenizer, ".", tokenizer.encode(".")[0])


def test_rivals_read_the_same_prompt_and_end_at_their_first_stop():
    model, ids = loud(tiny(), seed=5, factor=4.0), (1, 2, 3, 4, 5, 6, 7)
    ends = frozenset({0, 3})
    beam = finish(beam_search(model, ids, 6, 3, stop=ends))
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


def test_rivals_read_their_prompt_once():
    model, ids, widths = loud(tiny(), seed=5, factor=4.0), (1, 2, 3, 4), []
    beam = finish(beam_search(model, ids, 4, 2))
    model.register_forward_pre_hook(lambda _, given: widths.append(given[0].shape[1]))
    rivals(model, ids, beam, 4, frozenset(), seed=2)
    assert [width for width in widths if width > 1] == [len(ids)]


PROBABILITIES = (0.4, 0.3, 0.15, 0.1, 0.05)


def test_an_outcome_is_counted_in_the_models_own_probability():
    records = stages(torch.tensor(PROBABILITIES).log(), SampleConfig(temperature=2.0, top_k=3))
    found = outcome(records)
    assert (found.vocab, found.left, found.removed) == (5, 3, 2)
    assert found.cut == pytest.approx(0.15, abs=1e-6)  # of the model's, not of what temperature 2 makes of it
    roots = [math.sqrt(p) for p in PROBABILITIES[:3]]
    kept = [r / sum(roots) for r in roots]
    assert found.before == pytest.approx(math.exp(-sum(p * math.log(p) for p in PROBABILITIES)), abs=1e-5)
    assert found.after == pytest.approx(math.exp(-sum(p * math.log(p) for p in kept)), abs=1e-5)
    found = outcome(stages(torch.tensor(PROBABILITIES).log(), SampleConfig()))
    assert (found.left, found.cut) == (5, 0.0)
    records = stages(torch.tensor(PROBABILITIES).log(), SampleConfig(top_k=4, top_p=0.8))
    assert removed_by(records) == {4: "top_k", 3: "top_p"}


def torn(*choices: int) -> np.ndarray:
    """(position, vocab) logits that leave so many equally likely of 8 tokens."""
    return np.array([[0.0] * n + [-50.0] * (8 - n) for n in choices], dtype=np.float32)


def test_the_likeliest_tokens_and_the_last_place_where_the_next_is_open():
    assert last_torn(torn(8, 5, 3, 1), 4) == 1 and last_torn(torn(8, 5, 3, 1), 3.5) == 1
    assert last_torn(torn(1, 2, 6), 4) == 2
    assert last_torn(torn(1, 3, 2, 1), 4) == 1, "nowhere: where it is torn most"
    assert last_torn(np.full((3, 8), np.nan, dtype=np.float32), 4) == 2
    assert last_torn(torn(8, 1) + 1000, 7.9) == 0, "no overflow"
    values = np.array([0.1, 0.5, 0.5, 0.2])
    assert likeliest_ids(values, 3).tolist() == [1, 2, 3]


def test_many_draws_are_those_of_one_at_a_time():
    generator = np.random.default_rng(0)
    numbers = np.array([0.0, *generator.random(50), math.nextafter(1.0, 0.0), 1.0])
    for probabilities in (np.zeros(3), *generator.dirichlet([0.1] * 9, 20).astype(np.float32).round(2)):
        each = [sample.draw(probabilities, float(u)) for u in numbers]
        assert draws(probabilities, numbers).tolist() == each


def test_a_tally_counts_draws_and_how_far_they_are_away():
    found = tally(np.array(PROBABILITIES), (np.arange(8) + 0.5) / 8)
    ends = [0.0, *np.cumsum(PROBABILITIES)]
    counts = [sum(low <= (i + 0.5) / 8 < high for i in range(8)) for low, high in pairwise(ends)]
    assert found.counts.tolist() == counts and found.total == 8
    assert found.expected.tolist() == pytest.approx([8 * p for p in PROBABILITIES])
    assert found.shares.tolist() == pytest.approx([c / 8 for c in counts])
    worst = sum(max(0.0, c / 8 - p) for c, p in zip(counts, PROBABILITIES, strict=True))
    assert found.away == pytest.approx(worst)  # what some have too much, others have too little
    assert tally(np.array([0.0, 1.0]), np.array([0.5])).away == 0.0
    assert tally(np.array([0.999, 0.001]), np.array([0.9999])).away == pytest.approx(0.999)
