"""The Positions page: every view with every option, each number against the engine, which tests/engine checks."""

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.progress import finish
from engine.model import build
from engine.recording import Recording, record
from pages.input.positions import arrows as rope_arrows
from pages.input.positions import clock, measured_losses, why
from pages.input.positions import stretched as stretched_view
from pages.input.positions.arrows import SHIFTS
from pages.input.positions.schemes import TITLES
from pages.input.positions.t5 import BUCKETS, FARTHEST
from runs.state import RunSpec
from studies.costs.ledger import component_parameters
from studies.costs.presets import PRESETS
from studies.experiments import extrapolation as scheme_seeds
from studies.experiments.stretched_rope import stretched_runs
from studies.positions import permutation, sinusoids
from studies.positions.alibi import alibi_effect, distances_of_heads, slopes
from studies.positions.extrapolation import (
    Curve,
    above_tail,
    above_trained,
    costs,
    curve,
    position_losses,
    reach_of,
    window_starts,
)
from studies.positions.permutation import Plan, compare, in_order_and_out, new_order, word_ids, word_order
from studies.positions.position_scores import position_scores
from studies.positions.position_table import alike, learned_table, measured, sinusoidal
from studies.positions.rope import (
    before_rotation,
    decay,
    frequencies,
    layout_pattern,
    layouts,
    mean_score,
    score_at,
    turns_within,
    wrong_layout_loss,
)
from studies.positions.schemes import SCHEMES, similarity
from studies.positions.stretched_rope import Stretching, losses_with_each
from studies.positions.t5_buckets import bucket_of, buckets_of, learned_bias, t5_bias, t5_weights
from tests.pages.helpers import FOLDS, lacking, opened, plain, unescaped
from tests.pages.inside.models import MODERN, of_letters, only_this, shipped
from tests.pages.inside.models import SMALL as CLASSIC
from tests.pages.stage import StageManager, view_of
from ui import background_jobs, memo, models, session
from ui.fit_text import FIRST_TEXT, most_tokens, read
from ui.models import REAL_MODEL
from ui.text.numbers import minus

pytestmark = pytest.mark.usefixtures("manager")


def positions(view: str, **query: str) -> AppTest:
    """The page, by a link to that view, its folds open."""
    return opened("input/positions", **{"positions_view": view} | FOLDS | query)


def metrics(page: AppTest) -> list[str]:
    return [str(metric.value) for metric in page.metric]


def ids_of(name: str, text: str = FIRST_TEXT) -> tuple[int, ...]:
    """What a shipped model reads of a text."""
    found = shipped(name)
    return read(text, found.tokenizer, most_tokens(found.config))[0]


@cache
def recorded(name: str) -> Recording:
    return record(shipped(name).model, ids_of(name))


def test_words_in_two_orders(drawn):
    words, order = ["dog", "bites", "man", "here"], np.array([1, 2, 3, 0])
    page = positions(
        "why", why_sentence=" ".join(words), why_order="rotate", why_scheme="rope", why_causal="true"
    )
    found, orders = compare(word_ids(words), order, Plan("rope", True)), drawn["why_orders"]
    matched = found.after[[3, 0, 1, 2]]
    titles = [a["text"] for a in orders.layout["annotations"]]
    assert titles == ["<b>dog bites man here</b>", "<b>bites man here dog</b>"]
    assert orders.traces[0]["z"] == pytest.approx(found.before, abs=1e-6)
    assert orders.traces[1]["z"] == pytest.approx(found.after, abs=1e-6)
    apart, largest = matched - found.before, np.abs(matched - found.before).max(1)
    for name, values in {"before": found.before, "after": matched, "difference": apart}.items():
        assert drawn[f"why_{name}"].traces[0]["z"] == pytest.approx(values, abs=1e-6)
    assert orders.table["largest_difference"] == pytest.approx(largest, abs=1e-6)
    assert orders.layout["yaxis2"]["ticktext"] == [
        f"{words[i]}<br><i>changed: {largest[i]:.2f}</i>" for i in order
    ]
    assert plain(metrics(page)[0]) == pytest.approx(largest.max(), abs=5e-4)
    page.get_by_key("why_rows").set_value("as given").run()
    assert drawn["why_after"].traces[0]["z"] == pytest.approx(found.after, abs=1e-6)
    assert drawn["why_after"].layout["yaxis"]["ticktext"] == ["bites", "man", "here", "dog"]


def test_all_schemes_with_and_without_the_mask(drawn):
    page = positions("why", why_sentence="the cat that the dog chased", why_order="shuffle", why_seed="5")
    ids, order = word_ids(["the", "cat", "that", "the", "dog", "chased"]), new_order(6, "shuffle", 5)
    masks, figure = {"no mask": False, "causal mask": True}, drawn["why_schemes"]
    largest = {
        (s, m): compare(ids, order, Plan(s, m)).largest for s in permutation.SCHEMES for m in masks.values()
    }
    for trace in figure.traces:
        expected = [largest[s, masks[trace["name"]]] for s in permutation.SCHEMES]
        assert trace["text"] == list(TITLES.values()) and trace["customdata"] == pytest.approx(expected)
    columns = (figure.table[name] for name in ("scheme", "mask", "largest_difference"))
    rows = {(scheme, masks[mask]): value for scheme, mask, value in zip(*columns, strict=True)}
    assert rows == pytest.approx({(TITLES[s], m): v for (s, m), v in largest.items()})
    for mask, causal in masks.items():
        page.get_by_key("why_causal").set_value(causal).run()
        for scheme in permutation.SCHEMES:
            page.get_by_key("why_scheme").set_value(scheme).run()
            assert not page.exception and not page.error
            assert plain(metrics(page)[0]) == pytest.approx(largest[scheme, causal], rel=0.05)
            told = map(plain, re.findall(r"\*\*([\d.]+(?: × [\d⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)\*\*", unescaped(page)))
            assert any(x == pytest.approx(largest[scheme, causal], rel=0.06, abs=5e-4) for x in told)
            ringed = [
                (each, trace["name"])
                for trace in drawn["why_schemes"].traces
                for each, width in zip(permutation.SCHEMES, trace["marker"]["line"]["width"], strict=True)
                if width
            ]
            assert ringed == [(scheme, mask)]


