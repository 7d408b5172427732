"""Every fault of the lab does what it says, by arithmetic of the tests' own; and its lines are the real ones."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.faults import FAULTS, LAB_MODEL, LAB_TRAIN, PARTS, Fault, masks
from engine.faults.catalogue import GROUPS
from engine.faults.data import not_shifted, overlapping, shifted_by_two
from engine.faults.fault import body
from engine.measure.recording import check_climbs
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY
from engine.parts.single_row import known
from engine.probe import Recorder
from tests.engine.cases import for_each
from tests.engine.helpers import some_tokens, tiny

every = for_each("fault", FAULTS.values(), ids=lambda fault: fault.name)


def loud(parts: str, **fields: object) -> Transformer:
    """A model with weights that are large enough for each part to matter."""
    model = build(tiny(**fields), seed=3, parts=PARTS[parts])
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("gain"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.requires_grad_(False).eval()


def look(model: Transformer, ids: Tensor) -> Recorder:
    recorder = Recorder()
    model(ids, recorder)
    return recorder


def test_every_fault_is_there_once() -> None:
    assert [fault for group in GROUPS.values() for fault in group] == list(FAULTS.values())
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
    for config in (*healthy[:2], *faulty[:2]):
        config.validate()


@every
def test_a_diff_is_a_line_or_three_of_the_real_sources(fault: Fault) -> None:
    diff = fault.diff
    assert 1 <= len(diff.added) <= 3 and len(diff.removed) <= 2
    for healthy, faulty in fault.sources:
        assert healthy.__module__.startswith("engine.parts.")
        assert faulty.__module__.startswith("engine.faults.")
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
    assert FAULTS["not_shifted"].diff.place == "engine/parts/registry.py, shifted"
    assert FAULTS["no_positions"].diff.text == "- position = 'rope'\n+ position = 'none'"
    assert FAULTS["first_block_only"].diff.lines[1:] == (("+", "    return x"), (" ", "return x"))
    assert body(math_of)[0] == "# kept"


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
    assert PARTS[name] is not HEALTHY and not build(tiny(), parts=PARTS[name]).keeps
    assert masks.no_mask(5, torch.zeros(1)) is None


def test_targets_are_the_inputs_or_two_places_on() -> None:
    windows = torch.tensor([[5, 6, 7, 8], [1, 2, 3, 4]])
    assert [t.tolist() for t in not_shifted(windows)] == [[[5, 6, 7], [1, 2, 3]]] * 2
    x, y = shifted_by_two(windows)
    assert x.tolist() == [[5, 6, 7], [1, 2, 3]] and y.tolist() == [[7, 8, -1], [3, 4, -1]]


def test_the_split_overlaps() -> None:
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


def test_scores_are_not_divided() -> None:
    found = look(loud("unscaled_scores"), some_tokens(tiny()))
    q, k = found["blocks.0.q_rot"], found["blocks.0.k_rot"]
    np.testing.assert_allclose(found["blocks.0.scores"], q @ k.mT, atol=1e-5)


def test_heads_land_where_the_numbers_lie() -> None:
    """(head, query, d_head) = (4, 3, 4): the 48 numbers in their order, cut into three tokens of 16."""
    mixer = build(tiny(), parts=PARTS["no_transpose"]).blocks[0].mixer
    z = torch.arange(48.0).view(1, 4, 3, 4)
    assert mixer.merged(z)[0].tolist() == np.arange(48.0).reshape(3, 16).tolist()
    assert mixer.merged(z)[0, 0].tolist() == list(range(16))  # head 0 at all three tokens, and head 1 at one


def test_keys_and_values_are_read_from_the_stream_as_it_is() -> None:
    model = loud("keys_not_normed")
    found = look(model, some_tokens(model.config))
    w_q, w_k, w_v = model.blocks[1].mixer.w_qkv.weight.split(16)
    for name, weight, source in (("q", w_q, "norm1"), ("k", w_k, "resid_pre"), ("v", w_v, "resid_pre")):
        wanted = (found[f"blocks.1.{source}"] @ weight.T).unflatten(-1, (4, 4)).transpose(1, 2)
        np.testing.assert_allclose(found[f"blocks.1.{name}"], wanted, atol=1e-5)


def test_positions_are_added_twice() -> None:
    model = loud("positions_twice", position="sinusoidal")
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


def test_the_stream_is_normed_after_every_block() -> None:
    model = loud("norm_in_loop")
    found = look(model, some_tokens(model.config))
    left, read = found["blocks.0.resid_post"], found["blocks.1.resid_pre"]
    wanted = (left - left.mean(-1, keepdim=True)) / (left.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    np.testing.assert_allclose(read, wanted * model.norm_final.gain, atol=1e-4)  # type: ignore[operator]


def test_a_faulty_loop_is_not_gone_through_block_by_block() -> None:
    for parts in ("first_block_only", "norm_in_loop"):
        with pytest.raises(ConfigError, match="loop over the blocks"):
            check_climbs(PARTS[parts])
    check_climbs(HEALTHY)


def test_the_tied_table_is_reshaped() -> None:
    model = loud("reshaped_tie")
    found = look(model, some_tokens(model.config))
    x, table = found["norm_final"].numpy(), model.embedding.numpy()  # (11, 16)
    np.testing.assert_allclose(found["logits"], x @ table.reshape(16, 11), atol=1e-5)
    assert not known(model.output)


def test_the_embedding_starts_at_spread_1_and_nothing_else_does() -> None:
    config = ModelConfig(position="learned")
    faulty, healthy = build(config, parts=PARTS["loud_embedding"]), build(config)
    assert float(faulty.embedding.detach().std()) == pytest.approx(1.0, abs=0.03)
    np.testing.assert_allclose(faulty.embedding.detach() * 0.02, healthy.embedding.detach(), atol=1e-6)
    for (name, ours), theirs in zip(faulty.named_parameters(), healthy.parameters(), strict=True):
        assert name == "embedding" or torch.equal(ours, theirs)


def test_dropout_goes_on_dropping() -> None:
    model = build(tiny(dropout=0.5), parts=PARTS["dropout_left_on"])
    model.parts.mode(model, False)
    assert model.training
    tokens = some_tokens(model.config)
    assert not torch.equal(model(tokens), model(tokens))


def test_the_learning_rate_is_thirty_times_that_of_the_twin() -> None:
    fault = FAULTS["learning_rate_30x"]
    assert fault.faulty()[1].learning_rate == pytest.approx(30 * fault.healthy()[1].learning_rate)
    assert fault.healthy(LAB_MODEL, LAB_TRAIN)[1].learning_rate == 3e-3
