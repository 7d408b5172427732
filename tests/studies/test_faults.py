"""A fault is a swap of parts: it does what it says, training honours it, and a file remembers it."""

from __future__ import annotations

import copy
import inspect
import io
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.checkpoints import pack, unpack
from engine.config import ModelConfig, ResolvedConfig, SampleConfig, TrainConfig
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import CheckpointError, ConfigError
from engine.model import Transformer, build
from engine.parts.attention import Attention
from engine.parts.feedforward import Gelu
from engine.parts.registry import HEALTHY, Parts, parts_of, swapped
from engine.probe import Recorder
from engine.recording import check_plain_stack
from engine.sample import complete
from engine.training.batches import Batches, measure
from engine.training.records import Snapshot, Step
from engine.training.train import train
from runs.estimate import Pace, forward_flops
from runs.profiles import PROFILES, check, check_model, estimate_bytes
from runs.state import Run, RunSpec
from studies.attention.shared_keys import shared_keys
from studies.costs.cards.feedforward import GeluCard
from studies.costs.cards.mixers import AttentionCard
from studies.costs.cards.table import CARDS
from studies.costs.ledger import ledger, parameter_formula
from studies.generation.kv_cache import cache_size, compare, filled_bytes, sharing
from studies.generation.single_row import SUPPORTED
from studies.lab.faults import FAULTS, LAB_MODEL, LAB_TRAIN, PARTS, Fault, masks
from studies.lab.faults.fault import WORDS, body
from studies.lab.faults.training import not_shifted, overlapping, shifted_by_two
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny, verse
from tests.engine.toys import TOYS, RunningMean

CORPUS = verse()
MODEL = ModelConfig(vocab_size=CORPUS.vocab_size, context=16, d_model=32, n_layers=1, n_heads=2, dropout=0.2)
TRAIN = TrainConfig(steps=4, batch_size=4, eval_every=0, sample_every=0, precision="float32", warmup_steps=0)
FAULT = "unscaled_scores"
SHARP = "toy mixer"


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    spec = RunSpec(MODEL, TRAIN, "text", "abc " * 99, parts="other")
    for call, said in (
        (lambda: parts_of("no_such_fault"), "must be one of healthy, raw_values"),
        (lambda: check(PROFILES["local"], spec), "parts"),
    ):
        with pytest.raises(ConfigError, match=said):
            call()


@for_each("name", PARTS)
def test_a_file_remembers_what_its_model_is_made_of(name: str) -> None:
    model = build(tiny(vocab_size=CORPUS.vocab_size), parts=PARTS[name])
    data = pack(model, CORPUS.tokenizer, {})
    config = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("config.json"))
    assert config.get("parts", "healthy") == name and ("parts" in config) == (name != "healthy")
    found = unpack(data)
    assert found.model.parts is PARTS[name] and found.model.config == model.config
    tokens = torch.tensor([[3, 1, 4, 1]])
    assert torch.equal(found.model(tokens), model.eval()(tokens))
    again = unpack(pack(found.model, tokenizer_from_dict(found.tokenizer.to_dict()), {})).model
    assert again.parts is copy.deepcopy(model).parts is PARTS[name]


def test_a_file_with_parts_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CheckpointError, match="toy norm"):
        pack(build(MODEL, parts=TOYS["norm"]), CORPUS.tokenizer, {})
    data = pack(build(MODEL, parts=PARTS[FAULT]), CORPUS.tokenizer, {})
    other = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(other, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info).replace(FAULT.encode(), b"another"))
    with pytest.raises(CheckpointError, match="must be one of healthy"):
        unpack(other.getvalue())