def test_a_trained_model_in_and_out_of_order(drawn):
    """The table, the bars and the sentence are the engine's own measurement of each setting, told apart."""
    page = positions("why", why_on="trained", why_order="rotate")
    model, ids = shipped(CLASSIC).model, ids_of(CLASSIC)
    order = word_order([shipped(CLASSIC).tokenizer.decode([i]) for i in ids], "rotate")
    found = {(s.position, s.mask): s for s in in_order_and_out(model, ids, order)}
    said = unescaped(page)
    rows = re.findall(r"\| (on|off) \| (on|off) \| ([^|]+) \| (\S+) \| (\S+) \|", said)
    assert {(p == "on", m == "on") for p, m, *_ in rows} == set(found)
    for position, mask, moved, *losses in rows:
        one = found[position == "on", mask == "on"]
        if one.relative > 1e-4:  # else it is rounding, another in every run
            assert plain(moved) == pytest.approx(one.relative, abs=6e-4)
        wanted = ["none"] * 2 if mask == "off" else [f"{loss:.3f}" for loss in (one.loss_in, one.loss_out)]
        assert losses == wanted
    names = {"positions, mask": (1, 1), "no positions, mask": (0, 1), "positions, no mask": (1, 0)}
    for name, key in names.items():
        page.get_by_key("why_setting").set_value(name).run()
        assert drawn["why_moved"].traces[0]["y"] == pytest.approx(found[key].moved, abs=1e-3)
    both, leak = found[True, True], found[False, True]
    assert (
        f"The mask alone makes it {leak.relative:.3f}, mask and positions (Learned) {both.relative:.3f}. The loss"
        f" on this text is {both.loss_in:.2f} nats per token in order and {both.loss_out:.2f} out of order; without"
        f" positions it is {leak.loss_in:.2f} even in order." in said
    )
    page.get_by_key("why_unit").set_value("tokens").run()
    assert not page.exception and "In the new order it reads" in unescaped(page)


def test_words_that_look_like_markup_are_drawn_as_they_are():
    figure = why.word_rows(np.zeros((2, 3)), ["<b>", "a&b"], 1.0, "x")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "a&amp;b"]


def test_the_shipped_table_beside_the_sinusoidal_one(drawn):
    page = positions("learned")
    said = unescaped(page)
    for picture in ("path", "table"):
        page.get_by_key("learned_picture").set_value(picture).run()
        said += unescaped(page)
    learned, waves = measured(learned_table(shipped(CLASSIC).model)), measured(sinusoidal(128, 128))
    curves = drawn["learned_distance"].table
    for name, found in {"learned": learned, "sinusoidal": waves}.items():
        assert drawn[f"learned_table_{name}"].traces[0]["z"] == pytest.approx(found.table, abs=1e-4)
        assert drawn[f"learned_alike_{name}"].traces[0]["z"] == pytest.approx(found.alike.cosines, abs=1e-4)
        path = drawn[f"learned_path_{name}"]
        assert [path.traces[0][axis] for axis in "xy"] == pytest.approx(found.path.T, abs=1e-4)
        assert f"({found.variance_shares[1]:.1%})" in path.layout["yaxis"]["title"]["text"]
        assert curves[f"{name}_mean"] == pytest.approx(found.alike.by_distance[1:], abs=1e-4)
    assert [float(m) for m in metrics(page)] == pytest.approx(
        [learned.alike.correlation, waves.alike.correlation], abs=6e-4
    )
    sd = [float(np.diagonal(learned.alike.cosines, k).std()) for k in range(1, 128)]
    assert curves["learned_sd"] == pytest.approx(sd, abs=1e-4)
    assert drawn["learned_norms"].table["learned"] == pytest.approx(learned.alike.norms, abs=1e-4)
    near, shares = learned.alike.by_distance, (learned.shown_variance, waves.shown_variance)
    assert not lacking(
        said,
        "128 × 128 = **16,384** parameters",
        "has learned that nearby positions are similar",
        f"a mean cosine of **{near[1]:.2f}**, positions 64 apart −{-near[64]:.2f}",
        f"Position 0 has {learned.first_to_median:.1f} times",
        f"keep **{shares[0]:.0%}** of the variance of the learned table, and {shares[1]:.0%}",
    )


def test_an_untrained_table_has_not_learned_what_near_is(manager):
    page = positions("learned", model="untrained-classic")
    assert abs(float(metrics(page)[0])) < 0.1
    near = alike(learned_table(models._untrained("classic").model)).by_distance
    half = len(near) // 2
    told = rf"has not learned distance.* mean cosine of \*\*(\S+)\*\*, positions {half} apart (\S+)\."
    found = re.search(told, unescaped(page))
    assert [plain(x) for x in found.groups()] == pytest.approx([near[1], near[half]], abs=6e-3)


def test_the_course_over_a_run(manager, drawn):
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32, "vocab_size": 30}
    spec = RunSpec(ModelConfig(**sizes, position="learned"), TrainConfig(steps=40), "python", name="mine")
    manager.views["r"] = view_of(spec, "r", "done", snapshots=(0, 20, 40))
    page = positions("learned", model="run-r", step="20", learned_picture="table")
    assert "32 × 16" in unescaped(page)
    found = drawn["learned_course"]
    links = [alike(learned_table(manager.model("r", step).model)).correlation for step in (0, 20, 40)]
    assert found.table["step"] == [0, 20, 40]
    assert found.table["correlation"] == pytest.approx(links, abs=1e-4)
    level, shown = found.layout["shapes"]
    assert level["y0"] == pytest.approx(float(metrics(page)[1]), abs=6e-4) and shown["x0"] == 20
    assert float(metrics(page)[0]) == pytest.approx(links[1], abs=6e-4)


