"""What the residual stream's page shows, held against arithmetic done here on the same model's recording."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.measure.highway import Plan, averaged, measure
from engine.measure.recording import record
from engine.tokenizers.char import CharTokenizer
from pages.inside.residual import wirings as highway
from tests.engine.helpers import loud, tiny
from tests.pages.helpers import opened, said
from tests.pages.inside.models import ALPHABET, of_letters, only_this
from tests.pages.stage import StageManager
from ui import state
from ui.site import ROOT

PAGE = "inside/residual"
MODEL = loud(tiny(n_layers=3, attention_bias=True, norm_bias=True), factor=3.0).requires_grad_(False)
TEXT = "abcabdab"
IDS = tuple(CharTokenizer(ALPHABET).encode(TEXT))
RECORDING = record(MODEL, IDS)
FULL_NAMES = {
    "embed": ", the token's own vector,",
    "norm bias": ", the bias of the last norm,",
    **{f"ffn {i}": f", the feed-forward network of block {i}," for i in range(3)},
    **{f"attn {i}": f", the attention of block {i}," for i in range(3)},
    **{f"attn bias {i}": f", the bias of block {i}'s attention," for i in range(3)},
}
NAMES = ["embedding", "after block 0", "after block 1", "after block 2 = output"]


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "residual-numbers")


def residual(view: str, **query: str) -> AppTest:
    return opened(PAGE, residual_view=view, text=TEXT, measure="true", hand="true", **query)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def lens() -> np.ndarray:
    """Probabilities (depth, query, vocab), by LayerNorm and a product written out here."""
    streams = [RECORDING["blocks.0.resid_pre"], *(RECORDING[f"blocks.{i}.resid_post"] for i in range(3))]
    norm = MODEL.norm_final
    found = []
    for x in (s.astype(np.float64) for s in streams):
        centred = x - x.mean(-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + MODEL.config.norm_eps)
        y = normed * norm.gain.double().numpy() + norm.bias.double().numpy()
        found.append(softmax(y @ MODEL.output_matrix.double().numpy().T))
    return np.stack(found)


def norms(name: str) -> np.ndarray:
    return np.linalg.norm(RECORDING[name].astype(np.float64), axis=-1)


def test_the_lens_and_its_cell(drawn):
    p = lens()
    guess = p.argmax(-1)
    depth, at = 1, 3
    page = residual("lens", residual_cell=f"{depth}-{at}")
    heat, line = drawn["residual_lens"].traces
    np.testing.assert_allclose(heat["z"], p.max(-1), atol=1e-5)
    settled = [min(d for d in range(4) if (guess[d:, i] == guess[-1, i]).all()) for i in range(8)]
    np.testing.assert_allclose(line["y"], np.repeat(settled, 2) - 0.5)
    kl = (p[-1] * np.log(p[-1] / p)).sum(-1)

    last = int(guess[-1, at])
    rows = [np.argsort(-p[d, at], kind="stable")[:4] for d in range(4)]
    for rank, bar in enumerate(drawn["residual_climb"].traces):
        np.testing.assert_allclose(bar["x"], [p[d, at, rows[d][rank]] for d in range(4)], atol=1e-5)
        wins = [rows[d][rank] == last for d in range(4)]
        assert [shade == "var(--gf-output)" for shade in bar["marker"]["color"]] == wins
    before = ALPHABET[guess[settled[at] - 1, at]]
    since = NAMES[settled[at]].removesuffix(" = output")
    stopped = f"Stopped {NAMES[settled[at] - 1]}" if settled[at] > 1 else "From the embedding alone"
    told = (
        f"After “{TEXT[: at + 1]}” the model's guess is “{ALPHABET[last]}” only **{since}**, and it ends with"
        f" probability **{p[-1, at, last]:.2f}**. {stopped}, it would have said “{before}”, and given"
        f" “{ALPHABET[last]}” {p[settled[at] - 1, at, last]:.2f}."
    )
    assert settled[at] > 0 and told in said(page)
    assert drawn["residual_climb"].layout["yaxis"]["ticktext"][:2] == [f"embedding of “{TEXT[at]}”", NAMES[1]]

    bars, marks = drawn["residual_top"].traces
    order = np.argsort(-p[depth, at], kind="stable")[:10]
    assert (bars["name"], marks["name"]) == ("here", "at the output")
    np.testing.assert_allclose(bars["x"], p[depth, at, order], atol=1e-5)
    np.testing.assert_allclose(marks["x"], p[-1, at, order], atol=1e-5)
    table = drawn["residual_top"].table
    np.testing.assert_allclose(table["here"], p[depth, at, order], atol=1e-5)
    np.testing.assert_allclose(table["at_the_output"], p[-1, at, order], atol=1e-5)
    words = said(page)
    stated = re.search(
        r"would guess “(.)” with probability ([\d.]+); this is \*\*([\d.]+) nats\*\* from its final"
        r" distribution. The final guess, “(.)”, is on top from \*\*(.+?)\*\* on\. In the text “(.)” follows",
        words,
    )
    assert stated is not None
    assert stated[1] == ALPHABET[guess[depth, at]] and stated[4] == ALPHABET[guess[-1, at]]
    assert float(stated[2]) == pytest.approx(p[depth, at].max(), abs=6e-4)
    assert float(stated[3]) == pytest.approx(kl[depth, at], abs=6e-4)
    assert stated[5] == NAMES[settled[at]] and stated[6] == TEXT[at + 1]

    by = [sum(s <= d for s in settled) for d in range(4)]
    half = next(d for d in range(4) if by[d] >= len(TEXT) / 2)
    assert f"**Half of the tokens are settled by {NAMES[half]}** ({by[half]} of 8)" in words
    told = ", ".join(f"{NAMES[d]}: {settled.count(d)}" for d in range(4) if d in settled)
    assert f"top guess stays: {told}. At the embedding the guesses are {kl[0].mean():.2f} nats" in words
    means = kl.mean(-1)
    drop = 1 + int(np.argmax(means[:-1] - means[1:]))
    assert f"is {NAMES[drop]}'s: mean KL {means[drop - 1]:.2f} → {means[drop]:.2f} nats" in words

    page.get_by_key("residual_shade").set_value("KL to the output").run()
    assert not page.exception
    heat = drawn["residual_lens"].traces[0]
    np.testing.assert_allclose(heat["z"], kl, atol=1e-3)
    assert heat["zmax"] == pytest.approx(kl[1:].max(), abs=1e-3)
    assert ("The scale ends" in said(page)) == (kl[0].max() > kl[1:].max())
    page.button(key="residual_arrow_upward").click().run()
    assert page.query_params["residual_cell"] in ("2-3", ["2-3"])


def test_who_pushed_is_each_writers_product_with_the_direction(drawn):
    at, target = 4, "d"
    page = residual("push", residual_position=str(at), residual_target=target)
    row = ALPHABET.index(target)
    total, logit, difference = (m.value for m in page.metric)
    assert float(logit) == pytest.approx(float(RECORDING.logits[at, row]), abs=1e-4)
    assert float(total) == pytest.approx(float(logit), abs=1e-3)
    assert page.metric[1].label == "Logit of “d”" and abs(float(difference)) < 1e-3
    x = RECORDING["blocks.2.resid_post"][at].astype(np.float64)
    scale = math.sqrt(((x - x.mean()) ** 2).mean() + MODEL.config.norm_eps)
    u = (MODEL.output_matrix[row] * MODEL.norm_final.gain).double().numpy()
    d = (u - u.mean()) / scale
    w_o = [b.mixer.w_o.weight.double().numpy() for b in MODEL.blocks]
    z = RECORDING.stacked("z").astype(np.float64)
    heads = np.array([[z[i, h, at] @ w_o[i][:, 4 * h : 4 * h + 4].T @ d for h in range(4)] for i in range(3)])
    np.testing.assert_allclose(drawn["residual_heads"].traces[0]["z"], heads, atol=1e-5)
    table = dict(
        zip(
            drawn["residual_parts"].table["writer"],
            drawn["residual_parts"].table["contribution"],
            strict=True,
        )
    )
    expected = {"embed": RECORDING["embed"][at] @ d, "position": RECORDING["pos_embed"][at] @ d}
    expected |= {f"head {i}.{h}": heads[i, h] for i in range(3) for h in range(4)}
    expected |= {f"ffn {i}": RECORDING[f"blocks.{i}.ffn_out"][at] @ d for i in range(3)}
    expected |= {f"attn bias {i}": b.mixer.w_o.bias.double().numpy() @ d for i, b in enumerate(MODEL.blocks)}
    expected["norm bias"] = float(MODEL.output_matrix[row].double() @ MODEL.norm_final.bias.double())
    assert table == pytest.approx(expected, abs=1e-5)
    most, least = (choose(expected, key=lambda k: expected[k]) for choose in (max, min))
    words = said(page)
    signed = {name: f"{value:+.2f}".replace("-", "−") for name, value in expected.items()}
    whole = f"{RECORDING.logits[at, row]:.2f}".replace("-", "−")
    told = f"For “d” after “{TEXT[: at + 1]}”, **{most}**{FULL_NAMES.get(most, '')} pushes hardest: **{signed[most]}**"
    assert f"{told} of a logit of {whole}." in words
    assert f"{least}{FULL_NAMES.get(least, '')} pushes against it most: {signed[least]}." in words
    assert f"frozen at {scale:.3f}" in words

    page.selectbox(key="residual_versus").select("mean of all").run()
    assert float(page.metric[1].value) == pytest.approx(
        float(RECORDING.logits[at, row] - RECORDING.logits[at].mean()), abs=1e-4
    )
    page.selectbox(key="residual_versus").select("c").run()
    assert float(page.metric[1].value) == pytest.approx(
        float(RECORDING.logits[at, row] - RECORDING.logits[at, 2]), abs=1e-4
    )


def test_norms_shares_and_a_sum_worked_out(drawn):
    at = 5
    page = residual("norms", residual_position=str(at))
    states = ["embed", "blocks.0.resid_pre"]
    states += [f"blocks.{i}.{name}" for i in range(3) for name in ("resid_mid", "resid_post")]
    lengths = np.stack([norms(name) for name in states])
    np.testing.assert_allclose(drawn["residual_norms"].traces[0]["z"], lengths, rtol=1e-5)
    *bars_of_writes, mean, one = drawn["residual_line"].traces
    np.testing.assert_allclose(mean["y"], lengths.mean(1), rtol=1e-5)
    np.testing.assert_allclose(one["y"], lengths[:, at], rtol=1e-5)
    writes = ["embed", "pos_embed"] + [f"blocks.{i}.{n}" for i in range(3) for n in ("attn_out", "ffn_out")]
    labels = ["embed", "position", "attn 0", "ffn 0", "attn 1", "ffn 1", "attn 2", "ffn 2"]
    sizes = np.stack([norms(name) for name in writes])

    def bars(key: str) -> tuple[list[str], np.ndarray, np.ndarray]:
        table: Any = drawn[key].table
        diamonds = drawn[key].traces[-1]
        assert diamonds["name"] == "chosen token"
        np.testing.assert_allclose(diamonds["y"], table["chosen_token"], rtol=1e-6)
        return table["write"], np.array(table["mean"]), np.array(table["chosen_token"])

    for key, names, values in (
        ("residual_writes", labels, sizes),
        ("residual_shares", labels, shares(writes)),
        ("residual_cosines", labels[1:], cosines(writes[1:], states[:-1])),
    ):
        found = bars(key)
        assert found[0] == names
        np.testing.assert_allclose(found[1], values.mean(1), rtol=1e-4, atol=1e-6, err_msg=key)
        np.testing.assert_allclose(found[2], values[:, at], rtol=1e-4, atol=1e-6, err_msg=key)

    latex, layernorm, rmsnorm = (one.value for one in page.latex)
    assert "\\mu &= 3, \\quad \\sigma^2 = 3.5" in layernorm and "[-1.07,\\ -0.535,\\ 0,\\ 1.6]" in layernorm
    assert "= 3.536" in rmsnorm and "[0.283,\\ 0.566,\\ 0.849,\\ 1.7]" in rmsnorm  # 3.5355 = sqrt(50 / 4)
    worked = [float(x) for x in re.findall(r"= ([\d.e+-]+)(?:\\\\|\\end)", latex)]
    assert worked == pytest.approx([*lengths[1:, at]], rel=6e-3)
    assert f"\\underbrace{{\\text{{attn}}_{{1}}}}_{{{norms('blocks.1.attn_out')[at]:.3g}}}" in latex
    words = said(page)
    share = shares(writes).mean(1)
    first = sorted(range(8), key=lambda i: -share[i])[:3]
    longest = int(sizes.mean(1).argmax())
    ends = f"from a length of **{lengths[0].mean():.2f}** at the embedding to **{lengths[-1].mean():.2f}** at"
    assert ends in words
    by = f"by **{labels[longest]}**{FULL_NAMES[labels[longest]].removesuffix(',')}."
    assert f"The longest write is **{sizes.mean(1).max():.2f}**, {by}" in words
    below = {
        (x, name): y
        for t in bars_of_writes
        for x, name, y in zip(t["x"], t["customdata"], t["y"], strict=True)
    }
    expected = {(i, labels[i]): float(sizes.mean(1)[i]) for i in range(8)}  # a state a write here
    assert below == pytest.approx(expected, rel=1e-4)
    assert "final stream: " + ", ".join(f"{labels[i]} {share[i]:+.0%}" for i in first) in words
    negative = [labels[i] for i in range(8) if share[i] < 0]
    assert (
        f"Negative on average: {', '.join(negative)}." in words
        if negative
        else "No writer's mean share is negative." in words
    )
    assert "sum to 1 (here 1.000000)" in words


def shares(writes: list[str]) -> np.ndarray:
    final = RECORDING["blocks.2.resid_post"].astype(np.float64)
    return np.stack([(RECORDING[n] * final).sum(-1) / (final * final).sum(-1) for n in writes])


def cosines(writes: list[str], onto: list[str]) -> np.ndarray:
    pairs = [(RECORDING[a].astype(np.float64), RECORDING[b]) for a, b in zip(writes, onto, strict=True)]
    return np.stack(
        [(a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1) for a, b in pairs]
    )


def test_the_highway_opens_on_two_models_that_were_trained(drawn):
    rows = json.loads((ROOT / "checkpoints" / "residuals.json").read_text())["pairs"]
    kept = {(row["depth"], row["norm"]): row for row in rows}
    page = opened(PAGE, residual_view="highway")
    for depth, norm, what in (
        (8, "layernorm", "losses"),
        (8, "none", "gradients"),
        (2, "none", "losses"),
        (8, "layernorm", "alike"),
        (2, "layernorm", "alike"),
        (1, "none", "gradients"),
        (1, "none", "losses"),
    ):
        for key, value in (("depth", depth), ("pair_norm", norm), ("shown", what)):
            page.get_by_key(f"residual_{key}").set_value(value).run()
        assert not page.exception
        with_them, without = drawn["residual_pair"].traces
        assert [with_them["name"], without["name"]] == ["with residual connections", "without"]
        row, sentence = kept[depth, norm], said(page)
        assert with_them["y"] == row["added"][what] and without["y"] == row["replaced"][what]
        ends = {side: row[side][what][-1] for side in ("added", "replaced")}
        alike = {side: f"**{row[side]['alike'][-1]:.2f}**" for side in ends}
        after = "1 block" if depth == 1 else f"{depth} blocks"
        if what == "losses":
            nats = {
                side: f"**{loss:.2f} nats: torn between {math.exp(loss):,.{1 if loss < 3 else 0}f} letters**"
                for side, loss in ends.items()
            }
            cosines = f"cosine {alike['replaced']} after {after}, untrained; with them {alike['added']}"
            assert (
                f"until they are alike ({cosines})" in sentence
                and "a block only *adds* to what it reads" in sentence
            )
            lost = row["replaced"]["gradients"][0] < 0.01 * row["replaced"]["gradients"][-1]
            assert ("next to no gradient reaches the first block" in sentence) == lost
            knows = (
                " (it knows hardly more than how often each letter occurs)"
                if ends["replaced"] < 4
                else (" (it has learned nothing: that is guessing)")
            )
            steps = f"After {10 * len(row['added']['losses'])} steps the model without them is at"
            assert f"{steps} {nats['replaced']}{knows}, the other at {nats['added']}." in sentence
        elif what == "alike":
            if ends["replaced"] > 0.9:
                assert (
                    f"{after} make all tokens look the same, cosine {alike['replaced']}. With them"
                    in sentence
                )
            else:
                assert f"have a cosine of {alike['replaced']} after {after}. With them" in sentence
            assert f": {alike['added']}." in sentence
        elif depth > 1:
            assert_gradient_is_told(row, sentence)
            power = drawn["residual_pair"].layout["yaxis"]
            assert len(power["tickvals"]) <= 7 and "10<sup>−" in power["ticktext"][0]


def assert_gradient_is_told(row: dict[str, Any], sentence: str) -> None:
    back = {side: row[side]["gradients"][0] / row[side]["gradients"][-1] for side in ("added", "replaced")}
    assert f"the first of {row['depth']} blocks gets **{back['added']:.1f} times** the gradient" in sentence
    small = back["replaced"] < 0.01
    assert ("next to nothing" in sentence) == small and (
        "the gradient is not the reason" in sentence
    ) != small
    times = re.search(r"without them \*\*(.+?) times\*\*", sentence)
    assert times is not None
    digits = times[1].replace(" × 10", "e").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert float(digits) == pytest.approx(back["replaced"], rel=0.06)


def test_with_norms_the_gradient_stands_in_the_fold(drawn):
    """It is not the reason there, so it is not offered above; the axis has its decades written in full."""
    rows = json.loads((ROOT / "checkpoints" / "residuals.json").read_text())["pairs"]
    (row,) = [row for row in rows if (row["depth"], row["norm"]) == (4, "layernorm")]
    page = residual("highway", residual_depth="4", residual_shown="gradients", residual_seeds="1")
    assert page.get_by_key("residual_shown").options == ["loss", "likeness"]
    with_them, without = drawn["residual_pair_gradients"].traces
    assert with_them["y"] == row["added"]["gradients"] and without["y"] == row["replaced"]["gradients"]
    assert drawn["residual_pair_gradients"].layout["yaxis"]["ticktext"] == ["0.1", "1"]
    assert_gradient_is_told(row, said(page))


def test_the_highway_draws_the_means_of_what_was_measured(drawn, monkeypatch):
    from engine import corpora

    corpus = corpora.from_text("to be or not to be, that is the question. " * 30, "python")
    monkeypatch.setattr(state, "corpus", lambda name: corpus)
    monkeypatch.setattr(highway, "FIRST_SECONDS", 60.0)
    monkeypatch.setattr(highway, "DEPTHS", {"24": (2, 4), "48": (2, 3), "96": (2, 5)})
    highway._kept.clear()
    page = residual("highway", residual_deepest="24", residual_seeds="1")
    plan = Plan(depths=(2, 4), seeds=1)
    profiles = list(measure(plan, torch.as_tensor(corpus.train), corpus.vocab_size))
    gradients, lengths = (averaged(profiles, what) for what in ("gradients", "activations"))
    wirings = ("pre", "post", "none")
    for side, means in (("left", gradients), ("right", lengths)):
        for trace, wiring in zip(drawn[f"residual_road_{side}"].traces, wirings, strict=True):
            np.testing.assert_allclose(trace["y"], means[wiring, 4][1:], rtol=1e-4)
    for trace, wiring in zip(drawn["residual_road_ratio"].traces, wirings, strict=True):
        ends = [gradients[wiring, d][1] / gradients[wiring, d][d] for d in (2, 4)]
        assert list(trace["x"]) == [2, 4]
        np.testing.assert_allclose(trace["y"], ends, rtol=1e-4)
        shown = re.search(rf"\*\*{trace['name']}\*\* \|.*?(?:= |gets )([\d.e+-]+)", said(page))
        assert shown is not None and float(shown[1].rstrip(".")) == pytest.approx(ends[1], rel=0.06)
    weights = averaged(profiles, "weights")
    pre, post = (weights[w, 4][-1] / weights[w, 2][-1] for w in ("pre", "post"))
    assert f"a factor {math.sqrt(0.5):.2f}; measured: pre-norm × {pre:.2f}, post-norm × {post:.2f}" in (
        said(page)
    )
    highway._kept.clear()


@pytest.mark.parametrize(
    ("title", "key"), [("Who pushed the logit", "residual_parts"), ("Norms", "residual_norms")]
)
def test_old_links_name_a_view_by_its_title(drawn, title, key):
    residual(title)
    assert key in drawn and "residual_lens" not in drawn
