"""Patching, held against the plain way: the whole model again for every patch, by `engine.probe.Patcher`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig, SampleConfig
from engine.data.progress import Progress, finish
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError, ShapeError, TokenizerError
from engine.model import Transformer
from engine.parts.registry import HEALTHY, swapped
from engine.probe import Patcher, Recorder
from engine.recording import record
from engine.sample.generate import generate
from studies.attention.heads import HeadValue
from studies.circuits import patching, steering
from studies.circuits.fact_recall import Answer, AnswerAttribution, Fact, answer_of, trace
from studies.circuits.patching import (
    PatchEffect,
    Patching,
    Station,
    causal_cone,
    most_copies,
    patch,
    sites,
    stations,
    strongest_patches,
    verdict,
)
from studies.circuits.prompt_pairs import MOST, Contrast, Prompts, both_runs, fits, inside_a_word, prompts_of
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, stepped, tiny

PROMPTS = Prompts((1, 2, 3, 4, 5, 6), (1, 2, 9, 4, 5, 10), (7, 8))


def patched_plainly(model: Transformer, prompts: Prompts, site: str) -> np.ndarray:
    """The whole corrupted prompt through the whole model, once for each patch."""
    a, b = prompts.answers
    seen = Recorder()
    clean = model(torch.tensor([prompts.clean]), seen)[0, -1]
    tokens = torch.tensor([prompts.corrupted])
    base = model(tokens)[0, -1]
    low, high = base[a] - base[b], clean[a] - clean[b]
    places = model.config.n_heads if site == "z" else len(prompts.clean)
    found = np.zeros((model.config.n_layers, places), np.float32)
    for layer, place in np.ndindex(found.shape):
        name = f"blocks.{layer}.{site}"

        def put(x: torch.Tensor, name: str = name, place: int = place) -> torch.Tensor:
            x = x.clone()
            x[:, place] = seen[name][:, place]  # a position of a stream, or a head with all its positions
            return x

        out = model(tokens, Patcher({name: put}))[0, -1]
        found[layer, place] = (out[a] - out[b] - low) / (high - low)
    return found


@for_each("variant", ARCHITECTURES)
@torch.inference_mode()
def test_it_is_the_whole_pass_for_every_patch(variant: str) -> None:
    model = loud(tiny(**ARCHITECTURES[variant]), factor=6.0)
    for site in sites(model.config, model.parts):
        expected = patched_plainly(model, PROMPTS, site)
        found = finish(patch(model, PROMPTS, site))
        span = found.contrast.span  # in nats: a share of a small span is a large number
        assert found.restored * span == pytest.approx(expected * span, abs=1e-4), site
        assert np.abs(expected).max() > 0.01, "a map of nothing holds nothing"


@torch.inference_mode()
def test_without_the_mask_every_patch_reaches_back() -> None:
    """What comes later changes what came before, so nothing may be kept."""
    model = loud(tiny(position="rope"), factor=6.0)
    model.parts = swapped(HEALTHY, "open", mask=lambda length, like, start=0: None)
    expected = patched_plainly(model, PROMPTS, "resid_pre")
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
    c = ModelConfig(d_model=576, n_heads=9, n_kv_heads=3, d_ff=1536, n_layers=30).resolved()
    query = 6 * 576 + 4 * 1536 + 4 * (9 + 2 * 3) * 64 + 4 * 9 * 48
    copy = 4 * (query * 48 + 2 * 3 * 64 * 48)
    assert most_copies(c, 48, 48) == (256 << 20) // copy == 89
    huge = ModelConfig(d_model=16_384, n_heads=128, d_ff=65_536, n_layers=126).resolved()
    assert most_copies(huge, 48, 48) >= 1
    done = [step.done for step in patch(loud(tiny()), PROMPTS, "resid_pre")]
    assert done == sorted(done) and done[-1] == 3 * (4 + 3 + 2 + 1)


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


def changed(model: Transformer, site: str, cell: tuple[int, int]) -> np.ndarray:
    """Which cells differ once one is really edited, by three different edits: (layer, query), of z (layer, head)."""
    tokens, (layer, place) = torch.tensor([PROMPTS.clean]), cell
    differs = []
    for seed in range(3):
        noise = torch.randn(model.config.d_model, generator=torch.Generator().manual_seed(seed))

        def put(x: torch.Tensor, noise: torch.Tensor = noise) -> torch.Tensor:
            x = x.clone()
            x[:, place] += 3 * noise[: x.shape[-1]]
            return x

        before, after = Recorder(), Recorder()
        model(tokens, before)
        model(tokens, Patcher({f"blocks.{layer}.{site}": put}, after))
        grids = [
            torch.stack([seen[f"blocks.{i}.{site}"][0] for i in range(model.config.n_layers)])
            for seen in (before, after)
        ]
        far = (grids[0] - grids[1]).abs().flatten(2).amax(2)
        differs.append((far / grids[0].abs().flatten(2).amax(2)).numpy())
    return np.max(differs, 0)


OPEN = swapped(HEALTHY, "open", mask=lambda length, like, start=0: None)
CONES = {name: (fields, HEALTHY) for name, fields in ARCHITECTURES.items()} | {
    "no mask": ({"position": "rope"}, OPEN),
    "both ways": ({"position": "rope", "causal": False}, HEALTHY),
    "windows by layer": ({"position": "rope", "window": 2, "global_every": 3, "n_layers": 4}, HEALTHY),
    "latent": ({"position": "rope", "mixer": "mla"}, HEALTHY),
    "narrow window": ({"position": "none", "window": 2, "n_layers": 4}, HEALTHY),
    "no residual, no ffn": ({"wiring": "none", "ffn": "none"}, HEALTHY),
    "parallel, no mixer": ({"wiring": "parallel", "mixer": "none"}, HEALTHY),
}


@for_each("variant", CONES)
@torch.inference_mode()
def test_the_cone_is_what_a_real_edit_changes(variant: str) -> None:
    """Every cell inside changes, and outside none by a digit."""
    fields, parts = CONES[variant]
    model = loud(tiny(**{"n_layers": 3, **fields}), factor=3.0, parts=parts)
    for site in sites(model.config, model.parts):
        for layer in range(model.config.n_layers):
            for place in (0, 2) if site == "z" else (0, 2, 5):
                cone = causal_cone(model, site, (layer, place), len(PROMPTS.clean)).reached
                moved = changed(model, site, (layer, place))
                assert moved[~cone] == pytest.approx(0, abs=1e-6), (site, layer, place)
                assert (moved[cone] > 1e-6).all(), (site, layer, place)


def test_cones_worked_out_by_hand() -> None:
    def rows(site: Any, cell: tuple[int, int], **fields: Any) -> list[str]:
        model = loud(tiny(**{"n_layers": 3, **fields}))
        return ["".join(".#"[int(x)] for x in row) for row in causal_cone(model, site, cell, 6).reached]

    assert rows("resid_pre", (1, 2)) == ["......", "..#...", "..####"]
    assert rows("resid_pre", (0, 1), window=2) == [".#....", ".##...", ".###.."]
    assert rows("attn_out", (0, 2)) == ["..#...", "..####", "..####"]
    assert rows("ffn_out", (1, 4)) == ["......", "....#.", "....##"]
    assert rows("resid_pre", (0, 4), causal=False) == ["....#.", "######", "######"]
    assert rows("resid_pre", (0, 4), mixer="none") == ["....#."] * 3
    assert rows("z", (1, 2)) == ["....", "..#.", "####"]


@for_each("spread, fields, parts", [
    ("later", {}, HEALTHY),
    ("later", {"window": 6}, HEALTHY),
    ("window", {"window": 5}, HEALTHY),
    ("everywhere", {"causal": False}, HEALTHY),
    ("everywhere", {}, OPEN),
    ("nowhere", {"mixer": "none"}, HEALTHY),
])  # fmt: skip
def test_how_a_change_spreads(spread: str, fields: dict[str, Any], parts: Any) -> None:
    cone = causal_cone(loud(tiny(**fields), parts=parts), "resid_pre", (0, 2), 6)
    assert (cone.spread, cone.cell, cone.others) == (spread, (0, 2), cone.reached.sum() - 1)


LETTERS = CharTokenizer("\n abcdefghijklmnopqrstuvwxyz")


@for_each("clean, corrupted, answers, error, said", [
    ("the cat", "the bird", "st", ShapeError, "7 tokens and the second 8"),
    ("the cat", "the cat", "st", ShapeError, "are the same"),
    ("the cat", "the rat", ("s", "sing"), TokenizerError, "both answers begin with the token “s”"),
    ("the cat", "the Rat", "st", TokenizerError, "does not know R, used in the second prompt"),
    ("the cat", "the rat", ("s", ""), TokenizerError, "the second answer is empty"),
    ("a" * (MOST + 1), "b" * (MOST + 1), "st", ShapeError, f"at most {MOST}"),
])  # fmt: skip
def test_prompts_that_cannot_be_compared(
    clean: str, corrupted: str, answers: Any, error: Any, said: str
) -> None:
    with pytest.raises(error, match=said):
        prompts_of(LETTERS, clean, corrupted, tuple(answers))


def test_of_an_answer_the_first_token_is_taken() -> None:
    prompts, words = prompts_of(LETTERS, "the cat", "the rat", ("sat", "ran")), Words()
    assert LETTERS.decode(list(prompts.answers)) == "sr" and prompts.changed == (4,)
    assert inside_a_word(words, "the cat", "is") and not inside_a_word(words, "the cat", " is")
    assert not inside_a_word(words, "the ", "is"), "the blank stands in the prompt"
    assert not inside_a_word(LETTERS, "the cat", "s"), "a letter follows a letter"
    assert fits(words, "the cat", "the red", (" is", " in"))
    assert not fits(words, "the cat", "the red is", (" is", " in")), "lengths differ"
    assert not fits(words, "the cat", "the red", (" is red", " in")), "two tokens"
    assert not fits(LETTERS, "the cat", "the Rat", ("s", "t")), "R is not known"


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


def test_models_that_cannot_be_patched() -> None:
    with pytest.raises(ConfigError, match="fills in masked tokens"):
        both_runs(loud(tiny(causal=False)), PROMPTS, "resid_pre")
    with pytest.raises(ShapeError, match="context is 8"):
        both_runs(loud(tiny()), Prompts(tuple(range(9)), (10, *range(1, 9)), (7, 8)), "resid_pre")
    without = loud(tiny(mixer="none"))
    assert sites(without.config, without.parts) == ("resid_pre", "ffn_out")
    with pytest.raises(ConfigError, match="no such activation"):
        finish(patch(without, PROMPTS, "attn_out"))
    with pytest.raises(ShapeError, match="nothing is to be restored"):  # the last token alone decides here
        finish(patch(without, Prompts((1, 2), (3, 2), (7, 8)), "resid_pre"))


def test_what_is_read_off_a_map() -> None:
    def mapped(restored: list[list[float]], site: Any) -> Patching:
        return Patching(site, np.array(restored, np.float32), Contrast(7.0, -6.0, (0, 1)))

    rows = [[1, 0, 0], [0.75, 0.25, 0], [0.25, 0.5, 0], [0.25, 0.375, 0.375], [0, 0, 0.875], [0, 0, 1]]
    wanted = [(0, 0, 1, 0.75, 1.0), (1, 2, 2, 0.5, 0.5), (None, 3, 3, 0.375, 0.375), (2, 4, 5, 0.875, 1.0)]
    assert stations(mapped(rows, "resid_pre")) == tuple(Station(*one) for one in wanted)
    told = {
        (7.0, -6.0): "tells", (0.5, 0.0): "hardly", (-6.0, 7.0): "swapped", (0.0, 0.5): "hardly",
        (7.0, 2.0): "always first", (-2.0, -7.0): "always second",
    }  # fmt: skip
    assert {pair: verdict(Contrast(*pair, (0, 1))) for pair in told} == told
    found = mapped([[0.5, -2.0], [0.75, 0.5]], "z")
    assert strongest_patches(found) == (
        PatchEffect(1, 0, 0.75),
        PatchEffect(0, 0, 0.5),
        PatchEffect(1, 1, 0.5),
    )
    assert strongest_patches(found, 9)[-1] == PatchEffect(0, 1, -2.0) and found.contrast.span == 13.0


ALPHABET = CharTokenizer("\n abcdefgh")
BARE = CharTokenizer("abcdefghijk")
GREEDY = SampleConfig(temperature=0.0)
PROMPT = ALPHABET.encode("\nfed")


def model_of(**fields: Any) -> Transformer:
    return loud(tiny(vocab_size=ALPHABET.vocab_size, context=24, **fields))


def resid(model: Transformer, text: str, layer: int) -> torch.Tensor:
    return torch.tensor(record(model, ALPHABET.encode(text))[f"blocks.{layer}.resid_pre"])


@torch.no_grad()
def steered_plainly(model: Transformer, table: torch.Tensor, prompt: list[int], count: int) -> list[int]:
    """The likeliest tokens, with table[:length] (position, d_model) added: no cache, no batch."""
    text = list(prompt)
    edit = {"blocks.1.resid_pre": lambda x: x + table[: x.shape[1]]}
    for _ in range(count):
        text.append(int(model(torch.tensor([text]), Patcher(edit))[0, -1].argmax()))
    return text[len(prompt) :]


@for_each("name", ["learned", "gated, qk-norm", "alibi", "parallel", "post", "sinusoidal"])
@for_each("where", ["front", "every"])
def test_a_continuation_is_that_of_the_plain_way(name: str, where: steering.Where) -> None:
    model = model_of(**ARCHITECTURES[name])
    found = steering.direction(model, ALPHABET, "abc", "hg", 1, where)
    one, other = resid(model, "\nabc", 1)[1:], resid(model, "\nhg ", 1)[1:]  # filled up with a blank
    table = torch.zeros(24, 16)
    if where == "front":
        table[1:4] = 2.5 * (one - other)
    else:
        table[1:] = 2.5 * (one.mean(0) - other[:2].mean(0))
    made = finish(steering.continued(model, found, 2.5, PROMPT, 12, GREEDY))
    assert list(made.steered) == steered_plainly(model, table, PROMPT, 12)
    assert list(made.plain) == list(generate(model, PROMPT, 12, GREEDY)) != list(made.steered)
    assert made.plain[: made.same] == made.steered[: made.same]
    assert made.plain[made.same] != made.steered[made.same]


def test_nothing_added_changes_nothing_and_the_draws_are_those_of_the_seed() -> None:
    model, sampling = model_of(), SampleConfig(temperature=0.9, seed=5, top_p=0.9, repetition_penalty=1.3)
    found = steering.direction(model, ALPHABET, "abc", "hgf", 1, "every")
    made = finish(steering.continued(model, found, 0.0, PROMPT, 15, sampling))
    assert made.plain == made.steered == tuple(generate(model, PROMPT, 15, sampling))
    assert made.same == 15 and not made.lifted


def test_the_mood_is_the_probability_of_the_words_that_are_wanted() -> None:
    """Against whole passes, one for each step: no cache, no batch."""
    model = model_of()
    found = steering.direction(model, ALPHABET, "abc", "hg", 1, "every")
    wanted = steering.mood_words(ALPHABET, "abc", "hg")
    assert ALPHABET.decode(wanted) == "abc"
    assert ALPHABET.decode(steering.mood_words(ALPHABET, "ab a", "b")) == "a", "no blank, no b"
    made = finish(steering.continued(model, found, 2.5, PROMPT, 6, GREEDY, wanted))
    shares = []
    for text, coefficient in ((made.plain, 0.0), (made.steered, 2.5)):
        with torch.no_grad():
            logits = model(torch.tensor([[*PROMPT, *text[:-1]]]), Patcher(found.edits(coefficient)))
        p = logits[0, len(PROMPT) - 1 :].double().softmax(-1)
        shares.append(float(p[:, list(wanted)].sum(-1).mean()))
    assert made.mood == pytest.approx(shares, abs=1e-6)
    assert made.times == pytest.approx(shares[1] / shares[0], rel=1e-4)
    assert made.draws_needed == pytest.approx([1 / share for share in shares], rel=1e-4)
    for mood, came in ((0.02, "came"), (0.005, "went"), (0.019, "stayed"), (0.01, "stayed")):
        assert steering.SteeredContinuation((1,), (1,), (), (0.01, mood)).came == came
    assert steering.SteeredContinuation((1,), (1,), (), (0.0, 0.0)).came == "stayed"


def test_what_is_lifted() -> None:
    model = model_of()
    found = steering.direction(model, ALPHABET, "abc", "hgf", 0, "every")
    made = finish(steering.continued(model, found, 3.0, PROMPT, 1, GREEDY))
    with torch.no_grad():
        before = model(torch.tensor([PROMPT]))[0, -1].softmax(-1)
        after = model(torch.tensor([PROMPT]), Patcher(found.edits(3.0)))[0, -1].softmax(-1)
    gained = (after - before).numpy()
    assert [lift.token for lift in made.lifted] == [i for i in np.argsort(-gained)[:6] if gained[i] > 0]
    first = made.lifted[0]
    shares = float(before[first.token]), float(after[first.token])
    assert (first.before, first.after) == pytest.approx(shares, abs=1e-5)


@for_each("where", ["front", "every"])
def test_the_cost_is_the_loss_of_every_row(where: steering.Where) -> None:
    model = model_of()
    found = steering.direction(model, ALPHABET, "abc", "hgf", 1, where)
    rows = steering.rows_of(ALPHABET.encode("abcdefgh" * 5), steering.beginning(ALPHABET), 12, 3)
    assert rows.shape == (3, 12) and rows[:, 0].eq(ALPHABET.encode("\n")[0]).all()
    coefficients = (-2.0, 0.0, 2.0)
    seen, made = stepped(steering.cost(model, found, coefficients, rows))
    assert seen == [Progress(i, 3) for i in (1, 2, 3)]
    first = 4 if where == "front" else 1
    for c, loss in zip(coefficients, made.loss, strict=True):
        with torch.no_grad():
            logits = [model(row[None], Patcher(found.edits(c)))[0, first:-1] for row in rows]
        own = float(F.cross_entropy(torch.cat(logits), rows[:, first + 1 :].flatten()))
        assert loss == pytest.approx(own, abs=1e-5)
        assert made.at(c) == pytest.approx(np.exp(own), rel=1e-4)
    assert made.tokens == 3 * (11 - first) and made.loss[0] != pytest.approx(made.loss[1], abs=1e-3)


def test_where_and_how_strongly_it_is_added() -> None:
    model = model_of()
    found = steering.direction(model, ALPHABET, "ab", "hg", 1, "front")
    one, other = (resid(model, text, 1)[1:] for text in ("\nab", "\nhg"))
    assert found.length == pytest.approx(float((one - other).norm(dim=1).mean()), rel=1e-5)
    assert found.stream == pytest.approx(float(torch.cat([one, other]).norm(dim=1).mean()), rel=1e-5)
    assert found.strength(-3.0) == pytest.approx(3 * found.length / found.stream)
    vectors = torch.tensor([[1.0], [2.0]])
    front = steering.Direction(0, "front", vectors, 1, 1.0, 1.0)
    every = steering.Direction(0, "every", vectors[:1], 1, 1.0, 1.0)
    for direction, given, rows in (
        (front, (2.0, 0, 5), [0, 2, 4, 0, 0]), (front, (2.0, 2, 4), [4, 0]), (front, (2.0, 3, 4), [0]),
        (every, (-1.0, 0, 3), [0, -1, -1]), (every, (-1.0, 7, 9), [-1, -1]),
    ):  # fmt: skip
        assert direction.added(*given).ravel().tolist() == rows
    filled = steering.aligned(ALPHABET, "abc", "d")
    assert [ALPHABET.decode(list(ids)) for ids in filled] == ["\nabc", "\nd  "]
    assert steering.beginning(BARE) == () and steering.read(BARE, "ab") == tuple(BARE.encode("ab"))


def test_what_cannot_be_steered() -> None:
    model = model_of()
    found = steering.direction(model, ALPHABET, "abc", "hgf", 1, "front")
    encoder, short = model_of(causal=False), torch.zeros(1, 5, dtype=torch.int64)
    for call, error, says in (
        (lambda: steering.aligned(BARE, "abc", "d"), TokenizerError, "blank"),
        (lambda: finish(steering.continued(model, found, 1.0, PROMPT, 21, GREEDY)), ShapeError, "shorten the text"),
        (lambda: finish(steering.continued(encoder, found, 1.0, PROMPT, 2, GREEDY)), ShapeError, "causal"),
        (lambda: steering.direction(model, ALPHABET, "a" * 30, "b", 0, "front"), ShapeError, "shorten"),
        (lambda: steering.direction(model, ALPHABET, "a", "b", 2, "front"), ConfigError, "layer"),
        (lambda: finish(steering.cost(model, found, (0.0,), short)), ShapeError, "too many"),
        (lambda: steering.rows_of([1, 2], [0], 4, 1), ShapeError, "does not fill"),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            call()


IDS = (3, 9, 1, 6, 2)
TRACED = {"learned", "gated, qk-norm", "biases", "parallel", "no mixer", "no ffn"}


@for_each("name", sorted(TRACED | {"post", "no residual"}))
@for_each("answer", [0, 7, None])
def test_rank_and_probability_at_every_depth(name: str, answer: int | None) -> None:
    model = loud(tiny(**ARCHITECTURES[name]))
    recording = record(model, IDS)
    found = trace(model, recording, answer)
    ends = "norm2" if name == "post" else "resid_post"
    streams = [recording["blocks.0.resid_pre"], *(recording[f"blocks.{i}.{ends}"] for i in range(2))]
    for depth, stream in enumerate(streams):
        with torch.no_grad():
            x = model.norm_final(torch.tensor(stream[None, -1:]))[0, 0]
            p = (model.output_matrix @ x).double().softmax(0).numpy()
        assert found.rank[depth] == sorted(p, reverse=True).index(p[found.answer]) + 1
        assert found.probability[depth] == pytest.approx(p[found.answer], rel=1e-4)
        assert found.guess[depth] == p.argmax()
    if answer is None:
        assert found.answer == recording.likeliest(4) and found.rank[-1] == 1


@for_each("name", sorted(TRACED))
def test_who_wrote_it(name: str) -> None:
    """Each sublayer's output, brought through the final norm's own division, by its own arithmetic."""
    model = loud(tiny(**ARCHITECTURES[name]))
    recording = record(model, IDS)
    found = trace(model, recording, 7).written
    assert found is not None
    matrix, gain = (x.detach().double().numpy() for x in (model.output_matrix, model.norm_final.gain))
    rms = model.config.norm == "rmsnorm"

    def centred(name: str) -> np.ndarray:
        w = recording[name][-1].astype(np.float64)
        return w if rms else w - w.mean()

    size = np.sqrt(np.square(centred("blocks.1.resid_post")).mean() + model.config.norm_eps)

    u = (matrix[7] - matrix.mean(0)) * gain / size

    def pushes(write: str) -> float:
        return float(u @ centred(write)) if write in recording else 0.0

    for part, write in ((found.attention, "attn_out"), (found.feedforward, "ffn_out")):
        np.testing.assert_allclose(part, [pushes(f"blocks.{i}.{write}") for i in range(2)], atol=1e-4)
    assert found.before == pytest.approx(pushes("embed") + pushes("pos_embed"), abs=1e-4)
    logits = recording.logits[-1].astype(np.float64)
    assert found.total == pytest.approx(logits[7] - logits.mean(), abs=1e-3)
    parts = found.by_attention + found.by_feedforward + found.before + found.rest
    assert parts == pytest.approx(found.total, abs=1e-6)
    assert (found.head is None) == (name == "no mixer")


def test_where_nothing_is_a_sum_nobody_wrote_it() -> None:
    for name in ("post", "no residual"):
        model = loud(tiny(**ARCHITECTURES[name]))
        assert trace(model, record(model, IDS), 7).written is None
    model = loud(tiny())
    with pytest.raises(ShapeError, match="tokens below 11"):
        trace(model, record(model, IDS), 11)


def test_first_depth_leap_and_largest_part() -> None:
    for rank, first, best, leap in (
        ([9, 1, 2, 1, 1], 3, 1, 1), ([1, 1], 0, 0, None), ([9, 1, 2], None, 1, 1), ([9, 3, 4], None, 1, 1),
        ([5, 4, 1], 2, 2, 2), ([100, 90, 30, 10, 1], 4, 4, 4), ([100, 10, 9, 8], None, 3, 1),
        ([1, 5], None, 0, None), ([8, 4, 2], None, 2, 1),
    ):  # fmt: skip
        fact = Fact(7, np.array(rank), np.zeros(len(rank)), np.zeros(len(rank), int), None)
        assert (fact.first, fact.best, fact.leap) == (first, best, leap), rank
    written = AnswerAttribution(
        np.array([1.0, -3.0]), np.array([0.5, 2.0]), HeadValue(0, 1, 0.7), 0.25, 0.0, 0.75
    )
    assert written.most == ("feedforward", 1, 2.0)
    assert (written.by_attention, written.by_feedforward) == (-2.0, 2.5)
    assert AnswerAttribution(np.array([4.0]), np.array([0.5]), None, 0, 0, 0).most == ("attention", 0, 4.0)


SIGNS = CharTokenizer(" abcdeP")


class Blanks:
    """A vocabulary whose words begin with their blank: of a text the first word, then letters."""

    def encode(self, text: str) -> list[int]:
        if text[:3] == " Pa":
            return [10, *(ord(c) for c in text[3:])]
        return [{"P": 11, " ": 12}.get(c, ord(c)) for c in text]

    def unknown(self, text: str) -> list[str]:
        return []


@for_each("prompt, text, values, answer", [
    ("abc", "Pa", {"P": 2}, Answer(11, 2, False)), ("abc", "Pa", {"P": 2, "word": 3}, Answer(10, 1, True)),
    ("abc", "Paris", {"word": 3}, Answer(10, 4, True)),
    ("abc ", "Pa", {"word": 3}, Answer(11, 2, False)),  # there is a blank already
    ("abc", " Pa", {"P": 9}, Answer(10, 1, False)),  # with its blank, as it was written
    ("abc", "P4", {"blank": 9}, Answer(11, 2, False)),  # not the blank alone
])  # fmt: skip
def test_an_answer_is_read_as_it_was_meant(prompt: str, text: str, values: Any, answer: Answer) -> None:
    words: Any = Blanks()
    logits = np.zeros(128)
    logits[10:13] = [values.get(name, 0) for name in ("word", "P", "blank")]
    assert answer_of(words, prompt, text, logits) == answer
    assert answer_of(SIGNS, "abc", "Pa", np.arange(7)[::-1]) == Answer(SIGNS.encode("P")[0], 2, False)
    assert answer_of(CharTokenizer("abP"), "ab", "P", np.zeros(3)) == Answer(2, 1, False)
    for none, said in (("", "is empty"), ("x!", "lacks x !")):
        with pytest.raises(TokenizerError, match=said):
            answer_of(SIGNS, "abc", none, np.zeros(7))