def test_the_table_and_its_waves(drawn):
    sizes = {"sinusoid_length": "20", "sinusoid_width": "12", "sinusoid_base": "100"}
    said = unescaped(positions("sinusoidal", sinusoid_part="table", **sizes))
    found, table = sinusoids.waves(20, 12, 100.0), sinusoids.table64(20, 12, 100.0)
    last = found.wavelength[-1]
    assert drawn["sinusoid_table"].traces[0]["z"] == pytest.approx(table, abs=1e-5)
    assert drawn["sinusoid_waves"].traces[0]["y"] == pytest.approx(found.wavelength.tolist())
    assert drawn["sinusoid_waves"].traces[1]["y"] == [20, 20]
    assert not lacking(
        said,
        f"$2\\pi$ = 6.283 positions to $2\\pi \\cdot 100^{{(12-2)/12}}$ = {last:,.1f}",
        "each is 2.154 times the one before",  # 100 ** (1/6)
        f"{found.longer} of 6 are longer than the table",
        f"shortest wavelength **6.28** positions) distinguish neighbours, slow ones (longest **{last:,.1f}**)",
    )


def test_the_clock_has_the_hands_of_the_formula(monkeypatch):
    sent = {}
    monkeypatch.setattr(clock, "mounted", lambda *_, **__: lambda **rest: sent.update(rest["data"]))
    page = positions(
        "sinusoidal", sinusoid_part="clock", sinusoid_width="8", sinusoid_length="20", clock_position="7"
    )
    assert sent["thetas"] == pytest.approx([1, 0.1, 0.01, 0.001])
    assert [sent[name] for name in ("pairs", "of", "last", "position")] == [[0, 1, 2, 3], 4, 19, 7]
    told = "the fastest goes round in 6.28 positions, the slowest in 6,283.2"
    assert not lacking(unescaped(page), "**4 hands** at once", told)
    one = positions("sinusoidal", sinusoid_part="clock", sinusoid_width="2")
    assert "With **one hand** positions soon repeat: it goes round in 6.28" in unescaped(one)


def test_likeness_by_distance(drawn):
    sizes = {"sinusoid_length": "200", "sinusoid_width": "6", "sinusoid_base": "10"}
    page = positions("sinusoidal", sinusoid_part="similarity", **sizes)
    found = sinusoids.similarity(200, 6, 10.0)
    c, again = found.cosine_by_distance, found.most_alike
    assert drawn["sinusoid_likeness"].traces[0]["z"] == pytest.approx(found.cosines[::2, ::2], abs=1e-4)
    assert drawn["sinusoid_by_distance"].traces[0]["y"] == pytest.approx(c, abs=1e-5)
    assert -1.1 < drawn["sinusoid_by_distance"].layout["yaxis"]["range"][0] < c.min(), "no cosine is below -1"
    said = unescaped(page)
    assert f"{c[1]:.3f} at distance 1, and **{c[again]:.3f}** at distance {again}" in said and again > 1
    assert "here 1.732, so the cosine is the dot product divided by $d/2$ = 3" in said
    assert [plain(m) for m in metrics(page)] == pytest.approx([found.deviation, found.deviation64], rel=0.05)
    falling = unescaped(positions("sinusoidal", sinusoid_part="similarity"))
    c = sinusoids.similarity(64, 64).cosine_by_distance
    assert f"cosine **{c[1]:.3f}** at distance 1, {c[10]:.3f} at 10, {c[63]:.3f} at 63" in falling


def test_the_rotation_opens_with_the_worked_example(drawn):
    page = positions("sinusoidal", sinusoid_part="rotation")
    numbers = [float(n) for n in re.findall(r"-?\d\.\d{3}", page.latex[0].value)]
    # turn(0.2), then (sin, cos) of 0.5, then of 0.7: theta is 0.1 for pair 8 of 32
    assert numbers == [0.980, 0.199, -0.199, 0.980, 0.479, 0.878, 0.644, 0.765]
    assert not lacking(
        unescaped(page),
        "$\\theta$ = 0.1 radians",
        "by **0.2** radians wherever it starts, here from (0.479, 0.878) at 5 to (0.644, 0.765) at 7",
    )
    hands = drawn["sinusoid_turned"].traces[1:]
    turned = [pytest.approx((math.sin(x), math.cos(x))) for x in (0.5, 0.7)]
    assert [(hand["x"][1], hand["y"][1]) for hand in hands] == turned
    blocks, values = np.array(drawn["sinusoid_blocks"].traces[0]["z"]), sinusoids.table64(70, 64)
    assert blocks[16:18, 16:18] == pytest.approx(np.array([[0.9801, 0.1987], [-0.1987, 0.9801]]), abs=1e-4)
    assert blocks @ values[3] == pytest.approx(values[5], abs=1e-5)
    (frame,) = drawn["sinusoid_blocks"].layout["shapes"]  # around rows and columns 16 and 17, no others
    assert [frame[end] for end in ("x0", "x1", "y0", "y1")] == [15.5, 17.5, 15.5, 17.5]
    assert 1e-8 < plain(metrics(page)[0]) < 1e-4 and plain(metrics(page)[1]) < 1e-12
    page.get_by_key("sinusoid_step").set_value(-60).run()
    assert "p = 60 is used instead of 5" in unescaped(page)
    page.get_by_key("sinusoid_pair").set_value(31).run()
    page.get_by_key("sinusoid_width").set_value(4).run()  # there is no pair 31 any more
    assert not page.exception and "Pair 1 rotates" in unescaped(page)


HEAD = {"rope_layer": "1", "rope_head": "2"}


def rope(topic: str, model: str = MODERN, **query: str):
    return positions("rope", rope_topic=topic, model=model, **query)


def vectors() -> tuple[np.ndarray, np.ndarray]:
    """q and k of that head, as they meet the rotation."""
    return before_rotation(shipped(MODERN).model, recorded(MODERN), 1, 2)


@pytest.fixture
def arrows(monkeypatch):
    """What the player of the arrows is sent."""
    sent = {}
    monkeypatch.setattr(rope_arrows, "mounted", lambda name: lambda **rest: sent.update(rest["data"]))
    return sent


