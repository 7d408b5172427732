"""Positions by themselves: why, learned, sinusoidal."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from engine.config import ModelConfig, TrainConfig
from engine.measure.permutation import (
    SCHEMES,
    Plan,
    compare,
    in_order_and_out,
    new_order,
    word_ids,
    word_order,
)
from engine.measure.position_table import alike
from engine.measure.sinusoids import similarity
from engine.service.state import RunSpec
from pages.input.positions import sinusoidal_clock as clock
from pages.input.positions import why_figures as figures
from pages.input.positions.answers import TITLES
from tests.pages.helpers import unescaped
from tests.pages.input.positions import CLASSIC, ids_of, metrics, plain, positions, shipped
from tests.pages.stage import StageManager, view_of
from ui import course, models, state, subject

pytestmark = pytest.mark.usefixtures("manager")
MASKS = {"no mask": False, "causal mask": True}


def test_words_in_two_orders(drawn):
    words = ["dog", "bites", "man", "here"]
    page = positions(
        "why", why_sentence="dog bites man here", why_order="rotate", why_scheme="rope", why_causal="true"
    )
    order = np.array([1, 2, 3, 0])
    found = compare(word_ids(words), order, Plan("rope", True))
    orders = drawn["why_orders"]
    assert [a["text"] for a in orders.layout["annotations"]] == [
        "<b>dog bites man here</b>",
        "<b>bites man here dog</b>",
    ]
    assert orders.traces[0]["z"] == pytest.approx(found.before, abs=1e-6)
    assert orders.traces[1]["z"] == pytest.approx(found.after, abs=1e-6)
    assert drawn["why_before"].traces[0]["z"] == pytest.approx(found.before, abs=1e-6)
    assert drawn["why_after"].traces[0]["z"] == pytest.approx(found.after[[3, 0, 1, 2]], abs=1e-6)  # matched
    apart = found.after[[3, 0, 1, 2]] - found.before
    assert drawn["why_difference"].traces[0]["z"] == pytest.approx(apart, abs=1e-6)
    assert orders.table["largest_difference"] == pytest.approx(np.abs(apart).max(1), abs=1e-6)
    assert orders.layout["yaxis2"]["ticktext"] == [
        f"{word}<br><i>changed: {change:.2f}</i>"
        for word, change in zip(
            ["bites", "man", "here", "dog"], np.abs(apart).max(1)[[1, 2, 3, 0]], strict=True
        )
    ]
    assert plain(metrics(page)[0]) == pytest.approx(np.abs(apart).max(), abs=5e-4)
    page.get_by_key("why_rows").set_value("as they stand").run()
    assert drawn["why_after"].traces[0]["z"] == pytest.approx(found.after, abs=1e-6)
    assert drawn["why_after"].layout["yaxis"]["ticktext"] == ["bites", "man", "here", "dog"]


def test_all_schemes_with_and_without_the_mask(drawn):
    page = positions("why", why_sentence="the cat that the dog chased", why_order="shuffle", why_seed="5")
    ids, order = word_ids(["the", "cat", "that", "the", "dog", "chased"]), new_order(6, "shuffle", 5)
    largest = {(s, m): compare(ids, order, Plan(s, m)).largest for s in SCHEMES for m in (False, True)}
    for trace in drawn["why_schemes"].traces:
        expected = [largest[s, MASKS[trace["name"]]] for s in SCHEMES]
        assert trace["text"] == list(TITLES.values()) and trace["customdata"] == pytest.approx(expected)
    table = drawn["why_schemes"].table
    rows = zip(table["scheme"], table["mask"], table["largest_difference"], strict=True)
    assert {(s, MASKS[m]): v for s, m, v in rows} == pytest.approx(
        {(TITLES[s], m): v for (s, m), v in largest.items()}
    )
    for causal in (False, True):
        page.get_by_key("why_causal").set_value(causal).run()
        for scheme in SCHEMES:
            page.get_by_key("why_scheme").set_value(scheme).run()
            assert not page.exception and not page.error
            assert plain(metrics(page)[0]) == pytest.approx(largest[scheme, causal], rel=0.05)
            told = map(plain, re.findall(r"\*\*([\d.]+(?: × [\d⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)\*\*", unescaped(page)))
            assert any(x == pytest.approx(largest[scheme, causal], rel=0.06, abs=5e-4) for x in told)
            ringed = [
                (scheme, trace["name"])
                for trace in drawn["why_schemes"].traces
                for scheme, width in zip(SCHEMES, trace["marker"]["line"]["width"], strict=True)
                if width
            ]
            assert ringed == [(scheme, "causal mask" if causal else "no mask")]


def test_a_trained_model_in_and_out_of_order(drawn):
    """The table, the bars and the sentence are the engine's own measurement of each setting, told apart."""
    page = positions("why", why_on="A trained model", why_order="rotate")
    assert page.get_by_key("why_on").value == "trained"
    model, ids = shipped(CLASSIC).model, ids_of(CLASSIC)
    texts = [shipped(CLASSIC).tokenizer.decode([i]) for i in ids]
    order = word_order(texts, "rotate")
    found = {(s.position, s.mask): s for s in in_order_and_out(model, ids, order)}
    said = unescaped(page)
    rows = re.findall(r"\| (on|off) \| (on|off) \| ([^|]+) \| (\S+) \| (\S+) \|", said)
    assert {(p == "on", m == "on") for p, m, *_ in rows} == set(found)
    for position, mask, moved, loss_in, loss_out in rows:
        one = found[position == "on", mask == "on"]
        if one.relative > 1e-4:  # else it is rounding, another in every run
            assert plain(moved) == pytest.approx(one.relative, abs=6e-4)
        assert (loss_in, loss_out) == (
            ("none", "none") if mask == "off" else (f"{one.loss_in:.3f}", f"{one.loss_out:.3f}")
        )
    names = {
        (True, True): "positions, mask",
        (False, True): "no positions, mask",
        (True, False): "positions, no mask",
    }
    for key, name in names.items():
        page.get_by_key("why_setting").set_value(name).run()
        assert drawn["why_moved"].traces[0]["y"] == pytest.approx(found[key].moved, abs=1e-3)
    both, leak = found[True, True], found[False, True]
    assert (
        f"The mask alone makes it {leak.relative:.3f}, mask and positions (Learned) {both.relative:.3f}. The loss"
        f" of this text is {both.loss_in:.2f} nats per token in order and {both.loss_out:.2f} out of order; with"
        f" the positions taken away it is {leak.loss_in:.2f} even in order." in said
    )
    page.get_by_key("why_unit").set_value("tokens").run()
    assert not page.exception and "In the new order it reads" in unescaped(page)


