"""Flat buffers against torch's own AdamW; Muon against what it promises; schedules against their formulas."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.config import TrainConfig
from engine.model import Transformer, build
from engine.training.numerics import Numerics, choose
from engine.training.optim import AdamW, Optimiser, layout, learning_rate_factor, orthogonalise
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny

EXACT = Numerics(torch.device("cpu"), torch.float32, "highest", "float32")
CONFIG = tiny(attention_bias=True, norm_bias=True, ffn="swiglu", n_kv_heads=2, tie_embeddings=False)


def _loss(model: Transformer, seed: int, factor: float = 1.0) -> Tensor:
    tokens = some_tokens(model.config, batch=4, length=7, seed=seed)
    return factor * F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def _torch_optimiser(model: Transformer, config: TrainConfig) -> torch.optim.AdamW:
    """Decay on matrices and tables, none on gains and biases."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), eps=1e-8)


@for_each("grad_clip", [0.0, 0.5])
def test_adamw_equals_torch_s(grad_clip: float) -> None:
    config = TrainConfig(learning_rate=3e-3, weight_decay=0.3, grad_clip=grad_clip, beta1=0.8, beta2=0.95)
    ours, theirs = build(CONFIG), build(CONFIG)
    optimiser, reference = Optimiser(ours, config, EXACT), _torch_optimiser(theirs, config)
    for step in range(20):
        scale = 1.0 - step / 40
        norm = optimiser.update(_loss(ours, step), scale)
        reference.zero_grad()
        _loss(theirs, step).backward()
        expected = torch.nn.utils.clip_grad_norm_(theirs.parameters(), grad_clip or math.inf)
        for group in reference.param_groups:
            group["lr"] = config.learning_rate * scale
        reference.step()
        assert norm == pytest.approx(expected.item(), rel=1e-4)
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, atol=2e-5), name


def test_adamw_on_parameters_as_they_are_is_torch_s_to_the_last_bit() -> None:
    """One of them has no gradient for two steps."""
    ours, theirs = (
        [torch.randn(3, 2, generator=torch.Generator().manual_seed(i)) for i in range(2)] for _ in "ab"
    )
    optimiser = AdamW([p.requires_grad_() for p in ours], 0.1, (0.8, 0.95), 0.3)
    reference = torch.optim.AdamW([p.requires_grad_() for p in theirs], 0.1, (0.8, 0.95), weight_decay=0.3)
    for step in range(6):
        optimiser.rate = reference.param_groups[0]["lr"] = 0.1 / (1 + step)
        for some, each in ((ours, optimiser), (theirs, reference)):
            each.zero_grad()
            sum((p**3).sum() for p in some[: 1 + (step > 1)]).backward()
            each.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_the_norm_is_reported_before_clipping() -> None:
    config = TrainConfig(grad_clip=1.0)
    small, large = build(CONFIG), build(CONFIG)
    norm = Optimiser(small, config, EXACT).update(_loss(small, 0), 1.0)
    optimiser = Optimiser(large, config, EXACT)
    assert optimiser.update(_loss(large, 0, factor=1000.0), 1.0) == pytest.approx(1000 * norm, rel=1e-3)
    assert optimiser.gradient.norm().item() == pytest.approx(1.0, rel=1e-3)


def test_the_models_weights_live_in_the_buffers_one_slot_each() -> None:
    for fields in (
        {}, {"position": "t5"}, {"mixer": "shared_qk", "attention_bias": True},
        {"norm_gain": False, "tie_embeddings": False},
    ):  # fmt: skip
        model = build(tiny(**fields))
        slots = layout(model)
        shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
        assert {s.name: tuple(s.shape) for s in slots} == shapes
        assert [s.start for s in slots] == [0, *[s.stop for s in slots[:-1]]]
        for slot in slots:
            inside = slot.name.startswith("blocks.")
            assert slot.group == ("vector" if len(slot.shape) < 2 else "matrix" if inside else "table")
    for dtype in (torch.float32, torch.bfloat16):
        model = build(CONFIG)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimiser = Optimiser(model, TrainConfig(), replace(EXACT, dtype=dtype))
        for name, p in model.named_parameters():
            assert p.dtype == dtype and torch.equal(p, before[name].to(dtype)), name
        optimiser.update(_loss(model, 0), 1.0)
        matrices = [(name, p) for name, p in model.named_parameters() if p.dim() == 2]
        assert not any(torch.equal(p.float(), before[name]) for name, p in matrices)


@given(shape=st.tuples(st.integers(1, 40), st.integers(1, 40)), seed=st.integers(0, 99), size=st.floats(1e-4, 1e4))  # fmt: skip
def test_orthogonalise_brings_singular_values_near_one(
    shape: tuple[int, int], seed: int, size: float
) -> None:
    """Jordan et al. 2024: between about 0.7 and 1.2, where the matrix had a direction to speak of."""
    g = torch.randn(2, *shape, generator=torch.Generator().manual_seed(seed)) * size
    before = torch.linalg.svd(g, full_matrices=False)
    after = orthogonalise(g)
    values = torch.linalg.svdvals(after)
    assert values.max() < 1.35
    told = before.S / g.norm(dim=(1, 2), keepdim=True).squeeze(-1) > 0.02
    assert (values[told] > 0.6).all()
    # The directions stay: U^T X V is diagonal and positive.
    turned = before.U.transpose(1, 2) @ after @ before.Vh.transpose(1, 2)
    diagonal = turned.diagonal(dim1=1, dim2=2)
    assert (diagonal[told] > 0.5).all()


