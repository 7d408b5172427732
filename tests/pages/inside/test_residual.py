"""The residual stream's page: every view with every option, held against arithmetic on a recording."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError
from engine.recording import record
from pages.inside.residual import logit_lens as lens_view
from pages.inside.residual import wirings as highway
from studies.residual import stream as stream
from studies.residual.attribution import attribute, pushes
from studies.residual.gradient_by_depth import Plan, averaged, measure
from studies.residual.lens import logit_lens, settling
from tests.engine.helpers import loud, tiny
from tests.pages.helpers import in_address, lacking, opened, plain, said
from tests.pages.inside.models import ALPHABET, of_letters, only_this
from tests.pages.stage import StageManager
from ui import session as state
from ui.site import ROOT
from ui.text.markdown import safe
from ui.text.numbers import minus

PAGE = "inside/residual"


MODEL = loud(tiny(n_layers=3, attention_bias=True, norm_bias=True), factor=3.0).requires_grad_(False)
TEXT = "abcabdab"
IDS = tuple(CharTokenizer(ALPHABET).encode(TEXT))
RECORDING = record(MODEL, IDS)
FULL_NAMES = {
    "embed": ", the token embedding,",
    "norm bias": ", the bias of the final norm,",
    **{f"ffn {i}": f", the feed-forward network of block {i}," for i in range(3)},
    **{f"attn {i}": f", the attention of block {i}," for i in range(3)},
    **{f"attn bias {i}": f", the bias of block {i}'s attention," for i in range(3)},
}
NAMES = ["embedding", "after block 0", "after block 1", "after block 2 = output"]
READ_AT = ["at the embedding", "after block 0", "after block 1", "after block 2"]


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "residual-numbers")


def residual(view: str, **query: str) -> AppTest:
    return opened(PAGE, residual_view=view, text=TEXT, measure="true", hand="true", **query)


def test_the_lens_and_its_cell(drawn):
    found = logit_lens(MODEL, RECORDING)
    guess, kl, settled = found.guess, found.kl, found.settled
    depth, at = 1, 3
    page = residual("lens", residual_cell=f"{depth}-{at}")
    heat, line = drawn["residual_lens"].traces
    np.testing.assert_allclose(heat["z"], found.probability, atol=1e-5)
    np.testing.assert_allclose(line["y"], np.repeat(settled, 2) - 0.5)
    last = int(guess[-1, at])
    for rank, bar in enumerate(drawn["residual_climb"].traces):
        np.testing.assert_allclose(bar["x"], found.here[:, at, rank], atol=1e-5)
        wins = (found.likeliest[:, at, rank] == last).tolist()
        assert [shade == "var(--gf-output)" for shade in bar["marker"]["color"]] == wins
    assert drawn["residual_climb"].layout["yaxis"]["ticktext"][:2] == [f"embedding of “{TEXT[at]}”", NAMES[1]]
    bars, marks = drawn["residual_top"].traces
    np.testing.assert_allclose(bars["x"], found.here[depth, at, :10], atol=1e-5)
    np.testing.assert_allclose(marks["x"], found.output[depth, at, :10], atol=1e-5)
    words, begins = said(page), settled[at]
    stopped = f"Stopped {NAMES[begins - 1]}" if begins > 1 else "From the embedding alone"
    before = found.likeliest[begins - 1, at].tolist().index(last)
    assert begins > 0
    assert (
        f"After “{TEXT[: at + 1]}” “{ALPHABET[last]}” becomes the top prediction only"
        f" **{NAMES[begins].removesuffix(' = output')}**, and ends with probability"
        f" **{found.probability[-1, at]:.0%}**. {stopped}, the model would predict"
        f" “{ALPHABET[guess[begins - 1, at]]}” and give “{ALPHABET[last]}”"
        f" {found.here[begins - 1, at, before]:.0%}."
    ) in words
    stated = re.search(
        r"would guess “(.)” with probability (\S+); the KL to its final distribution is \*\*(\S+) nats\*\*",
        words,
    )
    assert stated is not None and stated[1] == ALPHABET[guess[depth, at]]
    assert float(stated[2]) == pytest.approx(found.probability[depth, at], abs=6e-4)
    assert float(stated[3]) == pytest.approx(kl[depth, at], abs=6e-4)
    place = NAMES[begins].removesuffix(" = output") if begins else "at the embedding"
    final = f"The final guess, “{ALPHABET[last]}”, takes the lead for good **{place}**."
    assert f"{final} In the text, “{TEXT[at + 1]}” follows" in words
    all_of = settling(found)
    means, drop, half = all_of.kl, all_of.step, all_of.half
    told = ", ".join(f"{name}: {count}" for name, count in zip(NAMES, all_of.counts, strict=True) if count)
    assert drop is not None and not lacking(
        words,
        f"**Half of the tokens are settled {READ_AT[half]}** ({all_of.by[half]} of 8)",
        f"top guess settles: {told}. At the embedding, the mean KL to the output is {means[0]:.2f} nats",
        f"The mean KL falls most in block {drop - 1}: {means[drop - 1]:.2f} → {means[drop]:.2f} nats",
    )
    page.get_by_key("residual_shade").set_value("KL to the output").run()
    heat = drawn["residual_lens"].traces[0]
    np.testing.assert_allclose(heat["z"], kl, atol=1e-3)
    assert heat["zmax"] == pytest.approx(kl[1:].max(), abs=1e-3)
    assert ("The scale ends" in said(page)) == (kl[0].max() > kl[1:].max())
    page.button(key="residual_arrow_upward").click().run()
    assert in_address(page, "residual_cell") == "2-3"


@pytest.mark.parametrize(("tokens", "shown"), [(4, "cathedral"), (40, "cath…")])
def test_a_guess_is_cut_only_where_its_cell_is_narrow(tokens: int, shown: str) -> None:
    words, values = [["cathedral"] * tokens] * 2, np.ones((2, tokens))
    figure = lens_view.lens_table(
        words,
        values,
        ["before"] * tokens,
        NAMES[:2],
        settled=np.zeros(tokens),
        chosen=(0, 0),
        title="",
        top=1.0,
        hover=words,
    )
    assert figure.traces[0]["text"] == [[shown] * tokens] * 2


def test_who_pushed_is_each_writers_product_with_the_direction(drawn):
    at, row = 4, ALPHABET.index("d")
    page, found = (
        residual("push", residual_position=str(at), residual_target="d"),
        attribute(MODEL, RECORDING, at, row),
    )
    total, logit, difference = (plain(m.value) for m in page.metric)
    assert page.metric[1].label == "Logit of “d”" and logit == pytest.approx(found.logit, abs=1e-4)
    assert total == pytest.approx(found.total, abs=1e-3) and abs(difference) < 1e-3
    np.testing.assert_allclose(drawn["residual_heads"].traces[0]["z"], found.heads, atol=1e-5)
    expected = {"embed": found.embedding, "position": found.position, "norm bias": found.norm_bias}
    expected |= {f"head {i}.{h}": found.heads[i, h] for i in range(3) for h in range(4)}
    expected |= {f"ffn {i}": found.feedforward[i] for i in range(3)}
    expected |= {f"attn bias {i}": found.attention_bias[i] for i in range(3)}
    table = drawn["residual_parts"].table
    assert dict(zip(table["writer"], table["contribution"], strict=True)) == pytest.approx(expected, abs=1e-5)
    told = pushes(MODEL.config, found)
    most, least = told.most.label, told.least.label
    assert not lacking(
        said(page),
        f"For “d” after “{TEXT[: at + 1]}”, **{most}**{FULL_NAMES.get(most, '')} contributes most:",
        f" **{minus(f'{told.most.value:+.2f}')}** to a logit of {minus(f'{found.logit:.2f}')}.",
        f"largest negative contribution is {least}{FULL_NAMES.get(least, '').removesuffix(',')}:",
        f": {minus(f'{told.least.value:+.2f}')}.",
        f"frozen at {found.scale:.3f}",
    )
    for versus, other in (("mean of all", RECORDING.logits[at].mean()), ("c", RECORDING.logits[at, 2])):
        page.selectbox(key="residual_versus").select(versus).run()
        wanted = float(RECORDING.logits[at, row] - other)
        assert float(page.metric[1].value) == pytest.approx(wanted, abs=1e-4)
        over = "the mean of all logits" if versus == "mean of all" else "the logit of “c”"
        assert f"to a lead of {minus(f'{wanted:.2f}')} over {over}" in said(page)
        assert " to a logit of " not in said(page), "a lead is no logit"


def test_norms_shares_and_a_sum_worked_out(drawn):
    at = 5
    page = residual("norms", residual_position=str(at))
    lengths = stream.norms([state.array for state in stream.states(RECORDING)])
    written = stream.writes(RECORDING)
    labels, sizes = [write.label for write in written], stream.norms([write.array for write in written])
    np.testing.assert_allclose(drawn["residual_norms"].traces[0]["z"], lengths, rtol=1e-5)
    *bars_of_writes, mean, one = drawn["residual_line"].traces
    np.testing.assert_allclose(mean["y"], lengths.mean(1), rtol=1e-5)
    np.testing.assert_allclose(one["y"], lengths[:, at], rtol=1e-5)
    cosines = stream.cosines([(w.array, w.onto) for w in written if w.onto is not None])
    shares = stream.shares(RECORDING)
    assert shares is not None
    for key, names, values in (
        ("residual_writes", labels, sizes),
        ("residual_shares", labels, shares),
        ("residual_cosines", labels[1:], cosines),
    ):
        table, diamonds = drawn[key].table, drawn[key].traces[-1]
        assert diamonds["name"] == "chosen token" and table["write"] == names
        np.testing.assert_allclose(diamonds["y"], values[:, at], rtol=1e-4, atol=1e-6, err_msg=key)
        np.testing.assert_allclose(table["chosen_token"], values[:, at], rtol=1e-4, atol=1e-6, err_msg=key)
        np.testing.assert_allclose(table["mean"], values.mean(1), rtol=1e-4, atol=1e-6, err_msg=key)
    below = {
        (x, name): y
        for t in bars_of_writes
        for x, name, y in zip(t["x"], t["customdata"], t["y"], strict=True)
    }
    expected = {(i, labels[i]): float(sizes[i].mean()) for i in range(8)}  # a state a write here
    assert below == pytest.approx(expected, rel=1e-4)
    latex, layernorm, rmsnorm, dyt = (one.value for one in page.latex)
    assert "\\mu &= 3, \\quad \\sigma^2 = 3.5" in layernorm and "[-1.07,\\ -0.535,\\ 0,\\ 1.6]" in layernorm
    assert "= 3.536" in rmsnorm and "[0.283,\\ 0.566,\\ 0.849,\\ 1.7]" in rmsnorm  # 3.5355 = sqrt(50 / 4)
    assert "(learned)" in dyt and "[0.462,\\ 0.762,\\ 0.905,\\ 0.995]" in dyt  # tanh(x / 2)
    worked = [float(x) for x in re.findall(r"= ([\d.e+-]+)(?:\\\\|\\end)", latex)]
    assert worked == pytest.approx([*lengths[1:, at]], rel=6e-3)
    attention = sizes[labels.index("attn 1"), at]
    assert f"\\underbrace{{\\text{{attn}}_{{1}}}}_{{{attention:.3g}}}" in latex
    told = stream.summary(stream.stream(RECORDING))
    negative = f"Negative on average: {', '.join(told.negative)}."
    assert not lacking(
        said(page),
        f"from **{told.first:.2f}** at the embedding to **{told.last:.2f}** at",
        f"The largest write, of norm **{told.length:.2f}**, comes from"
        f" **{told.longest}**{FULL_NAMES[told.longest].removesuffix(',')}.",
        "final stream: " + ", ".join(f"{label} {share:+.0%}" for label, share in told.largest),
        negative if told.negative else "No component's mean share is negative.",
        "sum to 1 (here 1.000000)",
    )


HIGHWAYS = [
    (8, "layernorm", "losses"),
    (8, "none", "gradients"),
    (2, "none", "losses"),
    (8, "layernorm", "alike"),
    (2, "layernorm", "alike"),
    (1, "none", "gradients"),
    (1, "none", "losses"),
]


def test_the_highway_opens_on_two_models_that_were_trained(drawn):
    rows = json.loads((ROOT / "checkpoints" / "residuals.json").read_text())["pairs"]
    kept = {(row["depth"], row["norm"]): row for row in rows}
    page = opened(PAGE, residual_view="highway")
    for depth, norm, what in HIGHWAYS:
        for key, value in (("depth", depth), ("pair_norm", norm), ("shown", what)):
            page.get_by_key(f"residual_{key}").set_value(value).run()
        assert not page.exception
        with_them, without = drawn["residual_pair"].traces
        assert [with_them["name"], without["name"]] == ["with residual connections", "without"]
        row, sentence = kept[depth, norm], said(page)
        assert with_them["y"] == row["added"][what] and without["y"] == row["replaced"][what]
        ends = {side: row[side][what][-1] for side in ("added", "replaced")}
        alike = {side: f"**{row[side]['alike'][-1]:.2f}**" for side in ends}
        after, s = ("1 block", "s") if depth == 1 else (f"{depth} blocks", "")
        if what == "losses":
            near = row["replaced"]["alike"][-1] > 0.9
            blurs = f"{after} blur{s} all tokens into nearly one vector"
            does = blurs if near else f"{after} make{s} the tokens more similar"
            lost = row["replaced"]["gradients"][0] < 0.01 * row["replaced"]["gradients"][-1]
            assert ("next to no gradient reaches the first block" in sentence) == lost
            little = "knows little more than how often each character occurs"
            knows = little if ends["replaced"] < 4 else "has learned nothing"
            assert not lacking(
                sentence,
                f"{does} (cosine {alike['replaced']}, against {alike['added']})",
                f"After {10 * len(row['added']['losses'])} steps that model {knows}: ",
                f": **{ends['replaced']:.2f} nats**, against **{ends['added']:.2f}**.",
            )
        elif what == "alike":
            same = f"{after} make all tokens look the same, cosine {alike['replaced']}. With them"
            more = f"have a cosine of {alike['replaced']} after {after}. With them"
            assert not lacking(sentence, same if ends["replaced"] > 0.9 else more, f": {alike['added']}.")
        elif depth > 1:
            assert_gradient_is_told(row, sentence)
            power = drawn["residual_pair"].layout["yaxis"]
            assert len(power["tickvals"]) <= 7 and "10<sup>−" in power["ticktext"][0]


def assert_gradient_is_told(row: dict[str, Any], sentence: str) -> None:
    back = {side: row[side]["gradients"][0] / row[side]["gradients"][-1] for side in ("added", "replaced")}
    assert f"the first of {row['depth']} blocks gets **{back['added']:.1f} times** the gradient" in sentence
    small = back["replaced"] < 0.01
    assert ("next to nothing" in sentence) == small == ("the likelier cause" not in sentence)
    times = re.search(r"without them \*\*(.+?) times\*\*", sentence)
    assert times is not None and plain(times[1]) == pytest.approx(back["replaced"], rel=0.06)


def test_without_the_stored_pairs_a_sentence_is_shown(monkeypatch):
    def shipped() -> None:
        raise CheckpointError("residuals.json lacks 3 of 8 runs")

    monkeypatch.setattr("pages.inside.residual.residuals_on_off._shipped", shipped)
    assert [each.value for each in residual("highway").info] == [safe("residuals.json lacks 3 of 8 runs")]


@pytest.mark.usefixtures("measured_anew")
def test_the_highway_draws_the_means_of_what_was_measured(drawn, monkeypatch):
    from engine.data import corpora

    corpus = corpora.from_text("to be or not to be, that is the question. " * 30, "python")
    monkeypatch.setattr(state, "corpus", lambda name: corpus)
    monkeypatch.setattr(highway, "DEPTHS", {"24": (2, 4), "48": (2, 3), "96": (2, 5)})
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
    assert f"a factor of {math.sqrt(0.5):.2f}; measured: pre-norm × {pre:.2f}, post-norm × {post:.2f}" in (
        said(page)
    )


def test_a_guess_stands_in_its_bar_only_where_it_has_room() -> None:
    assert [lens_view._written("thousand", share) for share in (0.02, 0.5)] == ["", "thousand"]
    assert lens_view._written("a thousand and one", 1.0).endswith("…")
