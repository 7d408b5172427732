"""The Sampling page alone: every view, every kind of model, and links written by strangers."""

import base64
import itertools
import math
import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.data import corpora
from engine.sample import draw, stages, uniform
from pages.output.sampling import temperature, two_tokenizers
from pages.output.sampling.perplexity import chain
from studies.generation.outcome import likeliest_ids, tally
from studies.generation.scoring import score
from tests.pages import helpers
from tests.pages.helpers import said as sentences
from tests.pages.helpers import sent as sent_to
from tests.pages.inside.models import shipped
from tests.pages.start.training import begun
from ui import memo
from ui.players import sampler

pytestmark = pytest.mark.usefixtures("manager")
KING = "KING RICHARD II:\n"


def opened(**query: str) -> AppTest:
    return helpers.opened("output/sampling", **{"measure": "true", "hand": "true"} | query)


def written(page: AppTest) -> AppTest:
    """The page when all five texts are written: until then a bar stands in their place."""
    for _ in range(200):
        if len(page.code) >= 5:
            return page
        time.sleep(0.1)
        page.run()
    raise AssertionError("the texts were never written")


def engine_rows(page: AppTest):
    return page.dataframe[0].value.set_index("stage")


def logits_of(ids: tuple[int, ...], position: int) -> torch.Tensor:
    """Of the model that the page opens with."""
    with torch.inference_mode():
        return shipped().model(torch.tensor([ids]))[0, position].float()


def log_probabilities(text: str) -> torch.Tensor:
    """(query, vocab)"""
    with torch.inference_mode():
        return shipped().model(torch.tensor([ids_of(text)]))[0].double().log_softmax(-1)


def ids_of(text: str = KING) -> tuple[int, ...]:
    return tuple(shipped().tokenizer.encode(text))


def test_the_first_view_shows_each_stage_as_the_engine_computes_it(drawn):
    page, ids = opened(), ids_of()
    assert page.text_area(key="text").value == KING
    rows = engine_rows(page)
    assert list(rows.index) == ["logits", "repetition penalty", "temperature", "top-k", "top-p", "min-p"]
    records = stages(logits_of(ids, -1), replace(sampler.START, seed=0), ids)
    count = records[-1].remaining
    for column, field in (("entropy (nats)", "entropy"), ("mass kept", "mass"), ("choices", "choices")):
        assert rows[column].tolist() == pytest.approx([getattr(each, field) for each in records], abs=1e-4)
    assert rows["tokens left"].tolist() == [each.remaining for each in records] == [65] * 4 + [count] * 2
    assert rows["removed here"].tolist() == [0, 0, 0, 0, 65 - count, 0]
    assert not helpers.lacking(
        sentences(page),
        f"**{count} of 65 tokens are left to draw from**, with",
        f"**{records[-1].choices:.1f}** effective choices ({records[0].choices:.1f} before).",
        f"(token {draw(records[-1].probabilities, uniform(0, 1)[0].item())})",
    )
    figure, p = drawn["sampling_stage_map"], records[0].probabilities
    order = likeliest_ids(p, 15).tolist()
    assert figure.table["id"] == order and figure.traces[0]["y"] == list(rows.index)
    assert figure.traces[0]["z"][0] == pytest.approx(p[order].tolist(), abs=1e-6)
    assert figure.table["removed_by"] == [""] * min(count, 15) + ["top-p"] * (15 - min(count, 15))


def test_each_strategy_says_what_it_leaves_of_this_distribution():
    rows = opened().table[-1].value
    p = logits_of(ids_of(), -1).double().softmax(-1).sort(descending=True).values

    def choices(p: torch.Tensor) -> str:
        return f"{math.exp(torch.special.entr(p / p.sum()).sum().item()):.1f}"

    nucleus = int((p.cumsum(0) < 0.9).sum()) + 1
    left = {"Greedy": 1, "Temperature 0.5": 65, "Temperature 1.5": 65, "Top-k 10": 10, "Top-p 0.9": nucleus}
    assert rows["tokens left here"].tolist() == [*(f"{n}" for n in left.values()), "whole branches"]
    wanted = [p[:1], p**2, p ** (2 / 3), p[:10], p[:nucleus]]
    assert rows["effective choices here"].tolist() == [*map(choices, wanted), ""]


