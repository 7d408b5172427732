"""A mixture of experts: several feed-forward networks in the place of one, a few of which compute each token.

A router scores the experts for each token, the best `active_experts` are computed and summed with weights
made of their scores (Shazeer et al. 2017). `shared_experts` more read every token (Dai et al. 2024). The
mixture is a wide network most of whose hidden layer is 0: `ffn_post` has its neurons side by side.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.feedforward import FeedForward
from engine.parts.parameters import InitialValues, StackedLinear
from engine.probe import Probe, identity

BLOCK = 64  # rows


class Experts(FeedForward):
    """sum over the chosen e of g_e W2_e act(W1_e x): (batch, query, d_model) in and out.

    `mixture` makes a class of it for each kind of network. The matrices of all experts lie under one another,
    the shared ones last.
    """

    initial_values: ClassVar[InitialValues] = {
        **FeedForward.initial_values,
        "router": "matrix",
        "preference": 0.0,
    }
    # Parameters that no loss moves: the gradient that is made for them is their step (engine.training.optim)
    stepped: ClassVar[tuple[str, ...]] = ("preference",)

    def __init__(self, config: ResolvedConfig) -> None:
        nn.Module.__init__(self)
        self.config, self.dropout = config, config.dropout
        self.count = config.n_experts + config.shared_experts
        halves = 2 if self.gated else 1
        self.router = nn.Linear(config.d_model, config.n_experts, bias=config.ffn_bias)
        balanced = config.balance == "bias"
        self.preference = nn.Parameter(torch.empty(config.n_experts)) if balanced else None
        rows = (config.d_ff,) * (halves * self.count)
        self.w_in = StackedLinear(config.d_model, rows, bias=config.ffn_bias)
        self.w_out = StackedLinear(config.d_ff, (config.d_model,) * self.count, bias=config.ffn_bias)

    def forward(self, x: Tensor, probe: Probe) -> Tensor:
        flat = x.flatten(0, 1)  # (batch, query, d_model) -> (token, d_model)
        scores = self.scores(probe("router", self.router(x)).flatten(0, 1).float())  # (token, expert)
        weights, routed = self.route(scores)
        if probe is not identity:
            table = torch.zeros_like(scores).scatter(1, routed, weights)
            table = probe("routing", table.view(*x.shape[:2], -1)).flatten(0, 1)
            weights, routed = table.topk(self.config.active_experts)
        chosen = routed
        if shared := self.config.shared_experts:
            last = torch.arange(self.count - shared, self.count, device=x.device).expand(len(flat), shared)
            weights = torch.cat((weights, torch.ones_like(last, dtype=weights.dtype)), 1)
            chosen = torch.cat((routed, last), 1)
        rows = Rows.of(chosen, self.count)
        show = _shown(probe, x.shape[:2], chosen, rows.slots, self.count)
        wide = self.products(flat.index_select(0, rows.token), self.w_in, rows)  # (slot, d_ff or twice it)
        if self.w_in.bias is not None:
            wide = wide + rows.each(self.w_in.bias)
        gains = weights.new_zeros(len(rows.token)).index_copy(0, rows.slots, weights.flatten())
        gains = gains.to(x.dtype).unsqueeze(1)  # (slot, 1), 0 where a slot is empty
        if self.gated:
            gate, pre = wide.chunk(2, dim=-1)
            pre = show("ffn_pre", pre)
            hidden = self.combined(show("ffn_gate", gate), pre)  # type: ignore[operator]
        else:
            hidden = self.activation(show("ffn_pre", wide))
        if probe is identity:  # d_model numbers are weighted, not d_ff
            written = self.products(hidden, self.w_out, rows) * gains
        else:
            written = self.products(show("ffn_post", hidden * gains), self.w_out, rows)
        if self.w_out.bias is not None:
            written = written + gains * rows.each(self.w_out.bias)
        out = torch.zeros_like(flat).index_add(0, rows.token, written).view_as(x)
        if self.training and not out.is_meta:
            out = self.balanced(out, scores, routed)
        return probe("ffn_out", F.dropout(out, self.dropout, self.training))

    def scores(self, logits: Tensor) -> Tensor:
        """Returns the scores of experts (token, expert): softmax over them, or a sigmoid for each
        (DeepSeek-V3).
        """
        return logits.softmax(-1) if self.config.router == "softmax" else logits.sigmoid()

    def route(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Returns weights and indices of each token's experts, both (token, active_experts). A preference
        decides which are chosen and is in no weight (Wang et al. 2024).
        """
        wanted = scores if self.preference is None else scores + self.preference.float()
        chosen = wanted.topk(self.config.active_experts).indices
        weights = scores.gather(1, chosen)
        if self.config.router_norm:
            weights = weights / weights.sum(1, keepdim=True).clamp_min(1e-20)
        return weights * self.config.router_scale, chosen

    def products(self, x: Tensor, matrix: nn.Linear, rows: Rows) -> Tensor:
        """Multiplies x (slot, inputs) by the matrix of each slot's expert: (slot, outputs)."""
        each = matrix.weight.shape[0] // self.count
        parts = zip(x.split(rows.counts), matrix.weight.split(each), strict=True)
        return torch.cat([F.linear(some, weight) for some, weight in parts if len(some)])

    def balanced(self, out: Tensor, scores: Tensor, chosen: Tensor) -> Tensor:
        """Returns `out` unchanged; its backward pass adds what balances the experts. "loss": the gradient of
        `balance_rate` * E * sum f_e p_e, f_e the share of rows and p_e of scores (Fedus et al. 2021). "bias":
        a step of `balance_rate` for each preference, down where an expert has more than its share (Wang et
        al. 2024).
        """
        rate, experts = self.config.balance_rate, self.config.n_experts
        share = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()  # (expert,)
        if self.config.balance == "loss":
            p = (scores / scores.sum(1, keepdim=True)).mean(0)
            loss = rate * experts * (share * p).sum()
            return _WithGradient.apply(out, loss, torch.ones_like(loss))
        if self.preference is not None:
            step = rate * (share - 1 / experts).sign()
            return _WithGradient.apply(out, self.preference, step.to(self.preference.dtype))
        return out

    def column(self, neuron: int) -> Tensor:
        """Returns what a neuron of an expert adds to the stream where its `ffn_post` is 1, (d_model,)."""
        expert, inside = divmod(neuron, self.config.d_ff)
        return self.w_out.weight.view(self.count, self.config.d_model, -1)[expert, :, inside]


