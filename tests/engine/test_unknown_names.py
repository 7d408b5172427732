"""Names and arguments that nothing has: the engine says so, and names the nearest ones, in place of doing nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine import sample
from engine.errors import MAX_MESSAGE, ConfigError, GlassformerError, ShapeError, UnknownNameError
from engine.model import build
from engine.probe import AXES, Patcher, Recorder, check_name
from engine.recording import record
from studies.costs.presets import PRESETS
from tests.engine.cases import for_each
from tests.engine.helpers import tiny

MODEL = build(tiny())
IDS = [1, 2, 3]


@for_each("wrong, nearest", [
    (lambda: record(MODEL, IDS, only={"patern"}), "'pattern'"),
    (lambda: record(MODEL, IDS, edits={"block.0.z": torch.zeros_like}), "'blocks.0.z'"),
    (lambda: record(MODEL, IDS, edits={"blocks.7.z": torch.zeros_like}), "'blocks.0.z'"),
    (lambda: record(MODEL, IDS, edits={"z": torch.zeros_like}), "blocks.0.z"),
    (lambda: record(MODEL, IDS)["blocks.0.patern"], "'blocks.0.pattern'"),
    (lambda: record(MODEL, IDS, only={"pattern"})["blocks.0.z"], "'blocks.0.pattern'"),
    (lambda: Recorder({"blocks.0.logit"}), "'blocks.0.logits'"),
    (lambda: Patcher({"resid": torch.zeros_like}), "'resid_mid'"),
    (lambda: PRESETS["fsat"], "'fast'"),
])  # fmt: skip
def test_a_name_that_nothing_has_is_refused_with_the_nearest(wrong: Callable[[], Any], nearest: str) -> None:
    with pytest.raises(UnknownNameError) as refused:
        wrong()
    assert nearest in str(refused.value) and isinstance(refused.value, KeyError | GlassformerError)
    assert str(copy.copy(refused.value)) == str(refused.value), "it may be told by another process"


def test_an_edit_of_what_this_variant_lacks_is_refused() -> None:
    """`ffn_gate` is a name of other models; here it would silently change nothing."""
    with pytest.raises(UnknownNameError, match=r"blocks\.0\.ffn_gate.*did you mean"):
        record(MODEL, IDS, edits={"blocks.0.ffn_gate": torch.zeros_like})
    assert "blocks.0.ffn_gate" not in record(MODEL, IDS, only={"ffn_gate"}), "to ask for it is not wrong"


@for_each("scope", ["", "blocks.0.", "blocks.12.", "encoder.", "encoder.blocks.3.", "decoder.blocks.0."])
def test_every_activation_may_be_named_wherever_it_occurs(scope: str) -> None:
    for name in AXES:
        check_name(scope + name)


@for_each("scope", ["block.0.", "blocks.", "blocks.x.", "encoders.", "blocks.0.0.", "."])
def test_no_activation_lies_elsewhere(scope: str) -> None:
    with pytest.raises(UnknownNameError):
        check_name(f"{scope}z")


@for_each("wrong, sentence", [
    (lambda: record(MODEL, "text"), "tokenizer.encode"),
    (lambda: record(MODEL, [IDS]), "one sequence of ids"),
    (lambda: record(MODEL, [1.5]), "one sequence of ids"),
    (lambda: record(MODEL, 3), "one sequence of ids"),
    (lambda: MODEL([1, 2]), "must be a tensor"),
    (lambda: MODEL(torch.tensor([IDS]), lambda name, x: None), "a probe must return"),
])  # fmt: skip
def test_what_cannot_be_read_is_said(wrong: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        wrong()


def test_arrays_and_tensors_of_ids_are_read_as_lists_are() -> None:
    wanted = record(MODEL, IDS).logits
    for ids in (torch.tensor(IDS), np.array(IDS), tuple(IDS)):
        np.testing.assert_array_equal(record(MODEL, ids).logits, wanted)


def test_a_length_below_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="length = -1"):
        list(sample.steps(MODEL, IDS, -1))


def test_the_message_about_an_unknown_name_is_as_short_as_any_other() -> None:
    assert len(str(UnknownNameError("activation", "x", ["y" * 5000]))) <= MAX_MESSAGE + 3
    assert str(UnknownNameError("preset", "x", ["y"])) == "no preset is called 'x'; there are 'y'"
