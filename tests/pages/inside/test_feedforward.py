"""The feed-forward page: every view, every model, every option, held against arithmetic on a recording."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.data import corpora
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.model import count_parameters
from engine.recording import record
from pages.inside.feedforward import experts, neuron_maps
from studies.experiments import dropout_runs, expert_runs, no_feedforward
from studies.experiments.dropout_runs import LITTLE, WHOLE
from studies.feedforward.activation_functions import curve, gated_surface, spread, worst_difference
from studies.feedforward.dropout import logit_terms
from studies.feedforward.neurons import (
    liked,
    most_active,
    promoted,
    scan,
    strongest,
    token_scores,
    top_activations,
)
from studies.residual.attribution import attribute
from tests.engine.helpers import loud, tiny
from tests.pages.helpers import chosen, clicked, lacking, opened, said
from tests.pages.inside.models import ALPHABET, of_letters, only_this, run_of, shipped
from tests.pages.stage import StageManager
from ui import background_jobs, memo, session
from ui.fit_text import FIRST_TEXT
from ui.text.numbers import minus

pytestmark = pytest.mark.usefixtures("manager")
PAGE = "inside/feedforward"


BREAKS = "ROMEO:\nBut, soft! what light through yonder window breaks?\n" * 200


def reading(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A corpus that is there on every machine, and short."""
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: Path("here"))
    monkeypatch.setattr(session, "corpus", lambda name: corpora.from_text(text, name))
    memo.clear()


@pytest.fixture
def short_corpus(monkeypatch: pytest.MonkeyPatch, measured_anew: None) -> None:
    reading(monkeypatch, BREAKS)


def feedforward(**query: str) -> AppTest:
    return opened(PAGE, **query)


def test_it_opens_on_the_most_active_neuron_and_finds_its_contexts(short_corpus):
    page = feedforward(measure="true")
    keys = "feedforward_layer", "feedforward_neuron"
    layer, neuron = (page.number_input(key=key).value for key in keys)
    first = page.dataframe[0].value.iloc[0]
    assert (first["layer"], first["neuron"]) == (layer, neuron)
    predictable = f"Neuron {neuron} of block {layer} ", "From 1,152 tokens read, 128 at a time"
    assert not lacking(said(page), *predictable)
    assert [page.query_params[key] for key in keys] == [str(layer), str(neuron)]


def test_what_a_neuron_looks_for_and_raises_is_what_its_activations_say(short_corpus):
    layer, neuron, known = 3, 71, shipped()
    ids = np.array(known.tokenizer.encode(BREAKS[-1180:])[:1152])
    found = finish(scan(known.model, ids, window=128))[layer]
    best = liked(*top_activations(found, neuron, lowest=False), ids)
    most = promoted(token_scores(known.model, layer, neuron), 3).raised
    letters = [known.tokenizer.decode([i]) for i in (best.token, *most)]
    favourite, *raised = (letter.replace(" ", "␣").replace("\n", "⏎") for letter in letters)
    where = "all 8" if best.count == 8 else f"**{best.count}** of its 8"
    does = "fires mainly on" if best.count >= 6 else "fires most strongly on"
    assert not lacking(
        said(feedforward(feedforward_layer=str(layer), feedforward_neuron=str(neuron))),
        f"Neuron 71 of block 3 {does} **“{favourite}”**, the token at {where} ",
        f"strongest positions (up to **{best.value:.2f}**). It promotes “{'”, “'.join(raised)}”.",
    )


def test_all_blocks_are_read_at_once(short_corpus, monkeypatch):
    page, begun, of = feedforward(), [], background_jobs.Jobs.of

    def counted(self, key, *how):
        begun.append(key[0])
        return of(self, key, *how)

    monkeypatch.setattr(background_jobs.Jobs, "of", counted)
    for layer in range(shipped().config.n_layers):
        page.number_input(key="feedforward_layer").set_value(layer).run()
        assert not lacking(said(page), f" of block {layer} ", " strongest positions (up to ")
    assert "contexts" not in begun


