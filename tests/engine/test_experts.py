"""A mixture of experts, against its definition written out token by token."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, TrainConfig
from engine.errors import ConfigError
from engine.model import build
from engine.parts.experts import BLOCK, Experts
from engine.probe import Patcher, Recorder, identity
from engine.training.numerics import choose
from engine.training.optim import Optimiser
from studies.costs.ledger import ledger
from studies.shapes.backward import matrices
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

KINDS: dict[str, dict[str, Any]] = {
    "softmax": {"ffn": "relu2"},
    "gated, biases": {"ffn": "swiglu", "ffn_bias": True},
    "sigmoid": {"ffn": "gelu", "router": "sigmoid", "router_norm": False, "router_scale": 2.5},
    "shared, balanced": {"ffn": "relu2", "shared_experts": 2, "balance": "bias", "ffn_bias": True},
    "one of many": {"ffn": "geglu", "n_experts": 8, "active_experts": 1, "router_norm": False},
}


def part(**fields: Any) -> Experts:
    """A mixture of a block, its biases and preferences moved."""
    model = loud(tiny(**{"n_experts": 4, **fields}), factor=8)
    network = model.blocks[0].ffn
    assert isinstance(network, Experts)
    return network


def by_hand(network: Experts, x: Tensor) -> Tensor:
    """Each token's experts one after another, x (token, d_model), from the weights alone."""
    c = network.config
    scores = x @ network.router.weight.T + (0 if network.router.bias is None else network.router.bias)
    scores = scores.softmax(-1) if c.router == "softmax" else 1 / (1 + torch.exp(-scores))
    halves = 2 if network.gated else 1
    out = []
    for vector, score in zip(x, scores, strict=True):
        wanted = score if network.preference is None else score + network.preference
        best = sorted(range(c.n_experts), key=lambda e: -wanted[e].item())[: c.active_experts]
        total = sum(score[e] for e in best) if c.router_norm else 1
        weights = {e: score[e] / total * c.router_scale for e in best}
        weights |= dict.fromkeys(range(c.n_experts, c.n_experts + c.shared_experts), torch.tensor(1.0))
        written = torch.zeros_like(vector)
        for e, weight in weights.items():
            rows, columns = (slice(e * k, (e + 1) * k) for k in (halves * c.d_ff, c.d_model))
            wide = network.w_in.weight[rows] @ vector
            bias = network.w_out.bias
            if network.w_in.bias is not None:
                wide = wide + network.w_in.bias[rows]
            if network.gated:
                hidden = network.activation(wide[: c.d_ff]) * wide[c.d_ff :]
            else:
                hidden = network.activation(wide)
            plain = network.w_out.weight[columns] @ hidden
            written = written + weight * (plain if bias is None else plain + bias[columns])
        out.append(written)
    return torch.stack(out)


@for_each("kind", KINDS)
@for_each("tokens", [3, 4 * BLOCK])
def test_it_is_the_weighted_sum_of_each_token_s_experts_and_so_is_its_gradient(
    kind: str, tokens: int
) -> None:
    network = part(**KINDS[kind])
    x = torch.randn(1, tokens, 16, generator=torch.Generator().manual_seed(3), requires_grad=True)
    ours, wanted = network(x, identity), by_hand(network, x[0])
    torch.testing.assert_close(ours[0], wanted, atol=1e-4, rtol=1e-4)
    moved = [x, network.router.weight, network.w_in.weight, network.w_out.weight]
    for mine, theirs in zip(
        torch.autograd.grad(ours.square().mean(), moved),
        torch.autograd.grad(wanted.square().mean(), moved),
        strict=True,
    ):
        assert float((mine - theirs).norm() / theirs.norm()) < 1e-4


@for_each("kind", KINDS)
def test_a_probe_sees_what_ran_and_a_patch_decides_the_experts(kind: str) -> None:
    config = tiny(**{"n_experts": 4, **KINDS[kind]})
    model, recorder = loud(config, factor=8), Recorder()
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    torch.testing.assert_close(model(tokens, recorder), model(tokens), atol=1e-4, rtol=1e-4)
    routing, post = recorder["blocks.1.routing"], recorder["blocks.1.ffn_post"]
    assert ((routing > 0).sum(-1) == config.active_experts).all()
    count = config.n_experts + config.shared_experts
    computed = post.view(*post.shape[:2], count, -1).ne(0).any(-1)[..., : config.n_experts]
    assert not (computed & (routing == 0)).any()
    network: Any = model.blocks[1].ffn
    columns = torch.stack([network.column(n) for n in range(post.shape[-1])])  # (neuron, d_model)
    if not config.ffn_bias:
        torch.testing.assert_close(post @ columns, recorder["blocks.1.ffn_out"], atol=1e-4, rtol=1e-4)
    if config.active_experts > 1:
        only = torch.zeros_like(routing).index_fill(-1, torch.tensor(2), 1.0)
        seen = Recorder()
        model(tokens, Patcher({"blocks.1.routing": lambda _: only}, then=seen))
        apart = seen["blocks.1.ffn_post"].view(*post.shape[:2], count, -1).abs().sum((0, 1, 3))
        assert apart[: config.n_experts].nonzero().flatten().tolist() == [2]