def test_arrows_are_the_model_s_and_a_shift_leaves_the_score(arrows):
    page = rope("arrows", **HEAD, rope_query="9", rope_key="5")
    assert page.query_params["rope_at"] == "9-5-0"
    (q, k), base = vectors(), shipped(MODERN).config.rope_theta
    assert arrows["q"] == pytest.approx(q[9], abs=1e-5) and arrows["k"] == pytest.approx(k[5], abs=1e-5)
    assert arrows["theta"] == pytest.approx(frequencies(len(q[0]), base).tolist())
    assert (arrows["at"], arrows["most"]) == ([9, 5, 0], shipped(MODERN).config.context - 1)
    score, said = score_at(q[9], k[5], 9, 5, base), unescaped(page)
    told = r"For query 9 and key 5 it is \*\*(\S+)\*\* before.*Pair (\d+) contributes most, (\S+): its arrows are (\w+) than"
    found = re.search(told, said)
    assert plain(found[1]) == pytest.approx(score.total, abs=1e-3) and int(found[2]) == score.pair
    assert plain(found[3]) == pytest.approx(score.term, abs=1e-3)
    assert found[4] == ("less" if score.near else "more") and "random" not in said
    for shift in SHIFTS:
        page.get_by_key("rope_shift").set_value(shift).run()
        assert not page.exception and not page.error
        table = page.table[0].value
        assert [*table.index] == ["bfloat16", "float32", "float64"]
        assert [*table.columns[:2]] == ["q·k at (9, 5)", f"q·k at ({9 + shift:,}, {5 + shift:,})"]
        before, after, apart = (np.array([plain(x) for x in table[name]]) for name in table.columns[:3])
        assert before[2] == pytest.approx(score.total, abs=1e-5) == after[2]
        assert apart[2] < 1e-9 and np.abs(before - after) == pytest.approx(apart, rel=0.06, abs=2e-6)


def test_of_a_head_that_is_partly_turned_the_rest_counts_too(monkeypatch, arrows):
    half = build(
        ModelConfig(11, d_model=32, n_layers=2, n_heads=4, context=64, position="rope", rope_fraction=0.5), 0
    ).eval()
    only_this(monkeypatch, of_letters(half.requires_grad_(False)), "half-turned")
    page = positions("rope", rope_topic="arrows", rope_query="9", rope_key="5", text="abcdefghijabc")
    seen = record(half, [*range(10), 0, 1, 2])
    q, k = (seen[f"blocks.0.{name}"][0].astype(float) for name in ("q_rot", "k_rot"))
    told = re.search(r"key 5 it is \*\*(\S+)\*\*", unescaped(page))
    assert plain(told[1]) == pytest.approx(q[9] @ k[5], abs=1e-3)
    assert arrows["theta"] == pytest.approx([1, 0.01]), "4 of 8 numbers are turned, two by two"


@pytest.mark.parametrize(("said", "kept"), [("20-3-7", "20-3-7"), ("99999-3-700", "127-3-15")])
def test_the_link_says_where_the_arrows_stand(said, kept):
    page = rope("arrows", rope_query="9", rope_key="5", rope_at=said)
    query, key, _ = kept.split("-")
    assert page.query_params["rope_at"] == kept and f"q·k at ({query}, {key})" in page.table[0].value.columns


def test_the_score_by_distance_is_the_mean_over_all_pairs_of_tokens(drawn):
    page = rope("distance", **HEAD, rope_base="100", rope_reach="256")
    own = shipped(MODERN).config.rope_theta
    curves = drawn["rope_curve"].traces
    assert [c["name"] for c in curves] == ["base 100", f"base {own:,.0f} (the model's)"]
    for line, base in zip(curves, (100.0, own), strict=True):
        assert line["y"] == pytest.approx(mean_score(*vectors(), base, np.arange(257)), abs=1e-5)
        assert line["x"] == list(range(257))
    assert drawn["rope_curve"].layout["shapes"][0]["x0"] == shipped(MODERN).config.context
    y = np.array(curves[0]["y"])
    assert not lacking(
        unescaped(page).replace("−", "-"),
        f"at distance 0 the score is **{y[0]:.3f}**, at 256 **{y[-1]:.3f}**",
        f"lowest {y.min():.3f} at {y.argmin()}, highest {y.max():.3f} at {y.argmax()}",
    )


def test_ones_fall_below_half_and_come_back(drawn):
    ones = {"rope_vectors": "q = k = ones", "rope_width": "64"}
    page = rope("distance", rope_base="10,000", rope_reach="4,096", **ones)
    score = mean_score(np.ones((1, 64)), np.ones((1, 64)), 10_000.0, np.arange(4097))
    half = decay(np.arange(4097), score).below_half
    assert not lacking(
        unescaped(page),
        "over 32 pairs, divided by √64. At distance 0 it is √64 = 8.000",
        f"first falls below half at distance **{half:,}**, but oscillates",
    )
    curve = drawn["rope_curve"].traces[0]
    assert curve["y"][30] == pytest.approx(score[30], abs=1e-5) and curve["x"][-1] == 4096
    page.get_by_key("rope_base").set_value(1_000_000)
    page.get_by_key("rope_reach").set_value(64).run()
    stays = "stays above half" in unescaped(page) or "Up to 64 it stays there" in unescaped(page)
    assert stays and not page.error


@pytest.mark.parametrize(
    ("sizes", "width", "base", "context"),
    [("the model in the bar", 32, None, 128), ("Llama 3 8B", 128, 5e5, 8_192), ("your own", 16, 200, 64)],
)
def test_turns_count_the_pairs_that_never_complete_one(drawn, sizes, width, base, context):
    own = {"rope_turn_width": f"{width}", "rope_turn_base": f"{base}", "rope_turn_context": f"{context}"}
    page = rope("turns", rope_sizes=sizes, **(own if sizes == "your own" else {}))
    base = base or shipped(MODERN).config.rope_theta
    found, said = turns_within(width, base, context), unescaped(page)
    count = found.count.tolist()
    assert not lacking(
        said,
        f"**{found.never} of {width // 2} pairs never complete a turn** within {context:,} positions",
        f"The fastest makes {count[0]:,.1f} turns",
        f"the slowest needs {found.positions[-1]:,.0f}",
    )
    assert drawn["rope_turns"].table["positions_per_turn"] == pytest.approx(found.positions.tolist())
    bars = {trace["name"]: trace["y"] for trace in drawn["rope_turns"].traces}
    assert bars["complete a turn"] == pytest.approx([c for c in count if c >= 1])
    assert bars["never complete one"] == pytest.approx([c for c in count if c < 1])
    assert ("Published sizes" in said) == (sizes == "Llama 3 8B")