@pytest.mark.parametrize("name, first, second", [("classic", "W", "I"), ("modern", "T", "W")])
def test_the_letters_on_top_are_those_that_the_explanation_names(name, first, second):
    found = shipped(f"shakespeare-{name}")
    with torch.inference_mode():
        p = found.model(torch.tensor([found.tokenizer.encode(KING)]))[0, -1].softmax(-1)
    top = p.topk(2)
    assert found.tokenizer.decode(top.indices.tolist()) == first + second and top.values[0] < 0.145
    assert f"{first} and {second} in the {name} one" in temperature.TEXT["texts"]


def floats(packed: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), kind)


def test_the_link_holds_every_setting_and_where_one_looks(drawn):
    settings = {
        "temperature": "1.5", "top_k": "7", "top_p": "0.9", "min_p": "0.1", "repetition_penalty": "1.3",
        "penalty_last": "1", "seed": "5", "position": "3",
    }  # fmt: skip
    page = opened(sampling_view="stages", **{f"sampling_{name}": value for name, value in settings.items()})
    rows, ids = engine_rows(page), ids_of()
    assert list(rows.index)[-1] == "repetition penalty" and rows["tokens left"]["top-k"] == 7
    assert helpers.in_address(page, "sampling_top_k") == "7"
    assert page.number_input(key="sampling_seed").value == 5
    sent, table = sent_to(page, "sampler"), drawn["sampling_stage_map"].table
    assert floats(sent["logits"], "<f4") == pytest.approx(logits_of(ids, 3).numpy(), abs=1e-5)
    assert sent["seen"] == sorted(set(ids[:4])) and floats(sent["numbers"], "<f8")[0] == uniform(5, 1)[0]
    assert sent["settings"]["top_k"] == 7 and sent["settings"]["seed"] == 5
    p = logits_of(ids, 3).softmax(-1)
    assert table["logits"] == pytest.approx(p[table["id"]].tolist(), abs=1e-6)


@pytest.fixture
def short(monkeypatch, measured_anew):
    """The texts that temperatures write are of a few characters."""
    monkeypatch.setattr(temperature, "CHARACTERS", 10)


@pytest.mark.usefixtures("short")
def test_a_reader_begins_at_the_last_place_where_there_is_something_to_draw(drawn):
    """After “KING RICHARD II:” a line break is certain: at every temperature there would be one bar."""
    text = KING.strip()
    page = opened(text=text, sampling_view="temperatures", sampling_seed="1")
    logs = log_probabilities(text)
    choices = (-(logs.exp() * logs).sum(-1)).exp().tolist()
    place = max(i for i, n in enumerate(choices) if n >= 4)
    assert choices[-1] < 1.5 and place == text.index(" ")
    assert "What follows “␣”, the last position with 4 or more effective choices" in sentences(page)
    best = logs[place].sort(descending=True).values[:8].exp().tolist()
    assert drawn["sampling_temperatures"].traces[3]["x"] == pytest.approx(best, abs=1e-5)
    assert "sampling_position" not in page.query_params, "nobody has chosen: another text, another position"
    page = opened(text=text, sampling_view="temperatures", sampling_position=str(len(text) - 1))
    assert "What follows “\\:”." in sentences(page)
    assert drawn["sampling_temperatures"].traces[0]["x"][0] > 0.99
    helpers.chosen(page, "text", KING)
    assert "What follows “\\:”." in sentences(page), "what somebody chose stays"
    # where one token has nearly everything, an uncertain position is offered
    assert "hardly matters" in sentences(page)
    helpers.clicked(page, "sampling_uncertain")
    assert "hardly matters" not in sentences(page) and "effective choices" in sentences(page)
    assert helpers.in_address(page, "sampling_position") == "16"