def gradient(network: Experts, x: Tensor, of: Tensor) -> Tensor:
    """That of a loss which reads nothing but the first output."""
    network.train()
    (found,) = torch.autograd.grad(network(x, identity)[0, 0].sum(), [of])
    return found


def test_the_balancing_loss_adds_its_gradient_and_changes_no_output() -> None:
    x = torch.randn(1, 40, 16, generator=torch.Generator().manual_seed(1))
    plain, balanced = part(), part(balance="loss", balance_rate=0.3)
    torch.testing.assert_close(plain.train()(x, identity), balanced.train()(x, identity))
    added = gradient(balanced, x, balanced.router.weight) - gradient(plain, x, plain.router.weight)
    scores = (x[0] @ plain.router.weight.T).softmax(-1)
    share = F.one_hot(scores.topk(2).indices, 4).sum((0, 1)) / 80
    (wanted,) = torch.autograd.grad(0.3 * 4 * (share * scores.mean(0)).sum(), [plain.router.weight])
    torch.testing.assert_close(added, wanted, atol=1e-5, rtol=1e-4)
    assert balanced.eval()(x, identity).shape == x.shape


def test_a_bias_steps_down_where_an_expert_has_more_than_its_share_whatever_the_clipping() -> None:
    config = tiny(n_experts=4, active_experts=1, balance="bias", balance_rate=0.02)
    model = build(config)
    network: Any = model.blocks[0].ffn
    with torch.no_grad():
        network.preference.copy_(torch.tensor([0.0, 0.0, 0.0, 9.0]))
    optimiser = Optimiser(model, TrainConfig(grad_clip=1e-9), choose("float32", "cpu"))
    tokens = torch.arange(6).view(1, 6)
    model.train()
    norm = optimiser.update(F.cross_entropy(model(tokens)[0], tokens[0]), 1.0)
    torch.testing.assert_close(network.preference, torch.tensor([0.02, 0.02, 0.02, 8.98]))
    assert 0 < norm < 10 and "model.blocks.0.ffn.preference" in optimiser.state()


def test_what_a_token_costs_follows_the_active_experts_and_what_is_stored_all_of_them() -> None:
    few, many = (ledger(tiny(ffn="swiglu", n_experts=n, d_ff=24)) for n in (4, 16))
    assert many.total - few.total == 2 * 12 * (3 * 16 * 24 + 16)
    assert many.flops(8).forward - few.flops(8).forward == 2 * 2 * 12 * 16  # the router's alone
    dense = ledger(tiny(ffn="swiglu", d_ff=48))
    assert few.active == dense.total + 2 * 4 * 16 and many.active == dense.total + 2 * 16 * 16
    assert dense.active == dense.total
    assert few.flops(8).forward - dense.flops(8).forward == 2 * 2 * 4 * 16
    assert math.isclose(few.flops(8).multiplying, dense.flops(8).multiplying + 2 * 4 * 16)


@for_each("wrong", [{"ffn": "none"}, {"active_experts": 5}, {"balance_rate": 2.0}])
def test_a_mixture_that_cannot_be_built_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        replace(ModelConfig(n_experts=4), **wrong).validate()


@for_each("ffn, names", [("swiglu", ["W_gate 2", "W_in 2"]), ("relu2", ["W_in 2"])])
def test_each_expert_has_matrices_of_its_own_where_gradients_are_looked_at(
    ffn: str, names: list[str]
) -> None:
    model = build(tiny(ffn=ffn, n_experts=3, d_ff=24))
    found = matrices(model)
    network: Any = model.blocks[1].ffn
    kinds = len(names)
    for place, name in enumerate(names):
        rows = found[f"1.{name}"]
        assert (rows.start, rows.stop) == (24 * (2 * kinds + place), 24 * (2 * kinds + place + 1))
    assert found["1.W_out 2"].stop == network.w_out.weight.shape[0] == 3 * 16
