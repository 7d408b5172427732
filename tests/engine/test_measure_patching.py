"""Patching, held against the plain way: the whole model again for every patch, by `engine.probe.Patcher`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError, ShapeError, TokenizerError
from engine.measure import patching
from engine.measure.contrast import MOST, Contrast, Prompts, both_runs, fits, inside_a_word, prompts_of
from engine.measure.patching import Patching, most_copies, patch, sites
from engine.measure.patching_facts import Cell, Station, stations, strongest, verdict
from engine.model import Transformer, build
from engine.parts.protocols import swapped
from engine.parts.registry import HEALTHY
from engine.probe import Patcher, Recorder
from engine.progress import finish
from engine.tokenizers.char import CharTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

PROMPTS = Prompts((1, 2, 3, 4, 5, 6), (1, 2, 9, 4, 5, 10), (7, 8))

VARIANTS: dict[str, dict[str, Any]] = {
    "learned": {}, "rope": {"position": "rope"}, "alibi": {"position": "alibi"}, "t5": {"position": "t5"},
    "sinusoidal": {"position": "sinusoidal", "norm": "rmsnorm"}, "no position": {"position": "none"},
    "post": {"wiring": "post", "norm_bias": True}, "parallel": {"wiring": "parallel", "position": "rope"},
    "no residual": {"wiring": "none"},
    "grouped, window": {"n_kv_heads": 2, "window": 3, "position": "rope", "attention_bias": True},
    "gated, qk-norm": {"ffn": "swiglu", "norm": "rmsnorm", "qk_norm": True, "position": "rope"},
    "shared qk": {"mixer": "shared_qk", "tie_embeddings": False}, "mean": {"mixer": "mean", "n_layers": 3},
    "no ffn": {"ffn": "none"}, "no mixer": {"mixer": "none"}, "no projection": {"output_projection": False},
}  # fmt: skip


def plainly(model: Transformer, prompts: Prompts, site: str) -> np.ndarray:
    """The whole corrupted prompt through the whole model, once for each patch."""
    a, b = prompts.answers
    seen = Recorder()
    clean = model(torch.tensor([prompts.clean]), seen)[0, -1]
    tokens = torch.tensor([prompts.corrupted])
    base = model(tokens)[0, -1]
    low, high = base[a] - base[b], clean[a] - clean[b]
    heads, length = model.config.n_heads, len(prompts.clean)
    found = np.zeros((model.config.n_layers, heads if site == "z" else length), np.float32)
    for layer in range(len(found)):
        name = f"blocks.{layer}.{site}"
        for place in range(found.shape[1]):

            def put(x: torch.Tensor, name: str = name, place: int = place) -> torch.Tensor:
                x = x.clone()
                x[:, place] = seen[name][:, place]  # a position of a stream, or a head with all its positions
                return x

            out = model(tokens, Patcher({name: put}))[0, -1]
            found[layer, place] = (out[a] - out[b] - low) / (high - low)
    return found


@for_each("variant", VARIANTS)
@torch.inference_mode()
def test_it_is_the_whole_pass_for_every_patch(variant: str) -> None:
    model = loud(tiny(**VARIANTS[variant]), factor=6.0)
    for site in sites(model.config, model.parts):
        expected = plainly(model, PROMPTS, site)
        found = finish(patch(model, PROMPTS, site))
        span = found.contrast.span  # in nats: a share of a small span is a large number
        assert found.restored * span == pytest.approx(expected * span, abs=1e-4), site
        assert np.abs(expected).max() > 0.01, "a map of nothing holds nothing"


@torch.inference_mode()
def test_without_the_mask_every_patch_reaches_back() -> None:
    """A model whose mask was left out: what comes later changes what came before, so nothing may be kept."""
    open_mask = swapped(HEALTHY, "open", mask=lambda length, like, start=0: None)
    model = build(tiny(position="rope"), seed=3, parts=open_mask).eval()
    for parameter in model.parameters():
        parameter.mul_(6.0) if parameter.dim() > 1 else None
    expected = plainly(model, PROMPTS, "resid_pre")
    assert np.abs(expected[1, :2]).max() > 1e-3, "tokens before the first change matter here"
    assert finish(patch(model, PROMPTS, "resid_pre")).restored == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("site", ["resid_pre", "z"])
def test_a_few_copies_at_a_time_come_to_the_same(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loud(tiny(position="rope", n_layers=5), factor=6.0)
    whole = finish(patch(model, PROMPTS, site)).restored
    monkeypatch.setattr(patching, "MEMORY", 30_000)
    few = most_copies(model.config, 6, 4)
    assert few < (5 if site == "resid_pre" else 20)
    seen = []
    rise = patching._Copies.rise

    def counted(self: Any, layer: int) -> None:
        rise(self, layer)
        seen.append(len(self.x))

    monkeypatch.setattr(patching._Copies, "rise", counted)
    assert finish(patch(model, PROMPTS, site)).restored == pytest.approx(whole, abs=1e-5)
    assert max(seen) <= max(few, most_copies(model.config, 6, 1))


def test_the_memory_that_one_climb_may_take() -> None:
    """A block of 576 numbers a token, 48 tokens, 9 heads that see 48: each number by hand."""
    c = ModelConfig(d_model=576, n_heads=9, n_kv_heads=3, d_ff=1536, n_layers=30).resolved()
    query = 6 * 576 + 4 * 1536 + 4 * (9 + 2 * 3) * 64 + 4 * 9 * 48
    copy = 4 * (query * 48 + 2 * 3 * 64 * 48)
    assert most_copies(c, 48, 48) == (256 << 20) // copy == 89
    huge = ModelConfig(d_model=16_384, n_heads=128, d_ff=65_536, n_layers=126).resolved()
    assert most_copies(huge, 48, 48) >= 1


def test_both_ends_of_the_scale() -> None:
    """All that differs, put in at the bottom, restores everything; where nothing differs, nothing does."""
    model = loud(tiny(position="rope"), factor=6.0)
    one = Prompts(PROMPTS.clean, (1, 2, 9, 4, 5, 6), PROMPTS.answers)
    found = finish(patch(model, one, "resid_pre"))
    assert found.restored[0] == pytest.approx([0, 0, 1, 0, 0, 0], abs=1e-5)
    assert (found.restored[:, :2] == 0.0).all()
    with torch.inference_mode():
        clean, corrupted = (model(torch.tensor([ids]))[0, -1] for ids in (one.clean, one.corrupted))
    assert found.contrast.clean == pytest.approx(float(clean[7] - clean[8]), abs=1e-5)
    assert found.contrast.corrupted == pytest.approx(float(corrupted[7] - corrupted[8]), abs=1e-5)
    assert found.contrast.guesses == (int(clean.argmax()), int(corrupted.argmax()))


def test_it_says_how_far_it_is() -> None:
    """Two layers, positions 2 to 5: for each the copies of block 0 pass two blocks, those of block 1 one."""
    model = loud(tiny())
    seen = list(patch(model, PROMPTS, "resid_pre"))
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total == 3 * (4 + 3 + 2 + 1)


LETTERS = CharTokenizer("\n abcdefghijklmnopqrstuvwxyz")


@for_each("clean, corrupted, answers, error, said", [
    ("the cat", "the bird", ("s", "t"), ShapeError, "7 tokens and the second 8"),
    ("the cat", "the cat", ("s", "t"), ShapeError, "are the same"),
    ("the cat", "the rat", ("s", "sing"), TokenizerError, "both answers begin with the token “s”"),
    (
        "the cat", "the Rat", ("s", "t"), TokenizerError,
        "does not know R, which stands in the second prompt",
    ),
    ("the cat", "the rat", ("s", ""), TokenizerError, "the second answer is empty"),
    ("", "", ("s", "t"), TokenizerError, "the first prompt is empty"),
    ("a" * (MOST + 1), "b" * (MOST + 1), ("s", "t"), ShapeError, f"at most {MOST}"),
])  # fmt: skip
def test_prompts_that_cannot_be_compared(
    clean: str, corrupted: str, answers: tuple[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        prompts_of(LETTERS, clean, corrupted, answers)


def test_of_an_answer_the_first_token_is_taken() -> None:
    prompts = prompts_of(LETTERS, "the cat", "the rat", ("sat", "ran"))
    assert prompts.answers == (LETTERS.encode("s")[0], LETTERS.encode("r")[0])
    assert prompts.changed == (4,)


class Words:
    """A tokenizer of whole words with the blank before them, as byte-level BPE makes them."""

    words = ("the", " cat", " is", " red", " in", "red", "is", "ness", " the")
    vocab_size = len(words)

    def encode(self, text: str) -> list[int]:
        return [self.words.index(word) for word in re.findall(r" ?\w+", text)]

    def decode(self, ids: list[int]) -> str:
        return "".join(self.words[i] for i in ids)

    def unknown(self, text: str) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        return {}


def test_an_answer_without_a_blank_goes_on_inside_a_word() -> None:
    assert inside_a_word(Words(), "the cat", "is") and not inside_a_word(Words(), "the cat", " is")
    assert not inside_a_word(Words(), "the ", "is"), "the blank stands in the prompt"
    assert not inside_a_word(LETTERS, "the cat", "s"), "a letter follows a letter"
    assert fits(Words(), "the cat", "the red", (" is", " in"))
    assert not fits(Words(), "the cat", "the red is", (" is", " in")), "lengths differ"
    assert not fits(Words(), "the cat", "the red", (" is red", " in")), "two tokens"
    assert not fits(LETTERS, "the cat", "the Rat", ("s", "t")), "R is not known"


def test_models_that_cannot_be_patched() -> None:
    with pytest.raises(ConfigError, match="fills gaps"):
        both_runs(loud(tiny(causal=False)), PROMPTS, "resid_pre")
    with pytest.raises(ShapeError, match="reads 8"):
        long = Prompts(tuple(range(9)), (10, *range(1, 9)), (7, 8))
        both_runs(loud(tiny(position="rope")), long, "resid_pre")
    without = loud(tiny(mixer="none"))
    assert sites(without.config, without.parts) == ("resid_pre", "ffn_out")
    with pytest.raises(ConfigError, match="no such activation"):
        finish(patch(without, PROMPTS, "attn_out"))
    with pytest.raises(ShapeError, match="nothing is to be restored"):
        # the last token alone decides, and it is the same
        finish(patch(without, Prompts((1, 2), (3, 2), (7, 8)), "resid_pre"))


def mapped(restored: list[list[float]], site: Any = "resid_pre") -> Patching:
    return Patching(site, np.array(restored, np.float32), Contrast(7.0, -6.0, (0, 1)))


def test_what_is_read_off_a_map() -> None:
    found = mapped(
        [[1, 0, 0], [0.75, 0.25, 0], [0.25, 0.5, 0], [0.25, 0.375, 0.375], [0, 0, 0.875], [0, 0, 1]]
    )
    assert stations(found) == (
        Station(0, 0, 1, 0.75, 1.0),
        Station(1, 2, 2, 0.5, 0.5),
        Station(None, 3, 3, 0.375, 0.375),
        Station(2, 4, 5, 0.875, 1.0),
    )
    told = {
        (7.0, -6.0): "tells", (0.5, 0.0): "hardly", (-6.0, 7.0): "swapped", (0.0, 0.5): "hardly",
        (7.0, 2.0): "always first", (-2.0, -7.0): "always second",
    }  # fmt: skip
    assert {pair: verdict(Contrast(*pair, (0, 1))) for pair in told} == told
    found = mapped([[0.5, -2.0], [0.75, 0.5]], "z")
    assert strongest(found) == (Cell(1, 0, 0.75), Cell(0, 0, 0.5), Cell(1, 1, 0.5))
    assert strongest(found, 9)[-1] == Cell(0, 1, -2.0)
    assert Contrast(7.0, -6.0, (0, 1)).span == 13.0