def test_corpus_text_never_becomes_html(measured_anew, monkeypatch):
    reading(monkeypatch, "<img src=x onerror=alert(1)>&amp;" * 400)
    monkeypatch.setattr("ui.text.tokens.show_bytes", lambda t: "<i>" + t.decode())
    page = feedforward()
    memo.clear()
    (drawn,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
    assert "<i>" not in drawn and "&lt;i&gt;" in drawn


def test_a_run_is_searched_on_the_text_until_the_corpus_is_asked_for(manager, short_corpus):
    """The scrubber would otherwise read the corpus anew at each step."""
    run = run_of(manager, vocab_size=90, context=16)
    page = feedforward(model=run, measure="true")
    assert not lacking(said(page), "Found in the text above", "From 16 tokens read")
    assert any("gf-contexts" in e.proto.body for e in page.get("html")), "the left half is not empty"
    clicked(page, "feedforward_read")
    assert "tokens read, 16 at a time" in said(page)
    chosen(page, "feedforward_neuron", 3)  # known for all neurons of the layer
    assert "feedforward_read" not in {button.key for button in page.button} and "tokens read" in said(page)
    assert "Found in the text above" in said(feedforward(model=run, step="0"))


MODEL = loud(tiny(ffn="swiglu", norm="layernorm", norm_bias=True, n_layers=3, d_ff=24), factor=3.0)
MODEL.requires_grad_(False)
TEXT = "abcabdab"
IDS = tuple(CharTokenizer(ALPHABET).encode(TEXT))
RECORDING = record(MODEL, IDS)
POST = RECORDING.stacked("ffn_post")  # (layer, query, d_ff)
LAYER, NEURON = 1, 7


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, manager: StageManager) -> None:
    only_this(monkeypatch, of_letters(MODEL), "feedforward-numbers")
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)


def feedforward_of(view: str, **query: str) -> AppTest:
    where = {"feedforward_layer": str(LAYER), "feedforward_neuron": str(NEURON)} | query
    return opened(PAGE, feedforward_view=view, text=TEXT, measure="true", hand="true", **where)


@pytest.mark.usefixtures("own")
def test_neurons_are_those_of_the_recording(drawn):
    page = feedforward_of("neurons", feedforward_token="2")
    peaks, _ = strongest(POST)  # (layer, d_ff)
    np.testing.assert_allclose(drawn["feedforward_overview"].traces[0]["z"], peaks, rtol=1e-5)
    order = np.argsort(-np.abs(peaks[LAYER]), kind="stable")[:32]
    heat = drawn["feedforward_map"].traces[0]
    assert heat["y"] == [str(n) for n in order]
    np.testing.assert_allclose(heat["z"], POST[LAYER][:, order].T, rtol=1e-5)
    rms = np.sqrt((POST.astype(float) ** 2).mean((1, 2)))
    quiet = [(np.abs(POST[i]) < 0.1 * rms[i]).mean() for i in range(3)]
    np.testing.assert_allclose(drawn["feedforward_sparsity"].traces[0]["x"], quiet, rtol=1e-5)
    rows, best = page.dataframe[0].value, most_active(POST, 40)
    assert rows[["layer", "neuron"]].to_numpy().tolist() == [[peak.layer, peak.neuron] for peak in best]
    np.testing.assert_allclose(rows["activation"], [peak.value for peak in best], rtol=1e-5)
    place = best[0].position
    assert rows["at token"][0] == f"{TEXT[place]}  ({place})"
    values = POST[LAYER, :, NEURON]
    line, mark = drawn["feedforward_line"].traces
    np.testing.assert_allclose(line["y"], values, rtol=1e-6)
    assert mark["y"] == pytest.approx([values[2]])
    ends = f"it ranges from {minus(f'{values.min():.3f}')} to {minus(f'{values.max():.3f}')}."
    assert f"At “c” (position 2) its activation is **{values[2]:.4f}**; on this text {ends}" in said(page)
    for through in (True, False):
        scores = token_scores(MODEL, LAYER, NEURON, through_norm=through)
        ranked = np.argsort(-scores, kind="stable")
        bars = drawn["feedforward_tokens"].traces[0]
        shown = [name.strip("\u200b\u200c") for name in bars["y"]]
        words = [*ALPHABET[:-1], "␣"]
        ends_of = [*ranked[:5], *ranked[-5:]]
        assert shown == [words[i] for i in ends_of]
        np.testing.assert_allclose(bars["x"], scores[ends_of], rtol=1e-4, atol=1e-6)
        chosen(page, "feedforward_norm", False)