def test_a_thousand_draws_are_counted_by_the_engine(drawn):
    words = sentences(opened(sampling_draws="draws", sampling_temperature="0"))
    assert not helpers.lacking(words, "came up **1000 times** (1000 expected)", "distance is 0.0%")
    words = sentences(opened(sampling_draws="draws", sampling_temperature="1.5", sampling_seed="3"))
    ids, warm = ids_of(), replace(sampler.START, temperature=1.5)
    found = tally(stages(logits_of(ids, -1), warm, ids)[-1].probabilities, uniform(3, 1000).numpy())
    p, counts = found.probabilities, found.counts
    best = int(p.argmax())
    letter = shipped().tokenizer.decode([best])
    told = f"In 1,000 draws with seed 3, “{letter}” came up **{counts[best]} times** ({1000 * p[best]:.0f}"
    assert found.away > 0.01
    assert not helpers.lacking(words, told, f"distance is {found.away:.1%}")
    bars, marks = drawn["sampling_shares"].traces
    order = list(map(int, drawn["sampling_shares"].table["id"]))
    assert order[0] == best and drawn["sampling_shares"].table["draws"] == [counts[i] for i in order]
    assert bars["y"] == pytest.approx([counts[i] / 1000 for i in order])
    assert marks["y"] == pytest.approx(p[order].tolist())


def test_temperatures_write_two_hundred_characters_each_and_the_seed_changes_them(drawn):
    page = written(opened(sampling_view="temperatures"))
    logits = logits_of(ids_of(), -1).double()
    order = logits.argsort(descending=True, stable=True)[:15]
    for t, trace in zip((0.2, 0.5, 0.8, 1.0, 1.5), drawn["sampling_temperatures"].traces, strict=True):
        p = (logits / t).softmax(-1)[order]
        assert trace["x"] == pytest.approx(p[:8].tolist(), abs=1e-5)
    cold, warm = ((logits / t).softmax(-1) for t in (0.2, 1.5))
    assert f"at τ = 0.2 the most likely token, “W”, has **{cold.max().item():.0%}** (" in sentences(page)
    assert f"at τ = 1.5 it has **{warm.max().item():.0%}** (" in sentences(page)
    ends = [math.exp(-(p * p.clamp_min(1e-300).log()).sum().item()) for p in (cold, warm)]
    assert f"({ends[0]:.1f} effective choices)" in sentences(page)
    assert f"** ({ends[1]:.1f})." in sentences(page)
    begins, texts = [c.value for c in page.code[:5]], [c.value for c in page.code[5:10]]
    assert [len(t) for t in texts] == [200] * 5 and len(set(texts)) == 5
    assert begins == [text[:90].replace("\n", "⏎ ") + " …" for text in texts]
    rows = page.dataframe[0].value
    assert rows["choices"].iloc[[0, -1]].tolist() == pytest.approx(ends, abs=1e-3)
    listed = page.dataframe[1].value
    assert listed["logit"].tolist() == pytest.approx(logits[order].tolist(), abs=6e-3)
    assert listed["τ = 0.2"].tolist() == pytest.approx(cold[order].tolist(), abs=1e-4)
    other = written(page.number_input(key="sampling_seed").set_value(1).run())
    assert not other.exception and [c.value for c in other.code[5:10]] != texts


def test_a_text_is_scored_by_the_chain_rule(drawn):
    page = opened(sampling_view="likelihood", text="To be, or not")
    ids = ids_of("To be, or not")
    p = [log_probabilities("To be, or not")[i, token].exp().item() for i, token in enumerate(ids[1:])]
    product = math.prod(p)  # of 12 numbers: float64 holds it
    nats = -math.log(product) / 12
    words = sentences(page)
    assert f"**{nats:.2f} nats** per character (perplexity **{math.exp(nats):.1f}**)" in words
    assert f"a uniform guess would cost {math.log(65):.2f}" in words
    power = math.floor(math.log10(product))
    assert f"| {' · '.join(f'{x:.2g}' for x in p[:3])} · … = " in words
    mantissa, cost = (
        float(re.search(f"([0-9.]+) {after}", words)[1]) for after in (rf"· \$10\^\{{−{-power}\}}", "/ 12 = ")
    )
    assert mantissa == pytest.approx(product / 10**power, abs=0.05) and cost == pytest.approx(
        12 * nats, abs=0.006
    )
    assert f"**{math.exp(nats):.2f}** |" in words
    figure = drawn["sampling_scored"]
    assert figure.traces[0]["y"] == pytest.approx([-math.log(x) for x in p], abs=1e-4)
    ladder, chain = (page.dataframe[i].value for i in (0, 1))
    assert ladder["published (training)"].tolist() == [65.0, 11.6, 3.5, 2.5]
    ours = ladder["here (validation)"].tolist()
    assert ours[2] == pytest.approx(math.exp(1.5104), abs=1e-3) and math.isnan(ours[3])
    assert chain["sum so far"].iloc[-1] == pytest.approx(12 * nats, abs=1e-4)
    assert "nothing to score" in sentences(opened(sampling_view="likelihood", text="T"))