def test_the_mode_is_replaceable() -> None:
    """A mode that never leaves training: an evaluation drops, and so does a sample."""
    asked: list[bool] = []

    def forgotten(model: torch.nn.Module, training: bool) -> None:
        asked.append(training)
        model.train(True)

    parts = swapped(HEALTHY, "forgotten", mode=forgotten)
    batches = Batches(CORPUS, MODEL, TRAIN)
    faulty, healthy = build(MODEL, parts=parts), build(MODEL)
    found = [measure(faulty, batches, CORPUS.validation[:200]).nats for _ in range(2)]
    same = [measure(healthy, batches, CORPUS.validation[:200]).nats for _ in range(2)]
    assert found[0] != found[1] and same[0] == same[1] and asked == [False, True] * 2
    complete(faulty, CORPUS.tokenizer, "gre", 2, 0.0, 0)
    assert asked[4:] == [False, True] and healthy.training


@pytest.mark.parametrize(("name", "optimizer"), [("norm", "adamw"), ("position", "muon"), ("mixer", "muon")])
def test_a_part_that_nobody_has_seen_can_be_trained(name: str, optimizer: Any) -> None:
    order = replace(TRAIN, steps=12, optimizer=optimizer, learning_rate=0.01)
    records = list(train(MODEL, order, CORPUS, parts=TOYS[name]))
    told = [r.loss for r in records if isinstance(r, Step)]
    assert sum(told[-3:]) < sum(told[:3]) - 0.5
    state = next(r.state for r in records if isinstance(r, Snapshot))
    assert set(state.weights()) == {n for n, _ in build(MODEL, parts=TOYS[name]).named_parameters()}


