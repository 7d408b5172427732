"""Rounding to few bits, held against ggml's own kinds and against arithmetic on a handful of numbers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from engine.data.progress import Progress, finish
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from studies.circuits.quantisation import (
    BITS,
    Losses,
    Rounding,
    chosen,
    histogram,
    losses,
    made,
    matrices,
    rounded,
    rounding_error,
    twin,
)
from studies.weights.pretrained.blocks import block_at
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, stepped, tiny
from tests.studies.pretrained.gguf_files import opened_as


def weights(rows: int = 7, columns: int = 96, seed: int = 3) -> torch.Tensor:
    found = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.05
    found[2, 40] = 1.5  # one number far out, as real matrices have
    found[3, 32:64] = 0.0  # a block of zeros
    found[4, :32] = -0.25  # a block of equal numbers
    return found


@for_each(("kind", "way"), [("Q8_0", Rounding(8)), ("Q4_1", Rounding(4, offset=True))])
def test_our_blocks_are_ggmls(kind: str, way: Rounding) -> None:
    x = weights()
    named = GGMLQuantizationType[kind]
    expected = dequantize(quantize(x.numpy(), named), named).reshape(x.shape)
    found = rounded(x, way)
    assert np.array_equal(found.values.numpy(), expected)
    assert abs(expected - x.numpy()).max() > 1e-4


@for_each(("x", "way", "q", "values"), [
    ([0.7, -0.35, 0.05, -0.04, 0.15, 0.0], Rounding(4, block=0), [7, -4, 1, 0, 2, 0],  # d = 0.7 / 7; halves go
     [x * float(np.float16(0.1)) for x in (7, -4, 1, 0, 2, 0)]),  # away from zero
    ([0.7, -0.35, 0.05, -0.04, 0.15, 0.0], Rounding(2, block=0), [1, -1, 0, 0, 0, 0], None),
    ([1.0, 1.5, 2.0, 4.0], Rounding(2, block=4, offset=True), [0, 1, 1, 3], [1.0, 2.0, 2.0, 4.0]),  # d = m = 1
])  # fmt: skip
def test_levels_by_hand(x: list[float], way: Rounding, q: list[int], values: list[float] | None) -> None:
    found = rounded(torch.tensor([x]), way)
    assert found.q.ravel().tolist() == q
    assert values is None or found.values.ravel().tolist() == pytest.approx(values)


def test_what_is_taken_by_hand() -> None:
    x = torch.tensor([[0.5, -1.0, 0.1, 0.0]])
    found = rounding_error(x, rounded(x, Rounding(2, block=0)))  # 1 (half is rounded up), -1, 0, 0
    assert (found.relative, found.largest) == pytest.approx((np.sqrt(0.26 / 1.26), 0.5))
    assert (found.zeros, found.bits) == (0.5, 2 + 16 / 4)
    same = rounding_error(x, None)
    assert (same.relative, same.largest, same.zeros, same.bits) == (0.0, 0.0, 0.25, 32)


def test_the_last_block_of_a_row_may_be_shorter() -> None:
    x = weights(columns=70)
    found = rounded(x, Rounding(3, block=32))
    assert found.q.shape == (7, 3, 32) and found.values.shape == x.shape
    alone = rounded(x[:, 64:], Rounding(3, block=6))
    assert torch.equal(found.values[:, 64:], alone.values)
    x = weights()
    block, whole = (rounding_error(x, rounded(x, Rounding(4, block))) for block in (32, 0))
    assert whole.relative > 2 * block.relative
    assert whole.zeros > 0.8 > block.zeros


def test_a_histogram_counts_all_but_the_outermost() -> None:
    x = weights()
    found = histogram(x, rounded(x, Rounding(2, block=0)))
    assert found.edges[-1] == -found.edges[0] == pytest.approx(np.quantile(np.abs(x.numpy()), 0.999))
    assert found.before.sum() >= 0.998 and len(found.before) == len(found.middles) == 121
    assert found.after[60] == pytest.approx(1 - 1 / x.numel())  # all but the one far out became zero
    assert np.array_equal(histogram(x, None).after, histogram(x, None).before)


def test_a_block_of_ours_is_what_ggml_would_store() -> None:
    matrix = torch.randn(3, 96, generator=torch.Generator().manual_seed(1))
    found = made(matrix, 2, 1)
    raw = quantize(matrix[2, 32:64].numpy()[None], GGMLQuantizationType.Q4_1).ravel()
    assert (found.scale, found.minimum) == tuple(raw[:4].view("<f2"))
    assert found.q.tolist() == [*(raw[4:] & 15), *(raw[4:] >> 4)]
    assert np.array_equal(found.original, matrix[2, 32:64].numpy())
    assert found.numbers == pytest.approx(found.q * found.scale + found.minimum, abs=1e-6)
    assert found.largest_error == pytest.approx(abs(found.numbers - found.original).max())
    assert found.largest_error < 0.51 * found.scale
    assert found.bits == 5.0 and (found.low, found.high) == (0, 15)
    assert set(np.round(found.numbers, 5)) <= set(np.round(found.levels, 5)) and len(found.levels) == 16
    shorter = made(matrix[:, :40], 1, 1)  # a row's last block
    assert shorter.q.shape == shorter.numbers.shape == (8,) and shorter.bits == 4 + 32 / 8
    for row, index in ((3, 0), (0, 3), (-1, 0), (0, -1)):
        with pytest.raises(ShapeError, match="no block"):
            made(matrix, row, index)


@for_each("kind, bits, span", [("Q4_0", 4.5, (-8, 7)), ("Q4_1", 5.0, (0, 15)), ("Q8_0", 8.5, (-127, 127))])
def test_a_block_of_a_file(kind: str, bits: float, span: tuple[int, int], tmp_path: Path) -> None:
    opened = opened_as(kind, tmp_path)
    found = block_at(opened, "blocks.1.mixer.w_qkv.weight", 33, 0)  # of the keys
    assert found is not None and found.name == "blk.1.attn_k.weight"
    expected = opened.weights()["blocks.1.mixer.w_qkv.weight"][33].numpy()
    assert np.array_equal(found.numbers, expected)
    assert found.bits == bits and (found.low, found.high) == span
    assert len(found.levels) == span[1] - span[0] + 1
    assert found.original is None and found.largest_error is None
    assert block_at(opened, "blocks.1.ffn.w_out.weight", 0, 0) is None  # rows of 44: stored as float32


IDS = (1, 2, 3, 4, 5, 6, 7)


def changed_copy(model: Transformer, names: tuple[str, ...], *way: Any) -> float:
    """The loss of a whole copy, its matrices overwritten."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if name in names:
                parameter.copy_(rounded(parameter, Rounding(*way)).values)
        logits = other(torch.tensor([IDS]))[0]
    return float(F.cross_entropy(logits[:-1], torch.tensor(IDS[1:])))