def test_every_step_of_the_chain_is_true_as_it_is_printed():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        tokens = int(rng.choice([1, 2, 3, 4, 40, 300]))
        logits = rng.normal(size=(tokens + 1, 65)) * rng.choice([0.3, 2.0, 6.0])
        table = chain(score(logits, rng.integers(65, size=tokens + 1).tolist())).replace("−", "-")
        first, log, loss, result = (row.split("|")[2] for row in table.splitlines()[2:])
        left, mantissa, power = re.fullmatch(r" (.+) = ([0-9.]+) · \$10\^\{(-?\d+)\}\$ ", first).groups()
        assert 1 <= float(mantissa) < 10
        if "…" not in left:
            exponent = math.fsum(math.log10(float(p)) for p in left.split(" · ")) - int(power)
            assert rounds(10**exponent, mantissa), first
        total = re.fullmatch(r" ln = (\S+) ", log)[1]
        assert rounds(math.log(float(mantissa)) + int(power) * math.log(10), total), (first, log)
        cost, count, nats = re.fullmatch(r" (\S+) / (\d+) = \*\*(\S+)\*\* nats ", loss).groups()
        assert int(count) == tokens and rounds(float(cost) / tokens, nats), loss
        power, choices = re.fullmatch(r" \$e\^\{(\S+)\}\$ = \*\*(\S+)\*\* ", result).groups()
        assert power == nats and rounds(math.exp(float(power)), choices), result


def rounds(x: float, printed: str) -> bool:
    return abs(x - float(printed)) <= 0.5 * 10 ** -len(printed.partition(".")[2]) + 1e-9 * abs(x)


def kept_by_hand(p: np.ndarray, k: int, mass: float) -> tuple[set[int], set[int]]:
    """What top-k and top-p keep of probabilities (vocab,), counted from the largest down."""
    order = [int(i) for i in np.argsort(-p, kind="stable")]
    sums = np.cumsum(p[order])
    return set(order[:k]), set(order[: int(np.searchsorted(sums, mass)) + 1])


def test_top_k_and_top_p_are_shown_where_the_model_is_surest_and_least_sure(drawn):
    page = opened(sampling_draws="two", text=KING, cut_k="5", cut_p="0.8")
    rows = log_probabilities(KING).exp().numpy()
    entropy = [-(row * np.log(row)).sum() for row in rows]
    places = int(np.argmin(entropy)), int(np.argmax(entropy))
    table, words = pd.DataFrame(drawn["sampling_two_positions"].table), sentences(page)
    for half, place in zip((table[:15], table[15:]), places, strict=True):
        by_k, by_p = kept_by_hand(rows[place], 5, 0.8)
        assert half["top_k_keeps"].tolist() == [str(i in by_k) for i in half["id"]]
        assert half["top_p_keeps"].tolist() == [str(i in by_p) for i in half["id"]]
        assert half["probability"].tolist() == pytest.approx(
            rows[place][half["id"].astype(int)].tolist(), abs=1e-5
        )
    few, many = (len(kept_by_hand(rows[place], 5, 0.8)[1]) for place in places)
    assert few < many and f"top-p 0.8 keeps **{few}** token" in words and f"**{many}** after" in words
    colours = {trace["name"] for trace in drawn["sampling_two_positions"].traces}
    assert "both keep" in colours and "only top-k keeps" in colours


