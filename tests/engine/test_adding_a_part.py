"""The examples of docs/adding-a-part.md, run as they stand: three new parts, each in the four places that it names."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from engine import config
from engine.config import ModelConfig
from engine.model import Transformer
from engine.parts import feedforward as feedforward_parts
from engine.parts import norms
from engine.parts import positions as position_parts
from engine.parts.feedforward import FeedForward, GatedFeedForward, Gelu
from engine.parts.registry import FEEDFORWARDS, HEALTHY, NORMS, POSITIONS, swapped
from engine.recording import record
from engine.sample import Decoder
from pages.start.home.map_drawing import model_map
from studies.attention.ablation import Switches, compare
from studies.attention.single_head import head_stages
from studies.costs.cards import Formula
from studies.costs.cards import feedforward as feedforward_cards
from studies.costs.cards import norms as norm_cards
from studies.costs.cards import positions as position_cards
from studies.costs.cards.feedforward import GatedCard, PlainCard
from studies.costs.cards.table import CARDS, card_of
from studies.costs.ledger import ledger, parameter_formula
from studies.feedforward import activation_functions
from studies.positions.schemes import similarity
from studies.residual.attribution import attribute
from studies.shapes.formulas import formulas
from studies.shapes.operations import trace
from tests.engine.helpers import loud, tiny

DOC = Path(__file__).parents[2] / "docs" / "adding-a-part.md"
IDS = (3, 1, 4, 1, 5, 9)


def written(beside: ModuleType, patch: pytest.MonkeyPatch) -> type:
    """The class that the document adds to a file. Its example has the classes of that file, and imports the rest."""
    name = beside.__name__.replace(".", "/") + ".py"
    (source,) = re.findall(rf"```python\n# {name}\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL)
    module = ModuleType(f"example_{beside.__name__.replace('.', '_')}")
    own = {key: each for key, each in vars(beside).items() if isinstance(each, type)}
    module.__dict__.update({key: each for key, each in own.items() if each.__module__ == beside.__name__})
    before = {*module.__dict__.values()}
    patch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, name, "exec"), module.__dict__)
    added = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
    for each in added:
        assert each not in before
        patch.setattr(beside, each.__name__, each, raising=False)
    return added[-1]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry, the name, the card and the module of each part: nothing else."""
    card: Any = written(norm_cards, monkeypatch)
    norm = written(norms, monkeypatch)
    monkeypatch.setitem(norm_cards.NORM_CARDS, card.name, card)
    monkeypatch.setitem(NORMS, card.name, norm)
    monkeypatch.setitem(CARDS, norm, card)
    position, network = written(position_parts, monkeypatch), written(feedforward_parts, monkeypatch)
    monkeypatch.setitem(POSITIONS, "kerple", position)
    monkeypatch.setitem(CARDS, position, written(position_cards, monkeypatch))
    monkeypatch.setitem(FEEDFORWARDS, "reglu", network)
    monkeypatch.setitem(CARDS, network, written(feedforward_cards, monkeypatch))
    monkeypatch.setitem(FEEDFORWARDS, "tanh", Tanh)
    monkeypatch.setitem(CARDS, Tanh, TanhCard)
    monkeypatch.setitem(FEEDFORWARDS, "tanhglu", TanhGate)
    monkeypatch.setitem(CARDS, TanhGate, TanhGateCard)
    networks = (*get_args(config.Ffn), "reglu", "tanh", "tanhglu")
    positions = (*get_args(config.Position), "kerple")
    monkeypatch.setattr(config, "Ffn", Literal[networks])  # type: ignore[valid-type]
    monkeypatch.setattr(config, "GATED", (*config.GATED, "reglu"))
    names = (*get_args(config.Norm), card.name)
    monkeypatch.setattr(config, "Norm", Literal[names])  # type: ignore[valid-type]
    monkeypatch.setattr(config, "Position", Literal[positions])  # type: ignore[valid-type]
    yield
    trace.cache_clear()
    ledger.cache_clear()


class TanhCard(PlainCard):
    title: ClassVar[str] = "Tanh"
    activation_formula: ClassVar[Formula] = (r"h = \tanh(u)", "tanh(u)")


class Tanh(FeedForward):
    """A bend that nobody has named yet."""

    act: ClassVar[str] = "tanh"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return x.tanh()


class TanhGateCard(GatedCard):
    title: ClassVar[str] = "TanhGLU"


class TanhGate(GatedFeedForward):
    act: ClassVar[str] = "tanh"
    activation = staticmethod(Tanh.activation)


def model_of(**fields: Any) -> tuple[ModelConfig, Transformer]:
    chosen = tiny(**fields)
    return chosen, loud(chosen, factor=5).requires_grad_(False)


