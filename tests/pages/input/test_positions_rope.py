"""RoPE, alone and against sinusoidal positions: the model's own vectors, turned as complex numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from engine.measure.recording import record
from engine.measure.rotary import layouts, wrong_layout_loss
from pages.input.positions import rope_arrows
from pages.input.positions.rope_arrows import SHIFTS, parse
from tests.pages.helpers import unescaped
from tests.pages.input.positions import (
    MODERN,
    ids_of,
    plain,
    positions,
    recorded,
    shipped,
)

HEAD = {"rope_layer": "1", "rope_head": "2"}

pytestmark = pytest.mark.usefixtures("manager")


def rope(topic: str, model: str = MODERN, **query: str):
    return positions("RoPE", rope_topic=topic, model=model, **query)


def vectors(layer: int = 1, head: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """q and k of a head of the modern model, as they meet the rotation, by its own recording."""
    config, recording = shipped(MODERN).config, recorded(MODERN)
    group = head // (config.n_heads // config.n_kv_heads)
    q, k = recording[f"blocks.{layer}.q"][head], recording[f"blocks.{layer}.k"][group]
    if config.qk_norm:
        q, k = (x / np.sqrt((x**2).mean(-1, keepdims=True) + config.norm_eps) for x in (q, k))
    return q.astype(np.float64), k.astype(np.float64)


def turned(x: np.ndarray, position: float, base: float) -> np.ndarray:
    """Half-split pairs as complex numbers: (pair,)."""
    half = x.shape[-1] // 2
    return (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * position * base ** (-np.arange(half) / half))


def test_arrows_are_the_model_s_and_a_shift_leaves_the_score(monkeypatch):
    sent = {}
    monkeypatch.setattr(rope_arrows, "mounted", lambda name: lambda **rest: sent.update(rest))
    page = rope("arrows", **HEAD, rope_query="9", rope_key="5")
    assert page.query_params["rope_at"] == "9-5-0" and page.get_by_key("rope_topic").value == "arrows"
    (q, k), base = vectors(), shipped(MODERN).config.rope_theta
    assert sent["data"]["q"] == pytest.approx(q[9], abs=1e-5)
    assert sent["data"]["k"] == pytest.approx(k[5], abs=1e-5)
    theta = base ** (-np.arange(len(q[0]) // 2) * 2 / len(q[0]))
    assert sent["data"]["theta"] == pytest.approx(theta) and sent["data"]["at"] == [9, 5, 0]
    assert sent["data"]["most"] == shipped(MODERN).config.context - 1
    terms = (turned(q[9], 9, base) * turned(k[5], 5, base).conj()).real
    best = int(np.abs(terms).argmax())
    said = unescaped(page)
    found = re.search(
        r"Query at 9, key at 5: .* its scaling is \*\*(\S+)\*\*\. .*Pair (\d+) says most: (\S+); its arrows lie (\w+) than",
        said,
    )
    assert plain(found[1]) == pytest.approx(terms.sum(), abs=1e-3) and int(found[2]) == best
    assert plain(found[3]) == pytest.approx(terms[best], abs=1e-3)
    assert found[4] == ("less" if terms[best] > 0 else "more")
    assert "pair $i$ of q and of k is turned" in said and "random" not in said
    for shift in SHIFTS:
        page.get_by_key("rope_shift").set_value(shift).run()
        assert not page.exception and not page.error
        table = page.table[0].value
        assert [*table.index] == ["bfloat16", "float32", "float64"]
        assert [*table.columns[:2]] == ["q·k at (9, 5)", f"q·k at ({9 + shift:,}, {5 + shift:,})"]
        before, after = ([plain(x) for x in table[column]] for column in table.columns[:2])
        assert before[2] == pytest.approx(terms.sum(), abs=1e-5) == after[2]
        apart = [float(x) for x in table["difference"]]
        assert apart[2] < 1e-9
        assert [abs(a - b) for a, b in zip(before, after, strict=True)] == pytest.approx(
            apart, rel=0.06, abs=2e-6
        )


def test_the_link_says_where_the_arrows_stand():
    page = rope("arrows", rope_query="9", rope_key="5", rope_at="20-3-7")
    assert page.query_params["rope_at"] == "20-3-7" and "q·k at (20, 3)" in page.table[0].value.columns
    page = rope("arrows", rope_query="9", rope_key="5", rope_at="99999-3-700")
    assert page.query_params["rope_at"] == "127-3-15"


def test_the_score_by_distance_is_the_mean_over_all_pairs_of_tokens(drawn):
    page = rope("distance", **HEAD, rope_base="100", rope_reach="256")
    q, k = vectors()
    own, width = shipped(MODERN).config.rope_theta, q.shape[1]
    curves = drawn["rope_curve"].traces
    assert [c["name"] for c in curves] == ["base 100", f"base {own:,.0f} (the model's)"]
    for curve, base in zip(curves, (100.0, own), strict=True):
        score = [
            np.mean((turned(q, d, base)[:, None] * turned(k, 0, base)[None].conj()).real.sum(-1))
            / math.sqrt(width)
            for d in (0, 1, 50, 256)
        ]
        assert [curve["y"][d] for d in (0, 1, 50, 256)] == pytest.approx(score, abs=1e-5)
        assert curve["x"] == list(range(257))
    assert drawn["rope_curve"].layout["shapes"][0]["x0"] == shipped(MODERN).config.context
    y = np.array(curves[0]["y"])
    said = unescaped(page).replace("−", "-")
    assert f"at distance 0 the score is **{y[0]:.3f}**, at 256 **{y[-1]:.3f}**" in said
    assert f"lowest {y.min():.3f} at {y.argmin()}, highest {y.max():.3f} at {y.argmax()}" in said


def test_ones_fall_below_half_and_come_back(drawn):
    page = rope(
        "distance", rope_base="10,000", rope_reach="4,096", rope_vectors="q = k = ones", rope_width="64"
    )
    score = lambda d: 2 * np.cos(d * 10_000.0 ** (-np.arange(32) / 32)).sum() / 8  # noqa: E731
    half = next(d for d in range(4096) if score(d) < 4)
    said = unescaped(page)
    assert "over 32 pairs, divided by √64. At distance 0 it is √64 = 8.000" in said
    assert f"first falls below half at distance **{half:,}**. It does not stay there: cosines swing" in said
    curve = drawn["rope_curve"].traces[0]
    assert curve["y"][30] == pytest.approx(score(30), abs=1e-5) and curve["x"][-1] == 4096
    assert drawn["rope_curve"].traces[1][
        "name"
    ] == f"base {shipped(MODERN).config.rope_theta:,.0f} (the model's)" or (
        shipped(MODERN).config.rope_theta == 10_000
    )
    page.get_by_key("rope_base").set_value(1_000_000)
    page.get_by_key("rope_reach").set_value(64).run()
    stays = "It stays above half" in unescaped(page) or "Up to 64 it stays there" in unescaped(page)
    assert stays and not page.error


@pytest.mark.parametrize(
    ("sizes", "width", "base", "context"),
    [
        ("the model in the bar", 32, None, 128),
        ("Llama 3 8B", 128, 5e5, 8_192),
    ],
)
def test_turns_count_the_pairs_that_never_complete_one(drawn, sizes, width, base, context):
    page = rope("turns", rope_sizes=sizes)
    base = base or shipped(MODERN).config.rope_theta
    count = [context * base ** (-2 * i / width) / (2 * math.pi) for i in range(width // 2)]
    slow, said = sum(c < 1 for c in count), unescaped(page)
    assert f"**{slow} of {width // 2} pairs never complete a turn** within {context:,} positions" in said
    assert (
        f"turns {count[0]:,.1f} times, the slowest {count[-1]:.3g}: it needs {context / count[-1]:,.0f}"
        in said
    )
    assert drawn["rope_turns"].table["positions_per_turn"] == pytest.approx([context / c for c in count])
    bars = {trace["name"]: trace["y"] for trace in drawn["rope_turns"].traces}
    assert bars["complete a turn"] == pytest.approx([c for c in count if c >= 1])
    assert bars["never complete one"] == pytest.approx([c for c in count if c < 1])
    assert ("Published sizes" in said) == (sizes != "the model in the bar")


def test_the_layouts_are_the_same_and_the_mix_up_costs(drawn):
    page = rope("layouts", **HEAD)
    (q, k), model = vectors(), shipped(MODERN).model
    found = layouts(q, k, model.config.rope_theta)
    table = page.table[0].value
    for row, name in zip(table.to_numpy(), ("half", "permuted", "wrong", "crossed"), strict=True):
        largest = np.abs(getattr(found, name) - found.half).max()
        assert float(row[0]) == pytest.approx(largest, abs=6e-3 if largest > 1e-3 else 1e-11)
        assert float(row[1]) == pytest.approx(
            found.moved[name], abs=6e-3 if found.moved[name] > 1e-3 else 1e-10
        )
    changes = [float(x) for x in table["largest change of a score"]]
    assert changes[0] == 0 and changes[1] < 1e-12 and changes[2] > 1 and changes[3] > 1
    own = recorded(MODERN)["blocks.1.pattern"][2]
    assert drawn["rope_pattern_half"].traces[0]["z"] == pytest.approx(own, abs=1e-4)
    wrong = drawn["rope_pattern_wrong"].traces[0]["z"]
    row = np.exp(found.wrong[9, :10])
    assert wrong[9][:10] == pytest.approx(row / row.sum(), abs=1e-5) and max(wrong[9][10:]) == 0
    loss = wrong_layout_loss(model, ids_of(MODERN))
    logits = record(model, ids_of(MODERN)).logits
    targets = torch.tensor(ids_of(MODERN)[1:])
    plain_loss = torch.nn.functional.cross_entropy(torch.from_numpy(logits[:-1].copy()), targets)
    assert loss.right == pytest.approx(float(plain_loss), abs=1e-4)
    assert f"loss on this text goes from **{plain_loss:.3f}** to **{loss.wrong:.3f}** nats" in unescaped(page)
    assert f"scores change by up to **{changes[2]:.2f}**" in unescaped(page)


def test_only_three_whole_numbers_are_a_place():
    assert parse("0-0-0", 127, 16) == (0, 0, 0) and parse("500-1-99", 127, 16) == (127, 1, 15)
    for wrong in ("", "1-2", "1-2-3-4", "-1-2-3", "a-b-c", "1.5-2-3", "٣-1-1", "9" * 13 + "-1-1"):
        assert parse(wrong, 127, 16) is None


PLACES = 64


def scores_of_a_text(name: str, distance: int, head: int) -> np.ndarray:
    """The model's own recorded scores of "e" with an "h" that many places before, the query at each place.

    In the first block only the two tokens and their places count, so each place is read in a text of its own:
    all "e", with an "h" where the key is.
    """
    found = shipped(f"positions/{name}")
    e, h = (found.tokenizer.encode(letter)[0] for letter in "eh")
    values = []
    for query in range(distance, PLACES):
        text = [e] * PLACES
        text[query - distance] = h
        values.append(record(found.model, text)["blocks.0.scores"][head, query, query - distance])
    return np.array(values)


def test_the_added_score_wanders_and_the_turned_one_stays(drawn):
    page = positions("rope-sinusoidal", against_head="1", against_distance="2")
    for name in ("sinusoidal", "rope"):
        line = drawn[f"against_{name}"].traces[0]
        assert line["x"] == list(range(2, 64))
        assert line["y"] == pytest.approx(scores_of_a_text(name, 2, 1), abs=1e-4)
    added, turned = (np.array(drawn[f"against_{name}"].traces[0]["y"]) for name in ("sinusoidal", "rope"))
    said = re.search(
        r"“e” looks at “h” 2 places back .* from \*\*(\S+)\*\* to \*\*(\S+)\*\*\..*: \*\*(\S+)\*\* everywhere",
        unescaped(page),
    )
    low, high, still = map(plain, said.groups())
    assert (low, high) == (pytest.approx(added.min(), abs=6e-3), pytest.approx(added.max(), abs=6e-3))
    assert still == pytest.approx(turned.mean(), abs=6e-3) and np.ptp(turned) < 1e-5
    assert high - low > 1
    ranges = {tuple(drawn[f"against_{name}"].layout["yaxis"]["range"]) for name in ("sinusoidal", "rope")}
    assert len(ranges) == 1