@pytest.mark.usefixtures("own")
def test_the_contexts_are_where_the_neuron_answers():
    page = feedforward_of("neurons", feedforward_side="lowest")
    values = POST[LAYER, :, NEURON]  # the text is searched, in one window: one stretch, one place
    (drawn,) = [e.proto.body for e in page.get("html") if "gf-contexts" in e.proto.body]
    assert re.findall(r"<b>(-?[\d.]+)</b>", drawn) == [f"{values.min():.3f}"]
    framed = re.findall(r"<u [^>]*>(.)</u>", drawn)
    assert framed == [TEXT[values.argmin()]]
    shades = re.findall(r'background:#\w{6}(\w\w)">', drawn)
    expected = [round(min(abs(v) / abs(values.min()), 1.0) * 190) for v in values.tolist()]
    assert [int(s, 16) for s in shades] == pytest.approx(expected, abs=1)
    positive = (values > 0).mean()
    assert f"It was positive at {positive:.1%} of the tokens" in said(page)
    assert "From 8 tokens read, 8 at a time" in said(page)
    assert f"no favourite token: its 1 strongest positions (up to **−{-values.min():.2f}**)" in said(page)


@pytest.mark.usefixtures("own")
def test_functions_their_slopes_and_this_models_inputs(drawn):
    page = feedforward_of("functions", feedforward_reach="2", feedforward_inputs="1")
    gates = RECORDING[f"blocks.{LAYER}.ffn_gate"].astype(float)
    inputs, silu = spread(gates, -2, 2), curve("silu", -2, 2)
    for key, values in (("feedforward_output", silu.y), ("feedforward_slope", silu.slope)):
        chosen(page, "feedforward_drawn", key.split("_")[1])
        line = next(t for t in drawn[key].traces if t["name"] == "SiLU")
        np.testing.assert_allclose(line["x"], silu.x, atol=1e-6)
        np.testing.assert_allclose(line["y"], values, atol=1e-6)
        np.testing.assert_allclose(drawn[key].traces[0]["y"], inputs.density, rtol=1e-6)
        (low, high), (under, above) = (drawn[key].layout[axis]["range"] for axis in ("yaxis", "yaxis2"))
        assert low / high == pytest.approx(under / above), (
            "a density of zero stands where an output of zero does"
        )
    words = said(page)
    mean = minus(f"{inputs.mean:.2f}")
    assert f"**{(gates < 0).mean():.0%}** of its inputs are below zero" in words
    assert f"The inputs have mean {mean} and standard deviation {inputs.std:.2f}." in words
    assert (f" {inputs.outside:.1%} of all inputs lie outside" in words) == (inputs.outside > 0)
    assert "**0.000473** (at x = ±2." in words and "24,001 points" in words
    table, true = drawn["feedforward_difference"].table, worst_difference()
    for column, values in (("x", true.x), ("tanh_minus_exact", true.y)):
        np.testing.assert_allclose(table[column], values[::10], atol=1e-12)
    surface, _, dots = drawn["feedforward_surface"].traces
    axis, values = gated_surface("swiglu", float(surface["x"][-1]))
    np.testing.assert_allclose(surface["x"], axis, atol=1e-5)
    np.testing.assert_allclose(surface["z"], values, atol=1e-5)
    known = [RECORDING.stacked(name).ravel().tolist() for name in ("ffn_gate", "ffn_pre")]
    assert len(dots["x"]) == 500
    assert set(zip(dots["x"], dots["y"], strict=True)) <= set(zip(*known, strict=True))


def test_dropout_keeps_the_mean_of_the_last_write_to_a_logit():
    """The sum is what attribution through the final norm gives the last network."""
    words = said(feedforward(feedforward_view="dropout", dropout_share="0.3", text="ROMEO:"))
    known = shipped()
    recording = record(known.model, known.tokenizer.encode("ROMEO:"))
    guess = int(recording.logits[-1].argmax())
    terms = logit_terms(known.model, recording, len(recording.ids) - 1, guess)
    attributed = attribute(known.model, recording, len(recording.ids) - 1, guess).feedforward[3]
    found = re.search(
        r"Dropping \*\*30%\*\* of (\d+) terms .* mean: (\S+) for a contribution of \*\*(\S+)\*\*.* off by"
        r" \*\*(\S+)\*\*; undivided, the mean is (\S+)\.",
        words.replace("−", "-"),
    )
    count, mean, total, off, plain = map(float, found.groups())
    assert count == len(terms) == 128 and total == pytest.approx(attributed, abs=0.006)
    spread = float(np.sqrt(3 / 7 * (terms**2).sum()))
    assert off == pytest.approx(spread, rel=0.05) and mean == pytest.approx(total, abs=spread / 10)
    assert plain == pytest.approx(0.7 * total, abs=spread / 10)