def pairs_by_hand(tokens: list[int], read: np.ndarray, vocab: int) -> float:
    """-ln p of tokens in nats, each after the one before: (times seen + 1) / (times the first was + V)."""
    total = 0.0
    for a, b in itertools.pairwise(tokens):
        seen = int(((read[:-1] == a) & (read[1:] == b)).sum())
        total -= math.log((seen + 1) / (int((read[:-1] == a).sum()) + vocab))
    return total


def test_a_text_has_another_perplexity_under_another_tokenizer_and_bits_per_character(drawn):
    text = "To be, or not to be"
    query = {"sampling_view": "likelihood", "scored_part": "tokenizers", "scored_text": "this", "text": text}
    page = opened(**query)
    name = "shakespeare" if corpora.shakespeare_path() else "python"
    rows = pd.DataFrame(drawn["sampling_two_tokenizers"].table)
    for at, cut in enumerate(("char", "bpe:1024")):
        corpus = corpora.load(name, tokenizer=cut)
        ids = [*corpus.tokenizer.encode("\n"), *corpus.tokenizer.encode(text)]
        nats = pairs_by_hand(ids, corpus.train.numpy(), corpus.vocab_size)
        assert rows["perplexity per token"][at] == pytest.approx(math.exp(nats / (len(ids) - 1)), rel=1e-5)
        assert rows["bits per character"][at] == pytest.approx(nats / math.log(2) / len(text), rel=1e-5)
    read = log_probabilities("\n" + text)
    nats = -sum(read[i, token].item() for i, token in enumerate(ids_of(text)))
    assert rows["bits per character"][2] == pytest.approx(nats / math.log(2) / len(text), rel=1e-4)
    assert rows["tokens scored"].tolist() == [len(text), len(ids) - 1, len(text)]
    fewer = rows["bits per character"][1] < rows["bits per character"][0]
    assert f"need {'fewer' if fewer else 'more'} bits per character" in sentences(page)


def test_pieces_have_the_higher_perplexity_of_a_held_out_passage_and_fewer_bits(drawn, shakespeare):
    words = sentences(opened(sampling_view="likelihood", scored_part="tokenizers"))
    letters, pieces, model = pd.DataFrame(drawn["sampling_two_tokenizers"].table).to_dict("records")
    passage = shakespeare.text[len(shakespeare.train) :].split("\n\n", 1)[1][:127]
    read = log_probabilities("\n" + passage)
    nats = -sum(read[i, token].item() for i, token in enumerate(ids_of(passage)))
    assert model["perplexity per token"] == pytest.approx(math.exp(nats / 127), rel=1e-4)
    assert pieces["perplexity per token"] > 2 * letters["perplexity per token"]
    fewer = (pieces["bits per character"], letters["bits per character"])
    assert "need fewer bits per character: **{:.2f}** against {:.2f}.".format(*fewer) in words


def test_two_tokenizers_leave_out_what_the_model_does_not_know(drawn, monkeypatch):
    """Without Tiny Shakespeare the passage is the Python manual's, and its signs are not in the alphabet."""
    manual = corpora.load("python")
    monkeypatch.setattr(
        two_tokenizers, "_corpus", lambda cut: ("python", corpora.load("python", tokenizer=cut))
    )
    assert shipped().tokenizer.unknown(two_tokenizers._passage(manual))
    opened(sampling_view="likelihood", scored_part="tokenizers")
    assert min(map(int, drawn["sampling_two_tokenizers"].table["tokens scored"])) > 10


@pytest.mark.parametrize(
    ("view", "scale", "query"),
    [("stages", 1e19, {}), ("likelihood", 1e30, {}), ("stages", 1e30, {"sampling_draws": "two"})],
)
def test_a_model_whose_numbers_have_run_away_is_a_sentence(manager, view, scale, query):
    """A diverged run's last snapshot: its weights are numbers, what the model makes of them is none."""
    memo.clear()
    manager.scale = lambda step: scale
    run = f"run-{begun(manager, status='failed')}"
    page = opened(model=run, sampling_view=view, **query)
    (warning,) = page.warning
    assert warning.value.startswith(("No logit is a finite number", "The logits are not finite"))
    assert not page.error
    told = sentences(helpers.opened("output/generation", model=run, measure="true"))
    assert "has diverged" in told
