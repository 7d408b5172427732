"""Every number in the answers about circuits, worked out here from whole passes of the model and plain arithmetic:
none of what measures it for the page is asked.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import SampleConfig
from engine.measure import steering
from engine.progress import finish
from pages.inside.circuits.words_behaviour import SINKS_TEXT
from tests.pages.inside.test_circuits_behaviour import CITIZEN, opened, said
from ui import slow
from ui.site import ROOT

SMALL, MODERN = "shakespeare-classic", "shakespeare-modern"
Edit = Callable[[str, Tensor], Tensor]

pytestmark = pytest.mark.usefixtures("manager", "patient")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "GLANCE", 240.0)
    slow._server = slow.Jobs()


@cache
def shipped(name: str) -> Checkpoint:
    return checkpoints.load(ROOT / "checkpoints" / name)


def passed(
    ids: list[int], edit: Edit | None = None, name: str = SMALL
) -> tuple[np.ndarray, dict[str, Tensor]]:
    """(logits (query, vocab), every activation) of one whole pass; `edit` puts others in their place."""
    seen: dict[str, Tensor] = {}

    def probe(what: str, x: Tensor) -> Tensor:
        seen[what] = x if edit is None else edit(what, x)
        return seen[what]

    with torch.no_grad():
        logits = shipped(name).model(torch.tensor([ids]), probe)[0]
    return logits.double().numpy(), seen


def log_softmax(x: np.ndarray) -> np.ndarray:
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


def losses(logits: np.ndarray, ids: list[int]) -> np.ndarray:
    """(query - 1,): of each token from the second on."""
    return np.array([-row[after] for row, after in zip(log_softmax(logits), ids[1:], strict=False)])


def encoded(text: str, name: str = SMALL) -> list[int]:
    return shipped(name).tokenizer.encode(text)


# Patching --------------------------------------------------------------------------------------------


def restored(site: str, name: str = SMALL) -> np.ndarray:
    """(block, place): from a whole pass for each."""
    clean, other = encoded("thou ha"), encoded("they ha")
    a, b = encoded("s")[0], encoded("v")[0]

    def lead(logits: np.ndarray) -> float:
        return float(logits[-1, a] - logits[-1, b])

    first, theirs = passed(clean, None, name)
    second, _ = passed(other, None, name)
    found = np.zeros((4, 4 if site == "z" else 7))
    for layer, place in np.ndindex(*found.shape):

        def edit(what: str, x: Tensor, layer: int = layer, place: int = place) -> Tensor:
            if what != f"blocks.{layer}.{site}":
                return x
            x = x.clone()
            x[:, place] = theirs[what][
                :, place
            ]  # a token of (batch, query, ...), a head of (batch, head, ...)
            return x

        found[layer, place] = (lead(passed(other, edit, name)[0]) - lead(second)) / (
            lead(first) - lead(second)
        )
    return found


def test_patching_the_stream_says_who_carries_it() -> None:
    shares = restored(
        "resid_pre", MODERN
    )  # of what is read by block 0, 1, ...: after the embedding, block 0, ...
    best, most = shares.argmax(1), shares.max(1)
    assert best.tolist() == [3, 3, 3, 6] and (most >= 0.5).tolist() == [True, True, False, True]
    words = said(opened("patching", MODERN, patching_pair="hast"))
    told = "What the answer hangs on is carried by **u / y** until **after block 0** (at least"
    assert (
        f"{told} {most[:2].min():.2f} of it), with gaps" in words
        or f"{told} {most[:2].min():.2f} of it), and" in words
    )
    assert f"by **a** from **after block 2** on (at least {most[3]:.2f} of it)." in words


@pytest.mark.parametrize("site", ["attn_out", "ffn_out", "z"])
def test_patching_a_part_says_which_one_brings_most_back(site: str) -> None:
    shares = restored(site)
    layer, place = np.unravel_index(shares.argmax(), shares.shape)
    words = said(opened("patching", patching_pair="hast", patching_site=site))
    labels = ["t", "h", "o / e", "u / y", "␣", "h", "a"]
    name = f"head {layer}.{place}" if site == "z" else f"block {layer} at {labels[place]}"
    assert f"**{name}** brings back **{shares.max():.2f}** of the answer." in words


# Induction -------------------------------------------------------------------------------------------


def test_induction_says_what_both_readings_cost(drawn: dict[str, Any]) -> None:
    page = opened("induction", induction_count="16", induction_seed="3")
    once = encoded("".join(drawn["induction_readings"].table["token"]))
    logits, seen = passed([*once, *once])
    cost = losses(logits, [*once, *once])
    first, second = cost[:15].mean(), cost[16:].mean()  # the second reading's first token is nobody's to know
    patterns = np.stack([seen[f"blocks.{i}.pattern"][0].double().numpy() for i in range(4)])
    after = np.array([patterns[:, :, 16 + i, i + 1] for i in range(16)]).mean(0)
    best = np.unravel_index(after.argmax(), after.shape)
    words = said(page)
    assert f"Random tokens cost {first:.1f} nats each at the first reading" in words
    assert f"blind guessing costs {math.log(65):.1f}:" in words and first > math.log(65)
    assert f"and **{second:.1f}** at the second" in words
    strong = int((after >= 0.4).sum())
    if strong:
        assert f"**head {best[0]}.{best[1]}** ({after.max():.0%} of its weight)" in words
    else:
        assert f"same token is {after.max():.0%} ({best[0]}.{best[1]})" in words


# Sinks -----------------------------------------------------------------------------------------------


def hidden(key: int, start: int) -> Edit:
    """A key that no query from `start` on sees."""

    def edit(what: str, x: Tensor) -> Tensor:
        if not what.endswith("masked_scores"):
            return x
        x = x.clone()
        x[:, :, start:, key] = -math.inf
        return x

    return edit


def test_sinks_say_how_much_rests_there_and_what_it_costs_to_lose_it() -> None:
    ids = encoded(CITIZEN)
    n, half = len(ids), len(ids) // 2
    logits, seen = passed(ids)
    weight = np.stack([seen[f"blocks.{i}.pattern"][0, :, 1:, 0].double().numpy() for i in range(4)])
    even = np.mean([1 / (i + 1) for i in range(1, n)])
    kept = losses(logits, ids)[half:].mean()
    forgotten_logits, later = passed(ids, hidden(0, half))
    forgotten = losses(forgotten_logits, ids)[half:].mean()
    control = losses(passed(ids, hidden(half // 2, half))[0], ids)[half:].mean()
    never = losses(passed(ids[1:])[0], ids[1:])[half - 1 :].mean()
    front = encoded("\n") + ids
    in_front, with_front = passed(front)

    words = said(opened("sinks", text=CITIZEN))
    most = weight.mean(-1)
    best = np.unravel_index(most.argmax(), most.shape)
    assert f"**{weight.mean():.1%}** of all weight lies on the first token, “F”" in words
    assert f"spread evenly it would be {even:.1%}. The most that a head gives it is {most.max():.0%}" in words
    assert f"({best[0]}.{best[1]}): this model makes no sink" in words
    assert (
        f"the rest of the text costs **{forgotten:.2f}** nats a token instead of {kept:.2f} ({never:.2f} where"
        in words
    )
    words = said(opened("sinks", text=CITIZEN, sinks_opening="other"))
    weight_in_front = np.mean([with_front[f"blocks.{i}.pattern"][0, :, 1:, 0].mean() for i in range(4)])
    assert (
        f"begins with “⏎”, and **{weight_in_front:.0%}** of all weight lies on that ({weight.mean():.0%}"
        in words
    )
    costs = losses(in_front, front)[half + 1 :].mean()
    assert f"The second half costs {costs:.2f} nats a token instead of {kept:.2f}." in words
    words = said(opened("sinks", text=CITIZEN, sinks_opening="dropped"))
    assert f"The second half costs {never:.2f} nats a token instead of {kept:.2f}." in words
    words = said(opened("sinks", text=CITIZEN, sinks_opening="forgotten"))
    second = np.mean([later[f"blocks.{i}.pattern"][0, :, half:, 1].mean() for i in range(4)])
    evenly = np.mean([1 / i for i in range(half, n)])
    assert f"is now the first, “i”, gets **{second:.0%}** (evenly: {evenly:.0%})" in words
    assert (
        f"the second half costs {forgotten:.2f} nats a token instead of {kept:.2f}. A text that never had"
        in words
    )
    assert f"it costs {never:.2f}." in words
    words = said(opened("sinks", text=CITIZEN, sinks_opening="control"))
    told = f"the second half costs {control:.2f} nats a token instead of {kept:.2f}. Without the first one it was"
    assert (
        f"(position {half // 2}), a token of the first half like any other: {told} **{forgotten:.2f}**."
        in words
    )
    assert len(encoded(SINKS_TEXT)) > n  # the text of the bar was read, not ours


# A fact ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [SMALL, MODERN])
def test_a_fact_says_where_it_comes_up_and_who_wrote_it(name: str) -> None:
    model = shipped(name).model
    ids, answer = encoded("thou ar", name), encoded("t", name)[0]
    logits, seen = passed(ids, name=name)
    streams = [seen["blocks.0.resid_pre"], *(seen[f"blocks.{i}.resid_post"] for i in range(4))]
    with torch.no_grad():
        last = torch.stack([x[0, -1] for x in streams])
        rows = (model.norm_final(last[None])[0] @ model.output_matrix.T).double().numpy()  # (depth, vocab)
    p = np.exp(log_softmax(rows))
    np.testing.assert_allclose(p[-1], np.exp(log_softmax(logits[-1])), atol=1e-5)
    rank = 1 + (p > p[:, [answer]]).sum(1)
    first = next(d for d in range(5) if (rank[d:] == 1).all())
    words = said(opened("fact", name, fact_question="art"))
    since = {
        0: "is the likeliest token from the embedding on;",
        4: "is the likeliest token only after **block 3**, the last;",
    }.get(first, f"after **block {first - 1}**")
    assert "After “thou ar”: “t” " in words and since in words
    assert f"in the end with a probability of **{p[-1, answer]:.2f}**." in words
    climbs = rank[:-1] / rank[1:]
    leap = 1 + int(climbs.argmax())
    assert f"It climbs most in block {leap - 1}: from number {rank[leap - 1]:,} to {rank[leap]:,}." in words

    # what each part wrote: the logit less the mean of all is linear in it, with the norm's divisor as it was
    x = last[-1].double()
    writes = {
        (part, i): seen[f"blocks.{i}.{what}"][0, -1].double()
        for i in range(4)
        for part, what in (("attention", "attn_out"), ("feed-forward network", "ffn_out"))
    }
    gain = getattr(model.norm_final, "gain", None)
    centred = "layer" in model.config.norm
    u = model.output_matrix.double()
    d = u[answer] - u.mean(0)
    d = d if gain is None else d * gain.double()
    d = d - d.mean() if centred else d
    y = x - x.mean() if centred else x
    scale = float((y.square().mean() + model.config.norm_eps).sqrt())
    pushes = {which: float(write @ d) / scale for which, write in writes.items()}
    part, block = max(pushes, key=lambda which: pushes[which])
    told = f"written by the {part} of block {block} (**{pushes[part, block]:+.1f}** nats)"
    assert f"Most of it was {told}." in words


# Steering --------------------------------------------------------------------------------------------


def test_steering_says_how_probable_the_moods_words_became() -> None:
    found = shipped(SMALL)
    plus, less, start = "THE KING", "the king", "What is it?"
    prompt, layer, by = encoded(f"\n{start}"), 1, 1.0  # a line break begins every text, and gets nothing
    page = opened(
        "steering",
        steering_preset="own",
        steering_plus=plus,
        steering_minus=less,
        steering_text=start,
        steering_layer_own=str(layer),
        steering_seed="5",
        steering_coefficient_own_every="+1",
    )
    reads = f"blocks.{layer}.resid_pre"
    means = [passed(encoded(f"\n{text}"))[1][reads][0, 1:].mean(0) for text in (plus, less)]
    more = by * (means[0] - means[1])

    def edit(what: str, x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], x[:, 1:] + more], 1) if what == reads else x

    made = finish(
        steering.continued(
            found.model,
            steering.direction(found.model, found.tokenizer, plus, less, layer, "every"),
            by,
            prompt,
            100,
            SampleConfig(temperature=0.8, top_p=0.9, seed=5),
        )
    )
    wanted = sorted(set(encoded(plus)) - set(encoded(less)) - {encoded(" ")[0]})
    means_of = []
    for ids, change in ((made.plain, None), (made.steered, edit)):
        p = np.exp(log_softmax(passed([*prompt, *ids], change)[0]))
        means_of.append(p[len(prompt) - 1 : -1][:, wanted].sum(1).mean())
    words = said(page)
    times = means_of[1] / means_of[0]
    assert f"**{times:.2g} times** as probable at each step" in words
    assert f"({means_of[1]:.1%} instead of {means_of[0]:.1%})" in words
    same = next(i for i, (a, b) in enumerate(zip(made.plain, made.steered, strict=True)) if a != b)
    assert same == 1 and "the text is another after one token." in words


# Few bits --------------------------------------------------------------------------------------------


def rounded(matrix: Tensor, bits: int, whole: bool) -> Tensor:
    """The nearest of the levels k * d, |k| <= 2^(bits - 1) - 1, with d in 16 bits for 32 weights or for all."""
    x = matrix.double().numpy()
    blocks = x.reshape(1, -1) if whole else x.reshape(-1, 32)
    most, top = np.abs(blocks).max(1, keepdims=True), 2 ** (bits - 1) - 1
    q = np.sign(blocks) * np.floor(np.abs(blocks) * top / most + 0.5)  # a half goes away from zero
    d = (most / top).astype(np.float32).astype(np.float16).astype(np.float64)
    return torch.tensor((q * d).reshape(x.shape), dtype=matrix.dtype)


@pytest.mark.parametrize("whole", [False, True])
def test_few_bits_say_how_few_are_enough(whole: bool) -> None:
    text = "Now is the winter of our discontent"
    name, ids = "blocks.0.ffn.w_in.weight", encoded(text)
    full = losses(passed(ids)[0], ids).mean()
    lost, after = {}, {}
    for bits in (8, 4, 3, 2):
        model = copy.deepcopy(shipped(SMALL).model)
        matrix = dict(model.named_parameters())[name]
        levels = rounded(matrix.detach(), bits, whole)
        lost[bits] = float((levels - matrix).double().norm() / matrix.double().norm())
        with torch.no_grad():
            matrix.copy_(levels)
            after[bits] = losses(model(torch.tensor([ids]))[0].double().numpy(), ids).mean()
    enough = 32
    for bits in (8, 4, 3, 2):
        if after[bits] > 1.01 * full:
            break
        enough = bits
    words = said(opened("quantisation", text=text, bits="3", bits_share="0" if whole else "32"))
    assert f"In 3 bits the matrix is off by **{lost[3]:.1%}** of its size." in words
    goes = re.search(r"the loss on the text goes from ([\d.]+) to \*\*([\d.]+)\*\* nats\.", words)
    assert goes and goes[1] == f"{full:.3f}" and float(goes[2]) == pytest.approx(after[3], abs=1.1e-3)
    assert min(abs(after[3] - after[bits]) for bits in (8, 4, 2)) > 2e-3  # of no other number of bits
    assert f"**{enough} bits** " in words
    words = said(opened("quantisation", text=text, bits="32", bits_share="0" if whole else "32"))
    assert f"Its loss on the text is **{full:.3f}** nats." in words and f"**{enough} bits** " in words
