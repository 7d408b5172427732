"""What every part promises, held for every entry of every registry and for parts made here: a swapped part is
honoured wherever the model is read, taken apart, switched, traced, counted and drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, SampleConfig
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, build
from engine.parts.attention import HeadMixer
from engine.parts.positions import NoPosition
from engine.parts.registry import FEEDFORWARDS, HEALTHY, MIXERS, NORMS, POSITIONS, WIRINGS, Parts, swapped
from engine.probe import Probe
from engine.recording import record
from engine.sample import Decoder
from engine.sample.generate import steps
from pages.start.home.map_drawing import model_map
from studies.attention.ablation import Switches, compare
from studies.attention.single_head import head_stages
from studies.costs.cards.table import card_of
from studies.costs.ledger import parameter_formula
from studies.generation.single_row import SUPPORTED
from studies.lab.faults import PARTS
from studies.residual.attribution import attribute
from studies.residual.stream import outputs, states
from studies.shapes import operations
from studies.shapes.formulas import formulas
from studies.shapes.operations import tensor_of, trace
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.engine.toys import TOYS, BareNorm, DoubledAttention, LogBias, PlainProducts, RunningMean

IDS = (3, 1, 4, 1, 5, 9)
REGISTRIES = {"norm": NORMS, "position": POSITIONS, "mixer": MIXERS, "ffn": FEEDFORWARDS, "wiring": WIRINGS}


@dataclass(frozen=True)
class Case:
    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    parts: Parts = HEALTHY

    @property
    def config(self) -> ModelConfig:
        return tiny(**self.fields)


OWN = [Case(f"{kind}={name}", {kind: name}) for kind, registry in REGISTRIES.items() for name in registry]
RICH = [  # every part at once with all that it may have
    Case("rich", dict(norm_bias=True, attention_bias=True, ffn_bias=True, qk_norm=True, n_kv_heads=2)),
    Case(
        "rich rope", dict(position="rope", norm="rmsnorm", ffn="swiglu", tie_embeddings=False, n_kv_heads=1)
    ),
    Case("part rope", dict(position="rope", rope_fraction=0.5, wiring="parallel")),
    Case("no w_o", dict(output_projection=False, position="t5")),
    Case("window", dict(window=3, position="alibi")),
    Case("windows by layer", dict(window=3, global_every=2, position="rope", n_kv_heads=2)),
    Case("mla", dict(mixer="mla", position="rope", d_latent=6, d_rotated=4, d_query=5, attention_bias=True)),
    Case("qwen3-next", dict(mixer="gated", position="rope", rope_fraction=0.5, n_kv_heads=2, qk_norm=True)),
    Case("gpt-oss", dict(mixer="sinks", window=3, global_every=2, position="rope", attention_bias=True)),
    Case("qwen3", dict(position="rope", norm="rmsnorm", qk_norm=True, qk_gain=True, n_kv_heads=2)),
    Case("gain of shared keys", dict(mixer="shared_qk", qk_norm=True, qk_gain=True)),
    Case("gemma", dict(position="rope", norm="rmsnorm", ffn="geglu_tanh", embedding_scale=True)),
    Case("bloom", dict(position="alibi", embedding_norm=True, norm_bias=True)),
    Case("bert", dict(embedding_norm=True, token_types=2, wiring="post", norm_bias=True)),
    Case("token types", dict(token_types=3, embedding_scale=True)),
    Case("t5", dict(position="t5", norm="rmsnorm", score_scale=False)),
    Case("experts", dict(n_experts=5, shared_experts=1, ffn="swiglu", ffn_bias=True, balance="bias")),
    Case(
        "experts, sigmoid",
        dict(n_experts=4, ffn="relu2", router="sigmoid", router_norm=False, router_scale=2.5),
    ),
    Case("masked head", dict(output_head="masked", norm_bias=True, tie_embeddings=False)),
]
AT = {"positions_twice": {"position": "sinusoidal"}}
RAW = {
    "one matrix": {"mixer": "shared_qk"}, "no w_o": {"output_projection": False, "position": "rope"},
    "qk-norm": {"qk_norm": True, "qk_gain": True, "mixer": "shared_qk"},
}  # fmt: skip
FAULTS = [
    *(Case(name, AT.get(name, {}), parts) for name, parts in PARTS.items() if parts is not HEALTHY),
    *(Case(f"raw values, {name}", fields, PARTS["raw_values"]) for name, fields in RAW.items()),
]
NEVER_RAN = "first_block_only"
FORWARD = ("norms", "positions", "mixers", "feedforwards", "wirings", "outputs", "stack")
MADE = [
    *(Case(f"toy {kind}", {}, parts) for kind, parts in TOYS.items()),
    Case("plain products", {}, swapped(HEALTHY, "plain products", mixers={"attention": PlainProducts})),
    Case("toy norm, post", {"wiring": "post"}, TOYS["norm"]),
    Case("toy mixer, rope", {"position": "rope"}, TOYS["mixer"]),
    Case("toy mixer and bias", {}, swapped(TOYS["mixer"], "two toys", positions={"learned": LogBias})),
    Case("no heads", {}, swapped(HEALTHY, "no heads", mixers={"attention": RunningMean})),
]
CASES = [*OWN, *RICH, *FAULTS, *MADE]
every = for_each("case", CASES, ids=lambda case: case.name)
# of what takes long, each name of each registry and what is made here; the others hold in the exhaustive tier, too
each_name = for_each("case", CASES, ids=lambda case: case.name, fast=[*OWN, *MADE])


def model_of(case: Case) -> Transformer:
    """Loud enough that every part matters, not so loud that float32 blurs it."""
    return loud(case.config, factor=6, parts=case.parts).requires_grad_(False)


def has_heads(model: Transformer) -> bool:
    return isinstance(model.blocks[0].mixer, HeadMixer)


@every
def test_what_is_read_and_written_is_the_model_s_own_forward_whether_it_keeps_or_not(case: Case) -> None:
    """What is written: each id is the likeliest after the forward pass of all before it."""
    model = model_of(case)
    if model.can_cache:
        with torch.inference_mode():
            whole = model(torch.tensor([IDS]))[0]
            decoder = Decoder(model)
            ours = [decoder.read(IDS[:2]), *(decoder.read([token]) for token in IDS[2:])]
        np.testing.assert_allclose(torch.stack(ours), whole[1:], atol=1e-5)
    else:  # what comes later changes what was before: then nothing is kept
        changed = record(model, (*IDS[:-1], 7)).logits[:-1]
        assert np.abs(changed - record(model, IDS).logits[:-1]).max() > 1e-3
        with pytest.raises(ShapeError, match="later"):
            Decoder(model)
    seen = list(IDS[:3])
    for record_of in steps(model, seen, 4, SampleConfig(temperature=0)) if model.output.present else ():
        with torch.inference_mode():
            wanted = model(torch.tensor([seen]))[0, -1]
        np.testing.assert_allclose(record_of.logits, wanted, atol=1e-5)
        seen.append(record_of.token)


@every
def test_exactly_the_supported_parts_take_the_fast_path(case: Case) -> None:
    model = model_of(case)
    if model.can_cache and not {"window", "output_head", "n_experts"} & set(case.fields):
        own = all(getattr(case.parts, name) == getattr(HEALTHY, name) for name in FORWARD)
        own &= all(registry[getattr(case.config, kind)] in SUPPORTED for kind, registry in REGISTRIES.items())
        assert (Decoder(model)._fast is not None) == own


def test_dropout_that_was_not_switched_off_drops_in_generation_too() -> None:
    model = build(tiny(dropout=0.5))
    model.parts.mode(model, True)
    with torch.inference_mode():
        one, other = (Decoder(model).read([3]) for _ in range(2))
    assert not torch.equal(one, other)


@for_each("position", ["rope", "alibi", "t5", "sinusoidal", "none"])
@for_each("mixer", ["attention", "mean", "similarity"])
def test_sizes_follow_the_need_and_not_the_context(position: str, mixer: str) -> None:
    """Ten tokens of a model that claims a context of twenty million."""
    config = tiny(context=20_000_000, position=position, mixer=mixer)
    decoder = Decoder(build(config).eval())
    with torch.inference_mode():
        for token in range(10):
            decoder.read([token])
    assert decoder.length == 10 and decoder.cache.capacity == 64
    hooks = decoder._fast.hooks
    held = [decoder.cache.held, *(t for t in vars(hooks).values() if isinstance(t, torch.Tensor))]
    assert sum(t.nbytes for t in held) < 200_000
    qkv = decoder._fast.blocks[0][1].mixer.qk.untyped_storage()
    assert qkv.nbytes() == 4 * 48


def test_a_cache_that_grows_changes_no_logit() -> None:
    for position in ("rope", "alibi", "t5", "learned"):
        model = model_of(Case("", {"context": 200, "position": position}))
        ids = [i % 11 for i in range(150)]
        with torch.inference_mode():
            decoder = Decoder(model)
            ours = [decoder.read([token]) for token in ids][-1]
            np.testing.assert_allclose(ours, model(torch.tensor([ids]))[0, -1], atol=1e-4)
        assert decoder.cache.capacity == 200


@every
def test_attribution_sums_to_the_logit_or_says_why_not(case: Case) -> None:
    model = model_of(case)
    recording = record(model, IDS)
    headless = not has_heads(model) and case.parts.mixer(model.config).present
    why = {
        "wiring": not case.parts.sums(model.config),
        "output_head": not model.output.linear,
        "norm": not (case.parts.norm(model.config).divides or model.config.norm == "none"),
        "heads": headless,
    }
    refused = next((field for field, holds in why.items() if holds), None)
    if refused:
        with pytest.raises(ConfigError, match=refused):
            attribute(model, recording, 4, 7)
        return
    for versus in (None, 2, "mean"):
        found = attribute(model, recording, 4, 7, versus)
        assert found.total == pytest.approx(found.logit, abs=1e-4)


@for_each("parts, said", [
    (swapped(HEALTHY, "bare", norms={"layernorm": BareNorm}), "division"),
    (swapped(HEALTHY, "doubled", mixers={"attention": DoubledAttention}), "DoubledAttention"),
])  # fmt: skip
def test_a_part_that_cannot_be_taken_apart_is_refused(parts: Parts, said: str) -> None:
    model = model_of(Case("", {}, parts))
    with pytest.raises(ConfigError, match=said):
        attribute(model, record(model, IDS), 4, 7)


@every
def test_the_stream_s_last_state_is_what_the_final_norm_reads(case: Case) -> None:
    recording = record(model_of(case), IDS)
    if case.name == NEVER_RAN:
        with pytest.raises(ShapeError, match="block 1 of this model never ran"):
            outputs(recording)
        return
    if case.name == "norm_in_loop":  # each block's output is normed before it is read on
        return
    np.testing.assert_array_equal(states(recording)[-1].array, outputs(recording)[-1])


@every
def test_stages_are_the_recording(case: Case) -> None:
    model = model_of(case)
    recording = record(model, IDS)
    if not has_heads(model):
        with pytest.raises((ConfigError, KeyError)):
            head_stages(model, recording, 0, 0)
        return
    layer = 0 if case.name == NEVER_RAN else 1
    block = f"blocks.{layer}."
    for head in range(4):
        found = head_stages(model, recording, layer, head)
        scores = found.scaled if found.bias is None else found.scaled + found.bias
        ours = {"scores": scores, "masked_scores": found.masked, "pattern": found.pattern, "z": found.z}
        for name, numbers in ours.items():
            np.testing.assert_allclose(numbers, recording[block + name][head], atol=1e-5, err_msg=name)
    written = sum(head_stages(model, recording, layer, head).written for head in range(4))
    constant = model.blocks[layer].mixer.constant()
    whole = written if constant is None else written + constant.numpy()
    np.testing.assert_allclose(whole, recording[block + "attn_out"], atol=1e-5)


@each_name
def test_a_trace_is_the_recording_with_a_formula_for_each_step(case: Case) -> None:
    """Its tape tells by scopes, not by names of functions, whose work an operation is."""
    model = model_of(case)
    recording = record(model, IDS)
    steps = trace(case.config, len(IDS), case.parts)
    for step in steps:
        found = tensor_of(step, recording)
        if found is not None and step.name in recording:
            np.testing.assert_array_equal(found[0], recording[step.name])
            assert found[0].shape == step.output.sizes[-found[0].ndim :], step.name
    numbers = sum(p.numel() for p in model.parameters())
    assert sum(s.parameters for s in steps) == parameter_formula(case.config, case.parts) == numbers
    said = formulas(model.config, case.parts)
    assert all(all(said[name.rpartition(".")[2]]) for name in recording.names())
    names = [step.bare for step in steps]
    enters = case.parts.position(model.config).enters
    assert names.count("mask") == (case.name != "no_mask")
    assert names.count("position") == (1 if {"rotate", "bias"} & set(enters) else 0)
    assert ("pos_embed" in names) == ("embed" in enters)
    assert names.count("pattern") == (2 if has_heads(model) else 0)


@each_name
def test_a_trace_without_numbers_is_that_of_a_pass_over_numbers(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = trace.__wrapped__(case.config, len(IDS), case.parts)
    monkeypatch.setattr(operations, "DEVICE", "cpu")
    computed = trace.__wrapped__(case.config, len(IDS), case.parts)
    if not case.config.n_experts:  # whose rows depend on the numbers
        assert found == computed
    assert [step.name for step in found] == [step.name for step in computed]


@every
def test_the_position_switch_leaves_nothing_of_the_scheme(case: Case) -> None:
    model = model_of(case)
    config = model.config
    silent = swapped(case.parts, "silent", positions={config.position: NoPosition})
    bare = build(case.config, parts=silent).eval()
    weights = {k: v for k, v in model.state_dict().items() if not k.startswith("positions.")}
    bare.load_state_dict(weights)
    before = record(model, IDS)
    found = compare(model, before, Switches(position=False))
    np.testing.assert_allclose(found.after.logits, record(bare, IDS).logits, atol=1e-5)
    acts = case.parts.position(config).enters and (
        has_heads(model) or "embed" in case.parts.position(config).enters
    )
    assert (np.abs(found.after.logits - before.logits).max() > 1e-4) == bool(acts)


def remixed(case: Case, **methods: Any) -> Parts:
    name = case.config.mixer
    return swapped(case.parts, "remixed", mixers={name: type("Other", (case.parts.mixers[name],), methods)})


@each_name
def test_what_is_switched_off_is_a_model_of_other_parts(case: Case) -> None:
    """Of the same weights: no scale, no mask, a head that gives nothing or its mean."""
    model = model_of(case)
    before, config = record(model, IDS), case.config
    heads = ((0, 1), (1, 1))
    if not has_heads(model):
        for switches in (Switches(scale=False), Switches(mask=False), Switches(heads_off=heads)):
            if case.parts.mixer(model.config).present:
                with pytest.raises(ConfigError, match="heads"):
                    compare(model, before, switches)
            else:
                np.testing.assert_array_equal(compare(model, before, switches).after.logits, before.logits)
        return
    passing = case.parts.mixer(model.config).let_through  # type: ignore[attr-defined]

    def without(by_mean: bool) -> Parts:
        def let_through(mixer: HeadMixer, z: torch.Tensor, x: torch.Tensor, probe: Probe) -> torch.Tensor:
            z = passing(mixer, z, x, probe).clone()
            z[:, 1] = z[:, 1].mean(1, keepdim=True) if by_mean else 0
            return z

        return remixed(case, let_through=let_through)

    plain = (
        remixed(case, scores=HeadMixer.raw_scores)
        if card_of(type(model.blocks[0].mixer)).scored
        else case.parts
    )
    bare = swapped(case.parts, "no mask", mask=lambda length, like, start=0: None)
    for switches, other, parts in (
        (Switches(scale=False), config, plain),
        (Switches(scale=False, position=False), config, plain),
        (Switches(mask=False), replace(config, window=0), bare),
        (Switches(heads_off=heads, ablation="zero"), config, without(by_mean=False)),
        (Switches(heads_off=heads, ablation="mean"), config, without(by_mean=True)),
    ):
        twin = build(other, parts=parts).eval()
        twin.load_state_dict(model.state_dict())
        wanted = record(twin, IDS, positions=switches.position).logits
        found = compare(model, before, switches).after.logits
        np.testing.assert_allclose(found, wanted, atol=1e-5, err_msg=str(switches))


@every
def test_the_map_names_every_part(case: Case) -> None:
    c, parts = case.config.resolved(), case.parts
    drawn = model_map(case.config, made_of=parts)
    said = {name: part["title"] for name, part in drawn["parts"].items()}
    boxes = {box["id"] for box in drawn["wide"]["boxes"]}
    mixer, norm, position = parts.mixer(c), parts.norm(c), parts.position(c)
    placed = position.present and (mixer.present or "embed" in position.enters)
    for name, part, there in (
        ("attention", card_of(mixer), mixer.present),
        ("norm1", card_of(norm), norm.present and mixer.present),
        ("position", card_of(position), placed),
    ):
        assert not there or (said[name] == part.title and name in boxes)
    if mixer.present:
        assert drawn["parts"]["attention"]["text"].startswith(card_of(mixer).sentence)
    assert ("feedforward" in boxes) == parts.feedforward(c).present