@pytest.mark.usefixtures("added")
def test_parts_that_were_added_are_honoured_everywhere() -> None:
    chosen, model = model_of(norm="scalenorm", position="kerple", n_kv_heads=2)
    assert ModelConfig.from_dict(chosen.to_dict()) == chosen
    recording = record(model, IDS)
    with torch.inference_mode():
        decoder = Decoder(model)
        np.testing.assert_allclose([decoder.read([i]) for i in IDS][-1], recording.logits[-1], atol=1e-5)
    found = attribute(model, recording, 4, 7)
    assert found.total == pytest.approx(found.logit, abs=1e-5)
    looked = head_stages(model, recording, 1, 3)
    np.testing.assert_allclose(looked.pattern, recording["blocks.1.pattern"][3], atol=1e-6)
    steps = trace(chosen, len(IDS))
    assert sum(s.parameters for s in steps) == sum(p.numel() for p in model.parameters())
    assert parameter_formula(chosen) == sum(p.numel() for p in model.parameters())
    said = formulas(model.config)
    assert all(all(said[s.bare]) for s in steps if s.bare in said)
    titles = {part["title"] for part in model_map(chosen)["parts"].values()}
    assert {"ScaleNorm", "Final ScaleNorm"} <= titles and said["norm2"][1] == "g · √d · x / |x|"
    assert "KERPLE: bias on scores" in titles
    assert said["scores"][1].endswith("− r · ln(1 + distance)") and said["position"][1]
    assert compare(model, recording, Switches(position=False)).kl.max() > 1e-6
    bias = similarity(model, 6)
    assert bias.quantity == "e^bias" and (np.diff(bias.values) < 0).all()


@pytest.mark.usefixtures("added")
def test_the_network_of_the_document_is_built_counted_and_named() -> None:
    chosen, model = model_of(ffn="reglu")
    assert ModelConfig(d_model=128, ffn="reglu").resolved().d_ff == 344, "two thirds of 4 · 128, by eights"
    recording = record(model, IDS)
    bent = np.maximum(recording["blocks.0.ffn_gate"], 0) * recording["blocks.0.ffn_pre"]
    np.testing.assert_allclose(bent, recording["blocks.0.ffn_post"], atol=1e-6)
    assert parameter_formula(chosen) == sum(p.numel() for p in model.parameters())
    assert formulas(model.config)["ffn_post"][1] == "max(0, gate) · u"


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(("ffn", "bent"), [("tanh", "ffn_pre"), ("tanhglu", "ffn_gate")])
def test_a_new_network_s_bend_is_drawn_as_its_own(ffn: str, bent: str) -> None:
    chosen, model = model_of(ffn=ffn)
    assert activation_functions.activation_name(chosen) == "tanh"
    assert activation_functions.bent_input(chosen) == bent
    functions = activation_functions.functions(chosen)
    assert [*functions] == [*activation_functions.ACTIVATIONS, "tanh"]
    drawn = activation_functions.curve("tanh", among=functions)
    np.testing.assert_allclose(drawn.y, np.tanh(drawn.x), atol=1e-12)
    assert drawn.written == "tanh"
    recording = record(model, IDS)
    passed = recording["blocks.0.ffn_pre"] if bent == "ffn_gate" else 1
    post = np.tanh(recording["blocks.0." + bent]) * passed
    np.testing.assert_allclose(post, recording["blocks.0.ffn_post"], atol=1e-6)
    gates = activation_functions.gates()
    assert gates == {name: card_of(part).title for name, part in FEEDFORWARDS.items() if part.gated}
    assert {"swiglu": "SwiGLU", "reglu": "ReGLU", "tanhglu": "TanhGLU"}.items() <= gates.items()
    axis, surface = activation_functions.gated_surface("tanhglu", 2.0, 5)
    np.testing.assert_allclose(surface, np.tanh(axis)[None, :] * axis[:, None], atol=1e-6)


def test_a_part_in_another_s_place_is_drawn_as_what_it_is() -> None:
    parts = swapped(HEALTHY, "tanh for GELU", feedforwards={"gelu": Tanh})
    assert activation_functions.activation_name(tiny(ffn="gelu"), parts) == "tanh"

    class Halved(Gelu):
        @staticmethod
        def activation(x: Tensor) -> Tensor:
            return x / 2

    parts = swapped(HEALTHY, "halved", feedforwards={"gelu": Halved})
    found = activation_functions.curve("gelu", among=activation_functions.functions(tiny(ffn="gelu"), parts))
    np.testing.assert_allclose(found.y, found.x / 2)