def test_words_that_look_like_markup_are_drawn_as_they_are():
    figure = figures.word_rows(np.zeros((2, 3)), ["<b>", "a&b"], 1.0, "x")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "a&amp;b"]


SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    subject.st.cache_resource.clear()
    return stage


def cosines(table: np.ndarray) -> np.ndarray:
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit.T


def by_distance(values: np.ndarray) -> list[float]:
    return [float(np.diagonal(values, k).mean()) for k in range(len(values))]


def nearness(values: np.ndarray) -> float:
    i, j = np.triu_indices(len(values), 1)
    return float(np.corrcoef(values[i, j], -(j - i))[0, 1])


def test_the_shipped_table_beside_the_sinusoidal_one(manager, drawn):
    page = positions("Learned")
    learned = shipped(CLASSIC).model.positions.weight.detach().double().numpy()
    angles = np.arange(128)[:, None] * 10_000.0 ** (-2 * (np.arange(128) // 2) / 128)
    waves = np.where(np.arange(128) % 2, np.cos(angles), np.sin(angles))
    tables = {"learned": learned, "sinusoidal": waves}
    likeness = {name: cosines(table) for name, table in tables.items()}
    alike_said = unescaped(page)
    for picture in ("path", "table"):
        page.get_by_key("learned_picture").set_value(picture).run()
        alike_said += unescaped(page)
    for name, table in tables.items():
        assert drawn[f"learned_table_{name}"].traces[0]["z"] == pytest.approx(table, abs=1e-4)
        assert drawn[f"learned_alike_{name}"].traces[0]["z"] == pytest.approx(likeness[name], abs=1e-4)
        path = np.stack([drawn[f"learned_path_{name}"].traces[0][axis] for axis in "xy"], axis=1)
        centred = table - table.mean(0)
        sizes = np.linalg.svd(centred, compute_uv=False)
        assert np.linalg.norm(path, axis=0) == pytest.approx(sizes[:2], rel=1e-3)
        kept = sizes**2 / (sizes**2).sum()
        assert f"({kept[1]:.1%})" in drawn[f"learned_path_{name}"].layout["yaxis"]["title"]["text"]
    assert [float(m) for m in metrics(page)] == pytest.approx(
        [nearness(v) for v in likeness.values()], abs=6e-4
    )
    curves = drawn["learned_distance"].table
    assert curves["learned_mean"] == pytest.approx(by_distance(likeness["learned"])[1:], abs=1e-4)
    assert curves["sinusoidal_mean"] == pytest.approx(by_distance(likeness["sinusoidal"])[1:], abs=1e-4)
    sd = [float(np.diagonal(likeness["learned"], k).std()) for k in range(1, 128)]
    assert curves["learned_sd"] == pytest.approx(sd, abs=1e-4)
    lengths = np.linalg.norm(learned, axis=1)
    assert drawn["learned_norms"].table["learned"] == pytest.approx(lengths, abs=1e-4)
    said = alike_said
    assert "128 × 128 = **16,384** learned numbers" in said
    assert "have found each other" in said
    assert "$\\sqrt{d/2} = 8.00$" in said
    near = by_distance(likeness["learned"])
    assert f"a cosine of **{near[1]:.2f}** on average, places 64 apart −{-near[64]:.2f}" in said
    assert f"Position 0 is {lengths[0] / np.median(lengths):.1f} times" in said
    both = [
        (np.linalg.svd(t - t.mean(0), compute_uv=False)[:2] ** 2).sum() / ((t - t.mean(0)) ** 2).sum()
        for t in tables.values()
    ]
    assert f"keep **{both[0]:.0%}** of what differs between the learned places, and {both[1]:.0%}" in said


def test_an_untrained_table_has_not_learned_what_near_is(manager):
    page = positions("learned", model="untrained-classic")
    assert abs(float(metrics(page)[0])) < 0.1
    table = models._untrained("classic").model.positions.weight.detach().double().numpy()
    near = by_distance(cosines(table))
    half = len(table) // 2
    found = re.search(
        rf"hardly more alike .* cosine of \*\*(\S+)\*\* on average, places {half} apart (\S+)\. This",
        unescaped(page),
    )
    assert found is not None
    assert [plain(x) for x in found.groups()] == pytest.approx([near[1], near[half]], abs=6e-3)


def test_the_course_over_a_run(manager, monkeypatch, drawn):
    monkeypatch.setattr(course, "SLICE_SECONDS", 0.0)
    spec = RunSpec(
        ModelConfig(**SMALL, vocab_size=30, position="learned"),
        TrainConfig(steps=40),
        corpus="python",
        name="mine",
    )
    manager.views["r"] = view_of(spec, "r", "done", snapshots=(0, 20, 40))
    page = positions("learned", model="run-r", step="20", learned_picture="table")
    assert "2 more snapshots are still to be measured" in unescaped(page) and "32 × 16" in unescaped(page)
    for _ in range(3):
        page.run()
        assert not page.exception
    assert "still to be measured" not in unescaped(page)
    found = drawn["learned_course"]
    tables = [manager.model("r", step).model.positions.weight.numpy() for step in (0, 20, 40)]
    assert found.table["step"] == [0, 20, 40]
    assert found.table["correlation"] == pytest.approx([nearness(cosines(t)) for t in tables], abs=1e-4)
    level, shown = found.layout["shapes"]
    assert level["y0"] == pytest.approx(float(metrics(page)[1]), abs=6e-4) and shown["x0"] == 20
    assert float(metrics(page)[0]) == pytest.approx(alike(tables[1]).correlation, abs=6e-4)


def table(length: int, width: int, base: float) -> np.ndarray:
    """Vaswani et al. 2017, 3.5, in plain NumPy."""
    angles = np.arange(length)[:, None] * base ** (-2 * (np.arange(width) // 2) / width)
    return np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles))


def test_the_table_and_its_waves(drawn):
    page = positions(
        "Sinusoidal", sinusoid_part="Table", sinusoid_length="20", sinusoid_width="12", sinusoid_base="100"
    )
    assert page.get_by_key("sinusoid_part").value == "table"
    waves = [2 * math.pi * 100 ** (i / 6) for i in range(6)]
    assert drawn["sinusoid_table"].traces[0]["z"] == pytest.approx(table(20, 12, 100.0), abs=1e-5)
    assert drawn["sinusoid_waves"].traces[0]["y"] == pytest.approx(waves)
    assert drawn["sinusoid_waves"].traces[1]["y"] == [20, 20]
    said = unescaped(page)
    assert f"$2\\pi$ = 6.283 positions to $2\\pi \\cdot 100^{{(12-2)/12}}$ = {waves[-1]:,.1f}" in said
    assert "each is 2.154 times the one before" in said  # 100 ** (1/6)
    complete = sum(w <= 20 for w in waves)
    assert f"{complete} of 6 waves go round within these 20 places" in said
    assert f"{6 - complete} of 6 are longer than the table" in said
    assert f"every **6.28** places and tells neighbours apart; the slowest needs **{waves[-1]:,.1f}**" in said


def test_the_clock_has_the_hands_of_the_formula(monkeypatch):
    sent = {}
    monkeypatch.setattr(clock, "mounted", lambda name: lambda **rest: sent.update(rest))
    page = positions(
        "sinusoidal", sinusoid_part="clock", sinusoid_width="8", sinusoid_length="20", clock_position="7"
    )
    assert sent["data"]["thetas"] == pytest.approx([1, 0.1, 0.01, 0.001])
    assert (sent["data"]["pairs"], sent["data"]["of"], sent["data"]["last"]) == ([0, 1, 2, 3], 4, 19)
    assert sent["data"]["position"] == 7
    assert "**4 hands** at once" in unescaped(page)
    assert "the fastest needs 6.28 places for a round, the slowest 6,283.2" in unescaped(page)
    assert "A hand for each frequency" in unescaped(page)
    assert "read off **one hand** that goes round in 6.28" in unescaped(
        positions("sinusoidal", sinusoid_part="clock", sinusoid_width="2")
    )


def test_likeness_by_distance(drawn):
    page = positions(
        "sinusoidal",
        sinusoid_part="similarity",
        sinusoid_length="200",
        sinusoid_width="6",
        sinusoid_base="10",
    )
    values = table(200, 6, 10.0)
    cosines = values @ values.T / 3
    assert drawn["sinusoid_likeness"].traces[0]["z"] == pytest.approx(cosines[::2, ::2], abs=1e-4)
    assert drawn["sinusoid_by_distance"].traces[0]["y"] == pytest.approx(cosines[0], abs=1e-5)
    again = 1 + int(cosines[0, 1:].argmax())
    said = unescaped(page)
    c = cosines[0]
    assert f"{c[1]:.3f} at distance 1, and **{c[again]:.3f}** at distance {again}" in said and again > 1
    assert "here 1.732, so the cosine is the dot product divided by $d/2$ = 3" in said
    assert "multiples of 2" in said
    found = similarity(200, 6, 10.0)
    assert [plain(m) for m in metrics(page)] == pytest.approx([found.deviation, found.deviation64], rel=0.05)
    assert 1e-7 < plain(metrics(page)[0]) < 1e-4
    assert 0 < plain(metrics(page)[1]) < 1e-12
    falling = unescaped(positions("sinusoidal", sinusoid_part="similarity"))
    c = table(64, 64, 10_000.0)
    c = c @ c[0] / 32
    assert f"cosine **{c[1]:.3f}** at distance 1, {c[10]:.3f} at 10, {c[63]:.3f} at 63" in falling


def test_the_rotation_opens_with_the_worked_example(drawn):
    page = positions("sinusoidal", sinusoid_part="rotation")
    latex = page.latex[0].value
    numbers = [float(n) for n in re.findall(r"-?\d\.\d{3}", latex)]
    # turn(0.2), then (sin, cos) of 0.5, then of 0.7: theta is 0.1 for pair 8 of 32
    assert numbers == [0.980, 0.199, -0.199, 0.980, 0.479, 0.878, 0.644, 0.765]
    said = unescaped(page)
    assert "$\\theta$ = 0.1 radians" in said and "$k\\theta$ = 0.2:" in said
    assert "$(\\sin 0.7,\\ \\cos 0.7)$ = (0.644, 0.765)" in said
    assert "by **0.2** radians, wherever it starts: from (0.479, 0.878) at 5 to (0.644, 0.765) at 7" in said
    hands = drawn["sinusoid_turned"].traces[1:]
    assert [(hand["x"][1], hand["y"][1]) for hand in hands] == [
        pytest.approx((math.sin(x), math.cos(x))) for x in (0.5, 0.7)
    ]
    blocks = np.array(drawn["sinusoid_blocks"].traces[0]["z"])
    assert blocks[16:18, 16:18] == pytest.approx(np.array([[0.9801, 0.1987], [-0.1987, 0.9801]]), abs=1e-4)
    values = table(70, 64, 10_000.0)
    assert blocks @ values[3] == pytest.approx(values[5], abs=1e-5)
    assert 1e-8 < plain(metrics(page)[0]) < 1e-4 and plain(metrics(page)[1]) < 1e-12
    page.get_by_key("sinusoid_step").set_value(-60).run()
    assert "p = 60 is used instead of 5" in unescaped(page) and "the one 60 back" in unescaped(page)
    page.get_by_key("sinusoid_pair").set_value(31).run()
    page.get_by_key("sinusoid_width").set_value(4).run()  # there is no pair 31 any more
    assert not page.exception and "Pair 1 turns" in unescaped(page)