def test_the_layouts_are_the_same_and_the_mix_up_costs(drawn):
    page = rope("layouts", **HEAD)
    (q, k), model = vectors(), shipped(MODERN).model
    found = layouts(q, k, model.config.rope_theta)
    table = page.table[0].value
    for row, name in zip(table.to_numpy(), ("half", "permuted", "wrong", "crossed"), strict=True):
        largest = np.abs(getattr(found, name) - found.half).max()
        for cell, value in zip(row[:2], (largest, found.moved[name]), strict=True):
            assert plain(cell) == pytest.approx(value, abs=6e-3 if value > 1e-3 else 1e-10)
    changes = [plain(x) for x in table["largest change of a score"]]
    assert changes[0] == 0 and changes[1] < 1e-12 and changes[2] > 1 and changes[3] > 1
    assert drawn["rope_layout"].layout["xaxis"]["range"] == pytest.approx([-0.6, 7.6])  # around 0 to 7
    own = recorded(MODERN)["blocks.1.pattern"][2]
    assert drawn["rope_pattern_half"].traces[0]["z"] == pytest.approx(own, abs=1e-4)
    wrong = drawn["rope_pattern_wrong"].traces[0]["z"]
    assert wrong == pytest.approx(layout_pattern(found, "wrong", recorded(MODERN).seen()), abs=1e-5)
    loss = wrong_layout_loss(model, ids_of(MODERN))
    assert f"loss on this text goes from **{loss.right:.3f}** to **{loss.wrong:.3f}** nats" in unescaped(page)
    assert f"changes scores by up to **{changes[2]:.2f}**" in unescaped(page)


def test_the_added_score_wanders_and_the_turned_one_stays(drawn):
    page = positions("rope", rope_topic="added", against_head="1", against_distance="2")
    found = {}
    for name in ("sinusoidal", "rope"):
        model, tokenizer = shipped(f"positions/{name}").model, shipped(f"positions/{name}").tokenizer
        found[name] = position_scores(model, *tokenizer.encode("eh"), 1, 64).apart(2)
        line = drawn[f"against_{name}"].traces[0]
        assert line["x"] == list(range(2, 64))
        assert line["y"] == pytest.approx(found[name].scores, abs=1e-4)
    added, turned = found["sinusoidal"], found["rope"]
    told = r"“e” gives “h” 2 positions back the score \*\*(\S+)\*\* everywhere\. .* from \*\*(\S+)\*\* to \*\*(\S+)\*\* with"
    numbers = [plain(x) for x in re.search(told, unescaped(page)).groups()]
    assert numbers == pytest.approx([turned.mean, added.lowest, added.highest], abs=6e-3)
    assert turned.spread < 1e-5 and added.spread > 1
    ranges = {tuple(drawn[f"against_{name}"].layout["yaxis"]["range"]) for name in ("sinusoidal", "rope")}
    assert len(ranges) == 1


def t5(topic: str, model: str = CLASSIC, **query: str):
    return positions("biases", bias_scheme="t5", t5_topic=topic, model=model, **query)


def test_buckets_follow_the_rule(drawn):
    page = t5("buckets")
    assert [*page.dataframe[0].value["key − query"]][15:17] == ["−15", "−16 to −18"]
    table = drawn["t5_steps"].table
    assert table["offset"] == list(range(-160, 1))
    assert table["bucket"] == bucket_of(np.arange(-160, 1), False, 32, 128).tolist()
    colours = [sorted({y for y in trace["y"] if y is not None}) for trace in drawn["t5_steps"].traces]
    assert colours[:3] == [[*range(16)], [*range(16, 31)], [31]]
    assert not lacking(
        unescaped(page),
        f"everything beyond **{buckets_of(False, 32, 128).open_from}**",
        "0 to 15 have a bucket each, the next 16 buckets",
    )
    page.get_by_key("t5_mask").set_value("both ways").run()
    told = "0 to 7 have a bucket each on either side, the next 8 buckets"
    assert not lacking(unescaped(page), "**31 of 32** buckets are ever used: bucket 16", told)
    for i, buckets in enumerate(BUCKETS):
        page.get_by_key("t5_buckets").set_value(buckets)
        for far in (*FARTHEST[i : i + 2], FARTHEST[0]):
            page.get_by_key("t5_far").set_value(far).run()
            assert not page.exception and not page.error, (buckets, far)
    assert "leaves no buckets for longer distances: 64 is used instead" in unescaped(page)


def test_the_small_model_that_was_trained_with_t5_stands_in(drawn):
    said = unescaped(t5("learned", t5_head="3"))
    weight = t5_weights(shipped("positions/t5").model)  # (bucket, head)
    bias = t5_bias(weight, np.arange(-128, 1), False)  # (head, key - query)
    lines = drawn["t5_lines"].traces
    assert [line["x"][0] for line in lines] == [-128] * 4
    assert [line["y"] for line in lines] == [pytest.approx(row, abs=1e-5) for row in bias]
    assert drawn["t5_heads"].traces[0]["z"] == pytest.approx(bias, abs=1e-5)
    matrix = drawn["t5_matrix"].traces[0]["z"]
    assert matrix[63][:64] == pytest.approx(bias[3, -64:], abs=1e-5) and matrix[0][1] is None
    assert "Shown instead: a small model trained with T5's bias" in said
    found = learned_bias(weight, True, 64)
    told = re.search(
        r"Between distance 0 and 63, head (\d) varies .* spans \*\*(\S+)\*\*, .* about (\S+) between", said
    )
    assert int(told[1]) == found.loudest
    assert float(told[2]) == pytest.approx(found.spread[found.loudest], abs=6e-3)
    assert plain(told[3]) == pytest.approx(found.factor, rel=0.06)
    heads = re.findall(r"head (\d): distance (\d+), (\S\d\.\d{3})", said)
    assert [(int(head), int(far)) for head, far, _ in heads[:4]] == [(h, found.favours[h]) for h in range(4)]
    slopes_said = [plain(slope.replace("+", "")) for *_, slope in heads[:4]]
    assert slopes_said == pytest.approx(list(found.alibi_slope)[:4], abs=6e-4)
    told = re.search(
        r"The (\d+) buckets from distance (\d+) upwards .* average (\S+), whereas distance 63 has (\S+)\. So",
        said,
    )
    assert (int(told[1]), int(told[2])) == (found.unmet.buckets, found.unmet.distance)
    means = [found.unmet.mean, found.unmet.met_mean]
    assert [plain(told[3]), plain(told[4])] == pytest.approx(means, abs=6e-4)


