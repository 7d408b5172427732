"""Texts without their padding: the same answers and gradients, and nothing computed for what is no token."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.errors import ShapeError
from engine.parts.packing import Packing
from engine.seq2seq import Seq2Seq
from tests.engine.seq2seq_toys import kinds, loud_pair, some

LENGTHS = ((3, 5), (7, 1), (2, 8), (1, 2))  # tokens of each source and target


def unequal() -> tuple[Tensor, Tensor, Tensor]:
    """Sources, targets and which places of the targets are real, filled up to the longest."""
    source, target = some(4, 7, 1), some(4, 8, 2)
    real = torch.zeros(target.shape, dtype=torch.bool)
    target[:, 0] = 1
    for row, (read, written) in enumerate(LENGTHS):
        source[row, read:] = 0
        target[row, written:] = 0
        real[row, :written] = True
    return source, target, real


def seen(model: Seq2Seq, *given: Tensor) -> tuple[Tensor, list[int]]:
    """What the model says, and how many vectors the first feed-forward network of each tower read."""
    rows: list[int] = []
    hooks = [
        tower.blocks[0].ffn.w_in.register_forward_pre_hook(
            lambda _, read: rows.append(read[0].flatten(0, -2).shape[0])
        )
        for tower in (model.encoder, model.decoder)
    ]
    said = model.said(*given)
    for hook in hooks:
        hook.remove()
    return said, rows


def test_packed_and_padded_by_hand() -> None:
    texts = Packing(torch.tensor([[True, True, False], [False, True, False]]))
    grid = torch.arange(12.0).view(2, 3, 2)
    packed = texts.packed(grid)
    assert texts.tokens == 3 and packed.tolist() == [[[0, 1], [2, 3], [8, 9]]]
    back = texts.padded(packed[..., None])  # one head for each number, one wide
    assert back.squeeze(-1).tolist() == [[[0, 1], [2, 3], [0, 0]], [[0, 0], [8, 9], [0, 0]]]


@kinds
def test_what_is_said_is_what_is_said_of_each_text_alone(fields: dict[str, Any]) -> None:
    model, (source, target, real) = loud_pair(**fields), unequal()
    alone = [
        model(source[i : i + 1, :read], target[i : i + 1, :written])[0]
        for i, (read, written) in enumerate(LENGTHS)
    ]
    said = model.said(source, target, real)
    assert said.shape == (16, 13)
    torch.testing.assert_close(said, torch.cat(alone), rtol=1e-4, atol=1e-5)


@kinds
def test_the_gradients_are_those_of_the_padded_texts(fields: dict[str, Any]) -> None:
    model, (source, target, real) = loud_pair(**fields, factor=2.0).double().requires_grad_(True), unequal()
    told = torch.empty(16, 13, dtype=torch.float64).normal_(generator=torch.Generator().manual_seed(0))
    parameters = list(model.parameters())
    padded, packed = (
        torch.autograd.grad((logits * told).sum(), parameters, materialize_grads=True)
        for logits in (model(source, target)[real], model.said(source, target, real))
    )
    for (name, _), one, other in zip(model.named_parameters(), padded, packed, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11, msg=name)


def test_padding_is_computed_with_only_where_there_is_little() -> None:
    model = loud_pair()
    assert seen(model, *unequal())[1] == [13, 16]  # the tokens of LENGTHS
    source, target = some(4, 7), some(4, 8)
    real = torch.ones(target.shape, dtype=torch.bool)
    source[0, 5:], real[0, 6:] = 0, False  # 4 of 60 places
    said, rows = seen(model, source, target, real)
    assert rows == [28, 32]
    torch.testing.assert_close(said, model(source, target)[real])


def test_what_cannot_be_packed_is_a_sentence() -> None:
    model, (source, target, real) = loud_pair(), unequal()
    with pytest.raises(ShapeError, match="must come first"):
        model.said(source, target, real.flip(1))
    with pytest.raises(ShapeError, match="3 targets do not belong to 4 sources"):
        model.said(source, target[:3], real[:3])
    with pytest.raises(ShapeError, match="a source of 13 tokens is too long"):
        model.said(torch.nn.functional.pad(source, (0, 6)), target, real)
    with pytest.raises(ShapeError, match="empty"):
        model.said(source[:, :0], target[:, :0], real[:, :0])