@pytest.fixture
def sharp(monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setitem(PARTS, SHARP, TOYS["mixer"])  # type: ignore[arg-type]
    more = parameter_formula(MODEL, TOYS["mixer"])
    assert more == sum(p.numel() for p in build(MODEL, parts=TOYS["mixer"]).parameters())
    assert more != parameter_formula(MODEL)
    return TOYS["mixer"]


def test_limits_and_runs_count_the_parts_that_they_are_given(sharp: Parts) -> None:
    spec = RunSpec(MODEL, TRAIN, "text", "abc " * 99, parts=SHARP)
    there = parameter_formula(MODEL, sharp)
    assert Run("a", "me", spec, Path("unused"), 0.0).parameters == there
    fewer, more = sorted((parameter_formula(MODEL), there))
    refused, allowed = (sharp, HEALTHY) if there == more else (HEALTHY, sharp)
    profile = replace(PROFILES["local"], max_parameters=fewer)
    checks = (
        lambda parts: check_model(profile, MODEL, parts),
        lambda parts: check(profile, replace(spec, parts=parts.name)),
    )
    for called in checks:
        called(allowed)
        with pytest.raises(ConfigError, match=f"{more:,} parameters"):
            called(refused)


def test_what_writing_costs_is_the_model_s_own() -> None:
    """A mixer that is no HeadMixer: two products fewer, and a cache of its own width."""
    parts = swapped(HEALTHY, "no heads", mixers={"attention": RunningMean})
    model = build(MODEL, parts=parts).eval().requires_grad_(False)
    exact = ledger(MODEL, parts=parts)
    (pair,) = compare(model, (1, 2, 3), 1, SampleConfig())
    assert pair.flops == 3 * exact.flops(3).forward != 3 * ledger(MODEL).flops(3).forward
    filled, _ = filled_bytes(model, (1, 2, 3))
    assert cache_size(MODEL, 3, parts=parts).formula == filled
    halved = swapped(HEALTHY, "one of the two", mixers={"attention": KeepsKeysAlone})
    size = cache_size(MODEL, 10, parts=halved)
    assert (size.formula, size.numbers, size.tensor) == (32 * 10 * 4, "1 · 32 · 10 · 4", 2 * 32 * 10 * 4)
    assert sharing(MODEL, 10, "float32", halved).sizes[2].formula == size.formula
    found = shared_keys(MODEL, 2, 2, 4, halved)
    assert found.cache_bytes_per_token == 32 * 4 and found.parameters == 2 * 32 * 32


class KeysAloneCard(AttentionCard):
    @classmethod
    def cached_numbers(cls, config: ResolvedConfig) -> int:
        return config.n_kv_heads * config.d_head


class KeepsKeysAlone(Attention):
    """An Attention whose card says that half the numbers are cached."""


CARDS[KeepsKeysAlone] = KeysAloneCard


def test_the_memory_of_a_training_is_that_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network with four times as many numbers kept asks for more, by twice their bytes."""

    class HoarderCard(GeluCard):
        saved_widths = 8

    class Hoarder(Gelu):
        pass

    monkeypatch.setitem(CARDS, Hoarder, HoarderCard)
    parts = swapped(HEALTHY, "hoarder", feedforwards={MODEL.ffn: Hoarder})
    more = estimate_bytes(MODEL, TRAIN, parts) - estimate_bytes(MODEL, TRAIN)
    wider = 8 - GeluCard.saved_widths
    numbers = wider * MODEL.resolved().d_ff * TRAIN.batch_size * MODEL.context * MODEL.n_layers
    assert more == 2 * 4 * numbers


def test_how_long_it_takes_follows_the_parts(sharp: Parts) -> None:
    assert forward_flops(MODEL, sharp) == ledger(MODEL, parts=sharp).flops().forward
    assert forward_flops(MODEL, sharp) != forward_flops(MODEL)
    paces = [Pace(MODEL, TRAIN, 4, 1.0, parts).work_a_second for parts in (HEALTHY, sharp)]
    fewer = 4 * 3 * (forward_flops(MODEL) - forward_flops(MODEL, sharp)) * TRAIN.batch_size * MODEL.context
    assert paces[0] - paces[1] >= fewer > 0


every = for_each("fault", FAULTS.values(), ids=lambda fault: fault.name)


def look(model: Transformer, ids: Tensor) -> Recorder:
    recorder = Recorder()
    model(ids, recorder)
    return recorder


def test_every_fault_is_there_once() -> None:
    assert list(FAULTS) == list(WORDS) == [fault.name for fault in FAULTS.values()]
    rungs = {"healthy", "raw_values", "swapped_masks"}  # the last is of the encoder-decoder alone
    assert set(PARTS) - rungs == {f.parts for f in FAULTS.values()} - rungs


@every
def test_healthy_and_faulty_differ_by_the_fault_alone(fault: Fault) -> None:
    healthy, faulty = fault.healthy(), fault.faulty()
    assert healthy[2] == "healthy" and faulty[2] == fault.parts
    both = zip(healthy[:2], faulty[:2], strict=True)
    changed = {name for one, other in both for name, _ in one.to_dict().items() - other.to_dict().items()}
    assert changed == set(fault.model) | set(fault.train)
    assert changed or fault.parts != "healthy"
    if fault.name == "learning_rate_30x":
        assert faulty[1].learning_rate == pytest.approx(30 * healthy[1].learning_rate)
        assert fault.healthy(LAB_MODEL, LAB_TRAIN)[1].learning_rate == 3e-3
    for config in (*healthy[:2], *faulty[:2]):
        config.validate()


@every
def test_a_diff_is_a_line_or_three_of_the_real_sources(fault: Fault) -> None:
    diff = fault.diff
    assert 1 <= len(diff.added) <= 3 and len(diff.removed) <= 2
    for healthy, faulty in fault.sources:
        assert healthy.__module__.startswith("engine.parts.")
        assert faulty.__module__.startswith("studies.lab.faults.")
    sources = ["".join(inspect.getsource(one) for one in side) for side in zip(*fault.sources, strict=True)]
    for source, lines in zip(sources, (diff.removed, diff.added), strict=False):
        assert all(line.strip() in source for line in lines)
    if not fault.sources:
        assert all(" = " in line for line in diff.removed + diff.added)


def test_a_diff_by_hand() -> None:
    assert FAULTS["not_shifted"].diff.lines == (
        ("-", "return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()"),
        ("+", "return windows[:, :-1].contiguous(), windows[:, :-1].contiguous()"),
    )
    assert FAULTS["not_shifted"].diff.location == "engine/parts/registry.py, shifted"
    assert FAULTS["no_positions"].diff.text == "- position = 'rope'\n+ position = 'none'"
    assert FAULTS["first_block_only"].diff.lines[1:] == (("+", "    return x"), (" ", "return x"))
    assert body(math_of)[0] == "# kept"


def test_the_lines_of_a_fault_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = FAULTS["not_shifted"].diff
    monkeypatch.setattr(inspect, "getsource", None)
    assert FAULTS["not_shifted"].diff is first


def math_of(x: int) -> int:
    """Not this."""
    # kept
    return x


o, X = 0.0, -math.inf
TABLES = {
    "transposed_mask": [[o, o, o, o, o], [X, o, o, o, o], [X, X, o, o, o], [X, X, X, o, o], [X, X, X, X, o]],
    "leaky_mask": [[o, o, X, X, X], [o, o, X, X, X], [o, o, o, o, X], [o, o, o, o, X], [o, o, o, o, o]],
}


@for_each("name", TABLES)
def test_a_wrong_mask_is_the_table_written_here(name: str) -> None:
    mask = PARTS[name].mask(5, torch.zeros(1))
    assert mask is not None and mask.tolist() == TABLES[name]
    assert PARTS[name] is not HEALTHY and not build(tiny(), parts=PARTS[name]).can_cache
    assert masks.no_mask(5, torch.zeros(1)) is None


def test_targets_are_the_inputs_or_two_places_on_and_the_split_overlaps() -> None:
    windows = torch.tensor([[5, 6, 7, 8], [1, 2, 3, 4]])
    assert [t.tolist() for t in not_shifted(windows)] == [[[5, 6, 7], [1, 2, 3]]] * 2
    x, y = shifted_by_two(windows)
    assert x.tolist() == [[5, 6, 7], [1, 2, 3]] and y.tolist() == [[7, 8, -1], [3, 4, -1]]
    train, validation = overlapping(torch.arange(8), torch.arange(8, 10))
    assert train.tolist() == list(range(10)) and validation.tolist() == [8, 9]


SCORES = torch.tensor([[[[0.5, 2.0, -1.0], [1.0, 0.0, 3.0], [0.2, 0.4, 0.6]]]])
MASK = torch.tensor([[o, X, X], [o, o, X], [o, o, o]])


def test_a_mask_after_the_softmax_and_a_softmax_over_queries() -> None:
    e = np.exp(SCORES[0, 0].numpy())
    late, across = np.tril(e / e.sum(1, keepdims=True)), np.tril(e) / np.tril(e).sum(0, keepdims=True)
    for parts, wanted in (("mask_after_softmax", late), ("softmax_over_queries", across)):
        mixer = build(tiny(), parts=PARTS[parts]).blocks[0].mixer
        found = mixer.weights(mixer.masked(SCORES, MASK), MASK)[0, 0]
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_float16_overflows_between_11_and_12() -> None:
    mixer = build(tiny(), parts=PARTS["half_softmax"]).blocks[0].mixer
    fine, lost = mixer.weights(torch.tensor([[11.0, 0.0]])), mixer.weights(torch.tensor([[11.1, 0.0]]))
    np.testing.assert_allclose(fine, [[math.exp(11) / (math.exp(11) + 1), 1 / (math.exp(11) + 1)]], atol=2e-3)
    assert lost.isnan().any() and math.exp(11.0) < 65_504 < math.exp(11.1)


def test_heads_land_where_the_numbers_lie() -> None:
    """(head, query, d_head) = (4, 3, 4): the 48 numbers in their order, cut into three tokens of 16."""
    mixer = build(tiny(), parts=PARTS["no_transpose"]).blocks[0].mixer
    z = torch.arange(48.0).view(1, 4, 3, 4)
    assert mixer.merged(z)[0].tolist() == np.arange(48.0).reshape(3, 16).tolist()
    assert mixer.merged(z)[0, 0].tolist() == list(range(16))  # head 0 at all three tokens, and head 1 at one


def test_scores_are_not_divided_and_keys_and_values_are_read_from_the_stream_as_it_is() -> None:
    found = look(loud(tiny(), parts=PARTS["unscaled_scores"]), some_tokens(tiny()))
    q, k = found["blocks.0.q_rot"], found["blocks.0.k_rot"]
    np.testing.assert_allclose(found["blocks.0.scores"].detach(), (q @ k.mT).detach(), rtol=1e-4)
    model = loud(tiny(), parts=PARTS["keys_not_normed"]).requires_grad_(False)
    found = look(model, some_tokens(model.config))
    w_q, w_k, w_v = model.blocks[1].mixer.w_qkv.weight.split(16)
    for name, weight, source in (("q", w_q, "norm1"), ("k", w_k, "resid_pre"), ("v", w_v, "resid_pre")):
        wanted = (found[f"blocks.1.{source}"] @ weight.T).unflatten(-1, (4, 4)).transpose(1, 2)
        np.testing.assert_allclose(found[f"blocks.1.{name}"], wanted, atol=1e-5)


def test_positions_are_added_twice() -> None:
    model = loud(tiny(position="sinusoidal"), parts=PARTS["positions_twice"]).requires_grad_(False)
    found = look(model, some_tokens(model.config))["pos_embed"]
    place, i = np.arange(6)[:, None], np.arange(0, 16, 2)[None, :]
    angle = place / 10_000 ** (i / 16)
    wanted = np.stack([2 * np.sin(angle), 2 * np.cos(angle)], -1).reshape(6, 16)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_only_the_first_block_runs() -> None:
    model = build(tiny(), parts=PARTS["first_block_only"])
    tokens = some_tokens(model.config)
    before = model(tokens)
    F.cross_entropy(before.flatten(0, 1), tokens.flatten()).backward()
    assert all(p.grad is None for p in model.blocks[1].parameters())
    assert all(p.grad is not None for p in model.blocks[0].parameters())
    with torch.no_grad():
        model.blocks[1].ffn.w_out.weight.fill_(9.0)
    assert torch.equal(model(tokens), before)
    for parts in ("first_block_only", "norm_in_loop"):
        with pytest.raises(ConfigError, match="loop over the blocks"):
            check_plain_stack(PARTS[parts])
    check_plain_stack(HEALTHY)


def test_the_stream_is_normed_after_every_block() -> None:
    model = loud(tiny(), parts=PARTS["norm_in_loop"]).requires_grad_(False)
    found = look(model, some_tokens(model.config))
    left, read = found["blocks.0.resid_post"], found["blocks.1.resid_pre"]
    wanted = (left - left.mean(-1, keepdim=True)) / (left.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    np.testing.assert_allclose(read, wanted * model.norm_final.gain, atol=1e-4)  # type: ignore[operator]


def test_the_tied_table_is_reshaped() -> None:
    model = loud(tiny(), parts=PARTS["reshaped_tie"]).requires_grad_(False)
    found = look(model, some_tokens(model.config))
    table = model.embedding.reshape(16, 11)  # (11, 16)
    torch.testing.assert_close(found["logits"], found["norm_final"] @ table)
    assert type(model.output) not in SUPPORTED


@for_each("fault, table", [("loud_embedding", "embedding"), ("loud_positions", "positions.weight")])
def test_one_table_starts_at_spread_1_and_nothing_else_does(fault: str, table: str) -> None:
    config = ModelConfig(position="learned")
    faulty, healthy = build(config, parts=PARTS[fault]), build(config)
    assert float(faulty.get_parameter(table).detach().std()) == pytest.approx(1.0, abs=0.03)
    for (name, ours), theirs in zip(faulty.named_parameters(), healthy.parameters(), strict=True):
        times = 50 if name == table else 1
        np.testing.assert_allclose(ours.detach(), times * theirs.detach(), rtol=1e-5)