def alibi(topic: str, model: str = CLASSIC, **query: str):
    return positions("biases", alibi_topic=topic, model=model, **query)


def test_eight_heads_have_the_paper_s_slopes(drawn):
    page, found = alibi("slopes", alibi_heads="8"), slopes(8)
    rows = page.dataframe[0].value
    assert [*rows["slope"]] == [f"1/{2**i}" for i in range(1, 9)]
    assert [*rows["1/e at distance"]] == [f"{distance:,.1f}" for distance in found.to_a_third]
    assert [*rows["1 percent at distance"]] == [f"{distance:,.1f}" for distance in found.to_a_percent]
    assert [*rows["decimal"]] == [f"{slope:.6g}" for slope in found.slope]
    lines, reach = drawn["alibi_decay"].traces, {t["name"]: t["y"] for t in drawn["alibi_reach"].traces}
    assert [t["y"][10] for t in lines] == pytest.approx(np.exp(-10 * found.slope).tolist(), abs=1e-6)
    assert lines[0]["x"][-1] == shipped(CLASSIC).config.context - 1
    assert reach["falls to 1/e"] == pytest.approx(found.to_a_third.tolist())
    assert reach["falls to 1 percent"] == pytest.approx(found.to_a_percent.tolist())
    assert drawn["alibi_reach"].layout["shapes"][0]["y0"] == 128
    assert drawn["alibi_decay"].layout["shapes"][-1]["x0"] == 10
    assert not lacking(
        unescaped(page),
        f"10 tokens back, the steepest of 8 heads keeps **{math.exp(-5):.2%}** of a weight",
        f"the flattest **{math.exp(-10 / 256):.2%}**",
        "Slopes run from **0.5** to **0.003906**",
        f"**{found.within(128)} of 8** heads fall to",
        f"at its far end the flattest head keeps {found.farthest(128):.1%}",
    )
    page.get_by_key("alibi_context").set_value(32).run()  # 1/4 falls to e^(-4.5) at 18, 1/8 at 37
    assert "**2 of 8** heads fall to" in unescaped(page)
    page.get_by_key("alibi_heads").set_value(12).run()
    assert [*page.dataframe[0].value["slope"]][8:] == ["2^(−0.5)", "2^(−1.5)", "2^(−2.5)", "2^(−3.5)"]
    assert "12 is not a power of two. The paper's rule for 8 heads" in unescaped(page)


def test_the_matrix_with_every_option(drawn):
    page = alibi("matrix", alibi_heads="8", alibi_matrix_head="7")
    assert [*page.table[0].value.iloc[1]] == ["−0.003906", "0", "−∞"]
    bias, penalty = drawn["alibi_matrix"].traces[0]["z"], 31 / 256
    assert bias[31][:32] == pytest.approx([-(31 - j) / 256 for j in range(32)]) and bias[3][4] is None
    assert not lacking(
        unescaped(page),
        "**Head 7 of 8**: slope $m$ = 0.00390625",
        f"score lowered by **{penalty:.4g}**, which multiplies its weight, before normalisation, by",
        f"by e^(−{penalty:.4g}) = {math.exp(-penalty):.2g}",
    )
    page.get_by_key("alibi_heads").set_value(4).run()
    assert "**Head 3 of 4**" in unescaped(page)
    page.get_by_key("alibi_mask").set_value("both ways").run()
    assert "−∞" not in page.table[0].value.to_string()
    assert drawn["alibi_matrix"].traces[0]["z"][0][5] == pytest.approx(-5 / 256)
    page.get_by_key("alibi_heads").set_value(1).run()
    assert "**Head 0 of 1**" in unescaped(page)


def check_effect(page, drawn, layer: int, head: int, times: float) -> None:
    """The figures and the sentence against the engine's, of a model with learned positions."""
    recording = recorded(CLASSIC)
    slope = float(slopes(4, times).slope[head])
    found = alibi_effect(recording[f"blocks.{layer}.scores"][head], slope, recording.seen())
    assert drawn["alibi_pattern_before"].traces[0]["z"] == pytest.approx(found.before, abs=1e-4)
    assert drawn["alibi_pattern_after"].traces[0]["z"] == pytest.approx(found.after, abs=1e-4)
    before, after = distances_of_heads(recording, layer, times)
    bars = {t["name"]: t["y"] for t in drawn["alibi_distances"].traces}
    assert bars["without the bias"] == pytest.approx(before.tolist(), abs=1e-3)
    assert bars["with it"] == pytest.approx(after.tolist(), abs=1e-3)
    told = re.search(
        rf"head {head} attends \*\*(\S+)\*\* tokens back on average without it and \*\*(\S+)\*\* with it",
        unescaped(page),
    )
    assert [float(x) for x in told.groups()] == pytest.approx([before[head], after[head]], abs=6e-3)


def test_the_effect_on_a_pattern(drawn):
    page = alibi("effect", alibi_layer="0", alibi_head="0")
    check_effect(page, drawn, 0, 0, 1)
    assert "a what-if, not" in unescaped(page) and "learned positions, which it keeps" in unescaped(page)
    page.get_by_key("alibi_times").set_value(4)
    page.get_by_key("alibi_layer").set_value(1)
    page.get_by_key("alibi_head").set_value(3).run()
    check_effect(page, drawn, 1, 3, 4)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    """Nothing is kept of another test, and a curve is of few windows."""
    stage = StageManager()
    monkeypatch.setattr(session, "manager", lambda: stage)
    memo.clear()
    monkeypatch.setattr(measured_losses, "WINDOWS", {"128": 12, "256": 8, "all": 8})
    monkeypatch.setattr(background_jobs, "_server", background_jobs.Jobs())
    return stage