def test_dropout_s_sum_says_where_a_logit_is_none(monkeypatch):
    only_this(monkeypatch, of_letters(loud(tiny(norm="dyt"))), "dropout-without-a-sum")
    assert "Its contribution is no sum of terms" in said(feedforward(feedforward_view="dropout", text="abc"))


def test_dropout_in_a_prediction_spreads_with_the_share(drawn):
    spreads = []
    for share in ("0.1", "0.5"):
        words = said(feedforward(feedforward_view="dropout", dropout_shown="prediction", dropout_share=share))
        bars, dots = drawn["dropout_prediction"].traces
        first = np.reshape(dots["y"], (32, -1))[:, 0]
        assert f"between **{first.min():.0%}** and **{first.max():.0%}**" in words
        assert f"without dropout it is {bars['y'][0]:.0%}" in words
        spreads.append(abs(first.mean() - bars["y"][0]))
    assert spreads[0] < spreads[1], "a model that was trained without dropout loses its way"


@pytest.mark.parametrize("characters", [LITTLE, WHOLE])
def test_dropout_s_trainings_are_those_of_the_file(characters, drawn):
    training = {"dropout_shown": "training", "dropout_text": str(characters)}
    words, ends = said(feedforward(feedforward_view="dropout", **training)), {}
    runs = [run for run in dropout_runs.shipped() if run.plan.characters == characters]
    for share in (0.0, 0.1, 0.3):
        ends[share] = float(np.median([run.validation[-1] for run in runs if run.plan.dropout == share]))
    best = min(ends, key=ends.__getitem__)
    assert ("no dropout is best" in words) == (best == 0)
    assert best == 0 or f"**p = {best:g}** is best" in words
    assert f"**{ends[0.3]:.2f}** held out (medians of 3 seeds)" in words
    assert len(drawn[f"dropout_training_{characters}"].traces) == 2 * 3 * (3 + 1)


def bend_by_hand() -> float:
    """How far the networks' output of a mean is from the mean of their outputs, with the weights multiplied out."""
    kept = shipped()
    ids = kept.tokenizer.encode(FIRST_TEXT)
    read, off, size = record(kept.model, ids), 0.0, 0.0
    for layer, block in enumerate(kept.model.blocks):
        a = torch.tensor(read[f"blocks.{layer}.norm2"]).double()
        b = torch.cat([a[-1:], a[:-1]])
        first, second = block.ffn.w_in, block.ffn.w_out

        def write(x, first=first, second=second):
            hidden = x @ first.weight.double().T + (0 if first.bias is None else first.bias.double())
            hidden = torch.nn.functional.gelu(hidden)
            return hidden @ second.weight.double().T + (0 if second.bias is None else second.bias.double())

        mean = (write(a) + write(b)) / 2
        off += float((write((a + b) / 2) - mean).square().sum())
        size += float(mean.square().sum())
    return (off / size) ** 0.5


def test_blocks_without_the_network_are_those_of_the_file(drawn):
    words = said(feedforward(feedforward_view="functions", feedforward_drawn="no network"))
    rows = json.loads(no_feedforward.PATH.read_text("utf-8"))

    def ends(task: str, kind: str, what: str) -> list[float]:
        return [run[what][-1] for run in rows if (run["plan"]["task"], run["plan"]["kind"]) == (task, kind)]

    losses = {
        kind: float(np.median(ends("shakespeare", kind, "validation")))
        for kind in ("whole", "attention", "deep attention")
    }
    assert f"**{losses['attention']:.2f} nats** instead of {losses['whole']:.2f}" in words
    assert f"as many parameters, end at {losses['deep attention']:.2f} nats" in words
    found = re.search(r"networks are off by \*\*(\d+\.\d)%\*\*", words)
    assert found and abs(float(found[1]) / 100 - bend_by_hand()) < 6e-4
    assert min(losses, key=losses.__getitem__) == "whole"
    bars = [trace for trace in drawn["feedforward_without"].traces if trace["type"] == "bar"]
    for kind, (solved, loss) in zip(losses, zip(bars[::2], bars[1::2], strict=True), strict=True):
        tasks = ("repeat", "sort", "addition_reversed")
        assert solved["y"] == pytest.approx([np.median(ends(task, kind, "solved")) for task in tasks])
        assert loss["y"] == pytest.approx([losses[kind]])


