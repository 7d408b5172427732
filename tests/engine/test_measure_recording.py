"""A recording holds what the model computed, and nothing can change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ShapeError
from engine.measure.recording import next_token_losses, record
from engine.probe import Recorder
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, tiny

IDS = [3, 1, 4, 1, 5, 9]


@for_each("fields", [*ARCHITECTURES.values(), {"norm": "none"}, {"mixer": "similarity"}, {"causal": False}])
def test_arrays_are_the_models_own_tensors(fields: dict[str, Any]) -> None:
    model = loud(tiny(**fields))
    recorder = Recorder()
    with torch.inference_mode():
        logits = model(torch.tensor([IDS]), recorder)
    found = record(model, IDS)
    assert found.names() == list(recorder.tensors)
    assert found.ids == tuple(IDS) and found.config == model.config
    for name, tensor in recorder.tensors.items():
        own = tensor.numpy() if name == "pos_embed" else tensor[0].numpy()
        np.testing.assert_array_equal(found[name], own)
        assert found[name].ndim == len(found.axes(name)) and "batch" not in found.axes(name)
        assert found[name].dtype == (np.int64 if name == "tokens" else np.float32)
    np.testing.assert_array_equal(found.logits, logits[0].numpy())
    assert ("blocks.0.ffn_post" in found) == (fields.get("ffn") != "none")


def test_nothing_can_be_written_into_it() -> None:
    found = record(loud(tiny()), IDS)
    for name in found.names():
        with pytest.raises(ValueError, match="read-only"):
            found[name][...] = 0


def test_blocks_are_stacked_bottom_first() -> None:
    model = loud(tiny())
    found = record(model, IDS)
    stacked = found.stacked("pattern")
    assert stacked.shape == (2, 4, 6, 6)
    np.testing.assert_array_equal(stacked[1], found["blocks.1.pattern"])
    np.testing.assert_allclose(stacked.sum(-1), 1.0, atol=1e-5)
    with pytest.raises(KeyError):
        record(loud(tiny(ffn="none")), IDS).stacked("ffn_post")
    some = record(model, IDS, only={"ffn_post", "blocks.1.pattern", "logits"}).names()
    assert some == ["blocks.0.ffn_post", "blocks.1.pattern", "blocks.1.ffn_post", "logits"]


@for_each(
    ("ids", "says"),
    [([], "at least one"), ([11], "between 0 and 10"), ([0, -1], "between 0 and 10"), (list(range(9)), "8")],
)
def test_ids_that_cannot_be_read(ids: list[int], says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        record(loud(tiny(position="learned")), ids)


def test_probabilities_and_losses_are_those_of_torch() -> None:
    model = loud(tiny())
    found = record(model, IDS)
    with torch.inference_mode():
        logits = model(torch.tensor([IDS]))[0].double()
    expected = torch.log_softmax(logits, -1)
    np.testing.assert_allclose(found.log_probabilities, expected.numpy(), atol=1e-10)
    losses = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(IDS[1:]), reduction="none")
    np.testing.assert_allclose(next_token_losses(found), losses.numpy(), atol=1e-10)
    assert next_token_losses(record(model, [3])).shape == (0,)