@for_each("name", ["learned", "gated, qk-norm", "shared qk", "biases"])
@for_each("scope", ["matrix", "kind", "all"])
def test_the_loss_is_that_of_a_changed_copy(name: str, scope: Any) -> None:
    model = loud(tiny(**ARCHITECTURES[name]))
    before = {name: x.clone() for name, x in model.state_dict().items()}
    names = chosen(model, "blocks.1.ffn.w_in.weight", scope)
    found = finish(losses(model, IDS, names, offset=True))
    for block, curve in ((32, found.by_block), (0, found.whole)):
        assert curve == pytest.approx([changed_copy(model, names, b, block, True) for b in BITS], abs=1e-5)
    assert abs(found.by_block[-1] - found.full) > 1e-4
    assert found.at(32, whole=True) == found.full and found.at(2, whole=False) == found.by_block[-1]
    assert found.perplexity(32, False) == pytest.approx(np.exp(found.full))
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())


def test_a_shared_model_is_never_touched() -> None:
    """Even while the twin computes, nobody else sees a rounded matrix: not by value, not by identity."""
    model = loud(tiny())
    before = dict(model.named_parameters())
    held = {name: (x, x.clone(), x.data_ptr()) for name, x in before.items()}
    made = twin(model, chosen(model, "embedding", "all"), Rounding(2))

    def looked(name: str, x: torch.Tensor) -> torch.Tensor:
        for at, parameter in model.named_parameters():
            same, value, place = held[at]
            assert parameter is same and parameter.data_ptr() == place and torch.equal(parameter, value)
        return x

    first = made(torch.tensor([IDS]), looked)
    assert torch.equal(first, made(torch.tensor([IDS])))
    own = {name for name, x in made.named_parameters() if x.data_ptr() != before[name].data_ptr()}
    assert own == {"embedding"}  # blocks give theirs up behind them


def test_the_matrices_of_a_model() -> None:
    model = loud(tiny(ffn_bias=True, attention_bias=True))
    found = matrices(model)
    assert found["ffn.w_in.weight"] == ("blocks.0.ffn.w_in.weight", "blocks.1.ffn.w_in.weight")
    assert found["embedding"] == ("embedding",) == chosen(model, "embedding", "kind")
    named = {name for names in found.values() for name in names}
    assert named == {n for n, x in model.named_parameters() if x.dim() == 2 and n != "positions.weight"}
    assert set(chosen(model, "embedding", "all")) == named
    seen, found = stepped(losses(model, IDS, chosen(model, "blocks.0.mixer.w_o.weight", "kind")))
    assert seen == [Progress(i, 9) for i in range(1, 10)]
    assert (found.matrices, found.numbers, found.tokens) == (2, 2 * 16 * 16, 6)
    by_block = np.array([{4: 1.5}.get(bits, 1.01) for bits in BITS])
    found = Losses(1.0, by_block, np.full(len(BITS), 3.0), 1, 1, 1)
    assert found.enough(whole=False, more=0.02) == 8  # 3 would do, 4 would not
    assert (
        Losses(4.0, 4 * by_block, 4 * by_block, 1, 1, 1).enough(whole=False, more=0.02) == 8
    )  # a share, not nats
    assert found.enough(whole=False, more=0.5) == min(BITS) and found.enough(whole=True, more=0.02) == 32


def test_what_cannot_be_measured() -> None:
    model = loud(tiny())
    for one, ids, says in ((model, (1,), "one token"), (loud(tiny(causal=False)), IDS, "encoder")):
        with pytest.raises(ShapeError, match=says):
            finish(losses(one, ids, ("embedding",)))
    with pytest.raises(ConfigError, match="not a matrix"):
        chosen(model, "positions.weight", "kind")
    with pytest.raises(ConfigError, match="not a matrix"):
        twin(model, ("nothing",), Rounding(4))