@cache
def curve_of(scheme: str, windows: int = 8, width: int = 8) -> Curve:
    """The losses by position of a shipped model, read anew."""
    tokens = corpora.load("shakespeare").validation
    starts = window_starts(len(tokens), 64, windows)
    losses = position_losses(shipped(f"positions/{scheme}").model, tokens, starts, 256)
    return curve(np.concatenate(list(losses)), starts, 64, width)


def first_number(cell: str) -> float:
    return plain(cell.split(" ")[0].replace("+", ""))


def test_all_six_are_measured_and_summed_up(shakespeare, drawn):
    page = positions("bench")
    facts, numbers, said = page.table[len(page.table) - 1].value, page.table[1].value, unescaped(page)
    sizes = {
        "parameters here": shipped("positions/none").config,
        "at GPT-2 small's sizes": PRESETS["gpt2"].model,
    }
    for name, scheme in SCHEMES.items():
        for column, config in sizes.items():
            counts = component_parameters(replace(config, position=name))
            assert plain(facts.loc[scheme.title, column]) == counts["position"]
    assert facts.loc["RoPE", ["enters at", "tells"]].tolist() == ["queries and keys", "relative distance"]
    ends = "the last 8 characters of 64", "at the end of 128 and of 256"
    assert not lacking(said, "8 windows of 256 characters", "no row for position 64", "one seed each", *ends)
    assert list(numbers.index) == [scheme.title for scheme in SCHEMES.values()]
    valid = {name: shipped(f"positions/{name}").metrics["validation_loss"] for name in SCHEMES}
    curves = {name: curve_of(name) for name in SCHEMES}
    for name, scheme in SCHEMES.items():
        row, found = numbers.loc[scheme.title], costs(curves[name], valid[name], valid["none"])
        assert plain(row["validation loss (nats)"]) == pytest.approx(found.validation, abs=6e-4)
        assert first_number(row["vs no positions"]) == pytest.approx(found.against_none, abs=6e-4)
        assert first_number(row["end of 64"]) == pytest.approx(found.tail[0], abs=6e-4)
        for times, more in found.more.items():
            cell = row[f"more at {64 * times}"]
            assert cell == "n/a" if more is None else first_number(cell) == pytest.approx(more[0], abs=6e-4)
    held = re.search(
        r"\*\*With ([^*]+), the same characters .* 0\.05 nats more\.\*\*(?: They cost more with (.+?)\. A learned)?",
        said,
    )
    reach = reach_of({name: [c] for name, c in curves.items()})
    for text, far in ((held[1], reach.held), (held[2], reach.lost)):
        shown = {
            title: plain(more.lstrip("+")) for title, more in re.findall(r"(\w+) \(([+−]\d\.\d\d)\)", text)
        }
        assert shown == pytest.approx({SCHEMES[name].title: more for name, more in far.items()}, abs=6e-3)
    lines = {t["name"]: t for t in drawn["bench_losses"].traces if "name" in t}
    assert lines["RoPE"]["y"] == pytest.approx(curves["rope"].mean, abs=1e-4)
    assert lines["RoPE"]["x"][:2] == [3.5, 11.5] and lines["Learned"]["x"][-1] == 59.5
    table = drawn["bench_losses"].table
    fourth = [i for i, name in enumerate(table["scheme"]) if name == "RoPE"][3]
    assert (table["first_position"][fourth], table["last_position"][fourth]) == (24, 31)
    assert table["above_own_tail_nats"][fourth] == pytest.approx(above_tail(curves["rope"])[3], abs=1e-4)


def test_the_record_is_over_seeds(drawn):
    page = positions("bench")
    cells, others = page.table[0].value, scheme_seeds.shipped_runs()
    for name, scheme in SCHEMES.items():
        stored = shipped(f"positions/{name}").metrics
        mine = [run for run in others if run.plan.scheme == name]
        losses = [stored["validation_loss"], *(run.validation_loss for run in mine)]
        loss = first_number(cells.loc[scheme.title, "loss at 64"])
        assert loss == pytest.approx(np.median(losses), abs=6e-4)
        curves = [Curve.from_dict(stored["extrapolation"]), *(run.curve for run in mine)]
        far = [each.excess[4][0] for each in curves]
        if np.isfinite(far).all():
            written = re.findall(r"[-+−]?\d+\.\d+", cells.loc[scheme.title, "at 256"])
            wanted = [np.median(far), min(far), max(far)] if len(written) > 1 else [far[0]]
            assert [plain(cell.replace("+", "")) for cell in written] == pytest.approx(wanted, abs=6e-3)
    assert not lacking(unescaped(page), "medians of 3 seeds", "with 2 other seeds")
    thin = [t for t in drawn["bench_record"].traces if t.get("line", {}).get("width") == 1]
    assert len(thin) == len(others) == 12
    assert thin[0]["y"] == pytest.approx(others[0].curve.mean, abs=1e-4, nan_ok=True)