def test_experts_says_what_the_busiest_takes_and_draws_the_shares_of_both_twins(drawn):
    runs = expert_runs.shipped()
    page = feedforward(feedforward_view="experts", experts_layer="2", experts_by="bias", experts_seed="1")
    bare, evened = (expert_runs.balance(runs, kind, 2) for kind in ("none", "bias"))
    assert f"**{bare.largest:.0%}** of layer 2's work" in said(page)
    assert f"balanced by a bias **{evened.largest:.0%}** (medians of 3 seeds)" in said(page)
    traces = drawn["experts_text"].traces
    bands = [trace for trace in traces if trace["type"] == "scatter"]
    for kind, eight in (("none", bands[:8]), ("bias", bands[8:])):
        (run,) = [each for each in runs if (each.plan.kind, each.plan.seed) == (kind, 1)]
        np.testing.assert_allclose(np.stack([band["y"] for band in eight], 1), run.shares[:, 2], atol=1e-5)
    texts = [trace for trace in traces if trace["type"] == "heatmap"]
    assert len(texts) == 2 and texts[0]["text"] == texts[1]["text"] and texts[0]["text"][0][0] == "?"
    heads = [note["text"] for note in drawn["experts_text"].layout["annotations"]]
    assert heads[:2] == ["Not balanced: share by step", "the expert with the larger weight of 2"]


def test_both_twins_of_another_seed_are_trained_in_the_view(drawn, shakespeare, monkeypatch):
    config = replace(expert_runs.TRAINING, steps=2, batch_size=2, eval_every=0, snapshot_every=1)
    monkeypatch.setattr(experts, "learn_twins", partial(expert_runs.learn_twins, config=config))

    def bands():
        return np.stack([trace["y"] for trace in drawn["experts_text"].traces if trace["type"] == "scatter"])

    page = feedforward(feedforward_view="experts", experts_seed="3", experts_layer="1", experts_by="bias")
    before = [
        run.shares[:, 1].T for run in expert_runs.shipped() if run.plan.seed == 0 and run.plan.kind != "loss"
    ]
    np.testing.assert_allclose(bands(), np.concatenate(before), atol=1e-5)
    next(button for button in page.button if button.label.startswith("Train both twins here")).click().run()
    twins = [expert_runs.trained(expert_runs.Plan(kind, 3), config=config) for kind in ("none", "bias")]
    np.testing.assert_allclose(bands(), np.concatenate([run.shares[:, 1].T for run in twins]), atol=1e-5)


def test_experts_compares_characters_with_chance_and_counts_active_parameters():
    page = feedforward(feedforward_view="experts", experts_shown="classes", experts_layer="0", measure="true")
    found = expert_runs.balance(expert_runs.shipped(), "loss", 0)
    assert f"for **{found.predictable:.0%}** of the text" in said(page)
    assert f"it would be **{found.shuffled:.0%}**" in said(page)
    rows = page.dataframe[0].value.set_index("model")
    mixture, dense = (expert_runs.model_of(kind) for kind in ("none", "dense"))
    assert rows.loc["not balanced", "parameters"] == f"{count_parameters(mixture):,}"
    router = 4 * 96 * 8
    assert rows.loc["not balanced", "active"] == f"{count_parameters(dense) + router:,}"


def test_a_click_in_a_layer_s_map_names_its_layer_and_neuron() -> None:
    post, shown = np.random.default_rng(0).normal(size=(3, 40)), np.array([5, 31, 0])
    figure = neuron_maps.layer_map(post, shown, ["a", "b", "c"], layer=2, chosen=31, top=2.0, signed=True)
    heat = figure.traces[0]
    assert [divmod(int(row[0]), neuron_maps.CODE) for row in heat["customdata"]] == [(2, 5), (2, 31), (2, 0)]
    assert heat["y"] == ["5", "31", "0"]
    np.testing.assert_allclose(heat["z"], post[:, shown].T, rtol=1e-6)