class Rows(NamedTuple):
    """One row for each token and each of its experts, sorted by expert, in slots of which each expert has a
    multiple of BLOCK: products of few shapes, since a processor prepares each shape anew.

    slots   the slot of each token's experts, in their order (token * active,)
    token   the token that is read in a slot (slot,), any where the slot is empty
    counts  of slots, by expert
    """

    slots: Tensor
    token: Tensor
    counts: list[int]

    @classmethod
    def of(cls, chosen: Tensor, count: int) -> Rows:
        """Returns the rows of the experts chosen for each token, (token, active), among `count`."""
        experts, device = chosen.flatten(), chosen.device
        n = experts.numel()
        # Padding few rows would cost more than it saves
        block = BLOCK if n >= count * BLOCK // 4 else 1
        if device.type == "meta":  # where nothing is known of the routing, and nothing is padded
            loads, block = [n // count + (i < n % count) for i in range(count)], 1
        else:
            loads = torch.bincount(experts, minlength=count).tolist()
        counts = [-(-load // block) * block for load in loads]
        gaps = [0, *accumulate(padded - load for padded, load in zip(counts, loads, strict=True))]
        order = experts.argsort(stable=True)
        ranked = torch.arange(n, device=device) + torch.tensor(gaps, device=device)[experts[order]]
        slots = torch.empty_like(order).index_copy(0, order, ranked)
        token = order.new_zeros(sum(counts)).index_copy(0, ranked, order // chosen.shape[1])
        return cls(slots, token, counts)

    def each(self, bias: Tensor) -> Tensor:
        """Returns the bias of each slot's expert, (slot, outputs), of those of all (expert * outputs,)."""
        rows = bias.view(len(self.counts), 1, -1)
        return torch.cat([row.expand(count, -1) for row, count in zip(rows, self.counts, strict=True)])


@lru_cache(maxsize=64)
def mixture(network: type[Any]) -> type[Experts]:
    """Returns the class of a mixture of networks of one kind, such as SwiGlu."""
    return type(f"{network.__name__}Experts", (Experts, network), {"__doc__": network.__doc__})


class _WithGradient(torch.autograd.Function):
    """x as it is. In the backward pass a second tensor is given a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, other: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        return grad, ctx.saved_tensors[0], None


def _shown(probe: Probe, shape: torch.Size, chosen: Tensor, slots: Tensor, count: int) -> Probe:
    """Returns a probe for rows (slot, d_ff). It shows them at their tokens and experts, with 0 for all
    others, as (batch, query, count * d_ff).
    """
    if probe is identity:
        return identity
    token = torch.arange(len(chosen), device=chosen.device).repeat_interleave(chosen.shape[1])
    at = (token, chosen.flatten())

    def show(name: str, rows: Tensor) -> Tensor:
        table = rows.new_zeros(shape.numel(), count, rows.shape[-1])
        whole = probe(name, table.index_put(at, rows.index_select(0, slots)).view(*shape, -1))
        return torch.zeros_like(rows).index_copy(0, slots, whole.view_as(table)[at])

    return show