@pytest.mark.parametrize(("times", "turns"), [(2, 32.0), (2, 5.0), (4, 32.0)])
def test_stretched_lines_and_costs_are_those_of_the_stored_runs(times, turns, drawn):
    page = positions(
        "bench", bench_compare="stretched", stretch_times=str(times), stretch_turns=f"{turns:.0f}"
    )
    runs = list(stretched_runs().values())
    ways = {
        "RoPE as trained": Stretching(),
        "position interpolation": Stretching("interpolate", times),
        "NTK-aware scaling": Stretching("ntk", times),
        "YaRN": Stretching("yarn", times, turns),
    }
    lines = drawn["stretch_curves"].traces
    thick = {line["name"]: line for line in lines if line["line"]["width"] > 1}
    assert len(lines) == len(runs) * len(ways) and list(thick) == list(ways)
    table, medians, costs = page.table[0].value, {}, {}
    for name, by in ways.items():
        assert thick[name]["y"] == pytest.approx(runs[0].curves[by].mean, abs=1e-4)
        costs[name] = [above_trained(run.curves[by], run.curves[Stretching()]) for run in runs]
        medians[name] = {
            contexts: np.median([more[contexts] for more in costs[name]]) for contexts in (1, 2, 4)
        }
        cells = [first_number(table.loc[name, f"at {64 * contexts}"]) for contexts in (1, 2, 4)]
        assert cells == pytest.approx([*medians[name].values()], abs=6e-3)
    best = min([*ways][1:], key=lambda name: medians[name][times])
    kept = max(more[n] for more in costs[best] for n in (1, times)) <= 0.1
    at = minus(f"{medians[best][times]:+.2f}")
    assert (
        f"**{best}** keeps the loss at {64 * times} characters" if kept else f"{best} comes closest"
    ) in unescaped(page)
    assert f"(**{at}**" in unescaped(page) and f"{len(runs)} seeds (thin lines)" in unescaped(page)
    assert page.header[0].value == "Can slower frequencies carry RoPE past its training length?"


def test_the_stored_stretches_begin_with_the_shipped_model():
    """Some of its windows, read again."""
    checkpoint, (first, *others) = shipped("positions/rope"), stretched_runs().values()
    assert first.seed == checkpoint.metrics["train"]["seed"] and len(others) == 2
    record = Curve.from_dict(checkpoint.metrics["extrapolation"])
    assert first.curves[Stretching()].mean == pytest.approx(record.mean, abs=2e-3)


def test_smollm2_is_read_with_each_stretch(monkeypatch, drawn):
    """A small model stands in: the tokens, the lines and the sentence are its."""
    stand_in = shipped("shakespeare-modern")
    monkeypatch.setattr(stretched_view.model_choice, "first_of", lambda names: REAL_MODEL)
    monkeypatch.setattr(stretched_view.models, "model_of", lambda *_: stand_in)
    monkeypatch.setattr(stretched_view, "LENGTH", 64)
    page = positions("bench", bench_compare="stretched", stretch_model="real", stretch_times="4")
    corpus = session.corpus(corpora.default_name())
    text = corpus.tokenizer.decode(corpus.validation[:2000].tolist())
    ids = stand_in.tokenizer.encode(text)[:129]
    ways = stretched_view.ways_of(4, 32.0)
    losses = finish(losses_with_each(stand_in.model, ids, 64, ways))
    for line, by in zip(drawn["stretch_real"].traces, ways, strict=True):
        assert line["y"] == pytest.approx(losses[by].reshape(-1, 32).mean(1), abs=1e-4)
    more = {by.kind: float(losses[by].mean() - losses[ways[0]].mean()) for by in ways[1:]}
    for cost in (min(more.values()), max(more.values())):
        assert f"**{minus(f'{cost:+.2f}')}**" in unescaped(page)


def test_what_they_know_of_distance(drawn, shakespeare):
    said = unescaped(positions("bench", bench_trained="true", bench_schemes="RoPE"))
    table, lines = drawn["bench_similarity"].table, drawn["bench_similarity"].traces
    known = {}
    for name, scheme in SCHEMES.items():
        checkpoint = shipped(f"positions/{name}")
        fresh = build(checkpoint.config, checkpoint.metrics["train"]["seed"])
        for when, model in (("untrained", fresh), ("trained", checkpoint.model)):
            known[name, when] = found = similarity(model, 256)
            for line, values in zip(found.lines, found.values, strict=True):
                shown = table[f"{scheme.title}, {line}, {when}"][: len(values)]
                assert shown == pytest.approx(values, abs=1e-6)
    for dash, axis, key in (("solid", "x4", ("rope", "untrained")), ("dot", "x6", ("t5", "trained"))):
        panel = [t["y"] for t in lines if t["line"]["dash"] == dash and t["xaxis"] == axis]
        assert panel == [pytest.approx(row, abs=1e-6) for row in known[key].values]
    added, turned = (known[name, "untrained"].values[0] for name in ("sinusoidal", "rope"))
    far, noise = known["alibi", "untrained"].values[:, 16], known["learned", "untrained"].values[0, 1:]
    assert not lacking(
        said,
        f"Sinusoidal {added[1]:.2f} at distance 1, {added[16]:.2f} at 16",
        f"RoPE {turned[1]:.2f} at distance 1, {turned[16]:.2f} at 16",
        f"ALiBi from {far.min():.2f} to {far.max():.2f} at 16",
        f"{noise.min():.2f} to {noise.max():.2f} at every distance",
    )


@pytest.mark.parametrize("windows, width", [(12, 1), (8, 8)])
def test_every_option_is_drawn(shakespeare, drawn, windows, width):
    bits = windows == 8
    query = {"bench_show": "Above own last 64", "bench_unit": "bits"}
    page = positions("bench", **(query if bits else {"bench_windows": "128", "bench_bin": "1"}))
    assert not page.error and f"{windows} windows" in unescaped(page)
    found = curve_of("alibi", windows, width)
    line = next(t for t in drawn["bench_losses"].traces if t.get("name") == "ALiBi")
    assert line["y"] == pytest.approx(above_tail(found) / math.log(2) if bits else found.mean, abs=1e-3)
    if bits:
        valid = shipped("positions/none").metrics["validation_loss"]
        shown = page.table[1].value.loc["None", "validation loss (bits)"]
        assert plain(shown) == pytest.approx(valid / math.log(2), abs=6e-4)
        assert "Dotted: the same model" not in unescaped(page)
        assert "bits per character" in drawn["bench_losses"].layout["yaxis"]["title"]["text"]


def test_without_the_text_the_record_is_shown_and_said_to_be_one(monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    page = positions("bench", bench_windows="all", bench_stopgaps="T5: unmet buckets filled")
    said = unescaped(page)
    record = "were measured when the models were trained, on 20"
    assert not lacking(said, "not on this machine", record, "ALiBi (+0.00)")
    assert "Measured now" not in said and len(page.table[1].value) == 6