@for_each("optimizer", ["adamw", "muon", "sgd"])
@for_each("precision", ["float32", "bfloat16"])
def test_state_carries_everything_exactly(optimizer: str, precision: str) -> None:
    config = TrainConfig(optimizer=optimizer)
    numerics = choose(precision, "cpu")
    one, two = build(CONFIG), build(CONFIG, seed=9)
    first, second = Optimiser(one, config, numerics), Optimiser(two, config, numerics)
    for step in range(3):
        first.update(_loss(one, step), 1.0)
    state = first.state()
    second.load_state(state)
    assert all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in state.values())
    kept = {name: tensor.clone() for name, tensor in state.items()}
    for step in range(3, 6):
        assert first.update(_loss(one, step), 1.0) == second.update(_loss(two, step), 1.0)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert all(torch.equal(state[name], kept[name]) for name in kept), "a snapshot is a copy"


def test_sgd_is_pytorch_s_with_momentum() -> None:
    config = TrainConfig(optimizer="sgd", learning_rate=0.1, beta1=0.8, weight_decay=0.0, grad_clip=0.0)
    one, two = build(CONFIG), build(CONFIG)
    ours = Optimiser(one, config, choose("float32", "cpu"))
    theirs = torch.optim.SGD(two.parameters(), lr=0.05, momentum=0.8)
    for step in range(4):
        ours.update(_loss(one, step), 0.5)
        theirs.zero_grad()
        _loss(two, step).backward()
        theirs.step()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


class Published:
    """Muon as Jordan et al. 2024 write it, one matrix at a time."""

    def __init__(self, momentum: float) -> None:
        self.momentum, self.buffer = momentum, torch.zeros(())

    def step(self, weight: Tensor, gradient: Tensor, rate: float, decay: float) -> Tensor:
        self.buffer = self.momentum * self.buffer + gradient
        x = gradient + self.momentum * self.buffer
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        size = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
        return (1 - rate * decay) * weight - rate * size * x


MUON = TrainConfig(
    optimizer="muon", muon_learning_rate=0.05, muon_momentum=0.9, weight_decay=0.2, grad_clip=0.0
)


def _apart(model: Transformer, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of tensors by parameter, every matrix of the blocks by itself: those stored above each other are split."""
    slots = [slot for slot in layout(model) if slot.group == "matrix"]
    return {
        f"{s.name}[{i}]": part.detach().clone()
        for s in slots
        for i, part in enumerate(tensors[s.name].split(list(s.row_blocks)))
    }


def _gradients(model: Transformer, seed: int) -> dict[str, Tensor]:
    weights = dict(model.named_parameters())
    found = torch.autograd.grad(_loss(model, seed), list(weights.values()))
    return _apart(model, dict(zip(weights, found, strict=True)))


@for_each("fields", [{}, {"n_kv_heads": 1}, {"mixer": "shared_qk", "n_kv_heads": None}])
def test_muon_is_the_published_formula(fields: dict) -> None:
    model = loud(replace(CONFIG, **fields))
    optimiser = Optimiser(model, MUON, EXACT)
    optimiser.muon_dtype = torch.float32
    weights = _apart(model, dict(model.named_parameters()))
    if not fields:
        assert len(weights) == 2 * 7
        assert {(16, 16), (24, 16), (16, 24), (8, 16)} == {w.shape for w in weights.values()}
    assert not orthogonalise(torch.zeros(1, 4, 6)).any(), "of nothing, nothing"
    published = {name: Published(0.9) for name in weights}
    for step, scale in enumerate((0.1, 1.0, 0.5)):
        gradients = _gradients(model, step)
        optimiser.update(_loss(model, step), scale)
        found = _apart(model, dict(model.named_parameters()))
        for name, gradient in gradients.items():
            wanted = published[name].step(weights[name], gradient, 0.05 * scale, 0.2)
            torch.testing.assert_close(found[name], wanted, atol=2e-4 * scale, rtol=1e-3)
        weights = found


@for_each("schedule", ["constant", "linear", "cosine"])
def test_schedules(schedule: str) -> None:
    config = TrainConfig(steps=100, warmup_steps=10, schedule=schedule, min_lr_fraction=0.1)
    factors = [learning_rate_factor(config, step) for step in range(100)]
    assert factors[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert max(factors) <= 1.0
    if schedule == "constant":
        assert set(factors[10:]) == {1.0}
        return
    assert all(a >= b for a, b in pairwise(factors[10:]))
    assert factors[10] == pytest.approx(1.0)
    halfway = 0.1 + 0.9 * 0.5
    assert factors[55] == pytest.approx(halfway, abs=0.01)
    last = 89 / 90  # of the way down: the last step of 100 is not yet at the end
    fall = 1 - last if schedule == "linear" else 0.5 * (1 + math.cos(math.pi * last))
    assert factors[-1] == pytest.approx(0.1 + 0.9 * fall) and factors[-1] > 0.1
    assert learning_rate_factor(config, 100) == learning_rate_factor(config, 500) == pytest.approx(0.1)


@given(
    steps=st.integers(1, 50),
    warmup=st.integers(0, 80),
    step=st.integers(0, 49),
    schedule=st.sampled_from(["constant", "linear", "cosine"]),
)
def test_the_factor_is_always_a_share(steps: int, warmup: int, step: int, schedule: str) -> None:
    config = TrainConfig(steps=steps, warmup_steps=warmup, schedule=schedule, min_lr_fraction=0.0)
    assert 0.0 <= learning_rate_factor(config, step) <= 1.0
