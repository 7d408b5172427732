"""Biases by distance: T5's buckets and ALiBi's slopes against the papers' rules, and what they do to a pattern."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from pages.input.positions import shared
from pages.input.positions.t5 import BUCKETS, FARTHEST
from tests.pages.helpers import unescaped
from tests.pages.input.positions import CLASSIC, plain, positions, recorded, shipped

pytestmark = pytest.mark.usefixtures("manager")


def t5(topic: str, model: str = CLASSIC, **query: str):
    return positions("T5", t5_topic=topic, model=model, **query)


def bucket(back: int, buckets: int = 32, far: int = 128) -> int:
    """Raffel et al. 2020, of a distance back under a causal mask."""
    exact = buckets // 2
    if back < exact:
        return back
    return min(buckets - 1, exact + int(math.log(back / exact) / math.log(far / exact) * exact + 1e-7))


def test_buckets_follow_the_rule(drawn):
    page = t5("Buckets")
    assert [*page.dataframe[0].value["key − query"]][15:17] == ["−15", "−16 to −18"]
    table = drawn["t5_steps"].table
    assert table["offset"] == list(range(-160, 1))
    assert table["bucket"] == [bucket(-int(o)) for o in table["offset"]]
    colours = [[y for y in trace["y"] if y is not None] for trace in drawn["t5_steps"].traces]
    assert sorted(colours[0]) == list(range(16))
    assert set(colours[1]) == set(range(16, 31))
    assert set(colours[2]) == {31}
    first = next(d for d in range(999) if bucket(d) == 31)
    said = unescaped(page)
    assert f"everything from **{first}** on" in said
    assert "0 to 15 have a bucket each. The next 16 buckets" in said
    assert "are ever used" not in said and page.get_by_key("t5_topic").value == "buckets"
    page.get_by_key("t5_mask").set_value("both ways").run()
    assert "**31 of 32** buckets are ever used: bucket 16" in unescaped(page)
    assert "0 to 7 have a bucket each on either side. The next 8 buckets" in unescaped(page)
    for i, buckets in enumerate(BUCKETS):
        page.get_by_key("t5_buckets").set_value(buckets)
        for far in (*FARTHEST[i : i + 2], FARTHEST[0]):
            page.get_by_key("t5_far").set_value(far).run()
            assert not page.exception and not page.error, (buckets, far)
    assert "leaves none to share: 64 is used instead" in unescaped(page)


def test_the_small_model_that_was_trained_with_t5_stands_in(drawn):
    if shared.example("t5") is None:
        pytest.skip("checkpoints/positions/t5 is not there")
    page = t5("Learned bias", t5_head="3")
    weight = shipped("positions/t5").model.positions.weight.detach().double().numpy()  # (bucket, head)
    bias = np.array([[weight[bucket(d), h] for d in range(129)] for h in range(4)])  # (head, distance)
    lines = drawn["t5_lines"].traces
    assert [line["x"][0] for line in lines] == [-128] * 4
    assert [line["y"][::-1] for line in lines] == [pytest.approx(row, abs=1e-5) for row in bias]
    assert drawn["t5_heads"].traces[0]["z"] == pytest.approx(bias[:, ::-1], abs=1e-5)
    matrix = drawn["t5_matrix"].traces[0]["z"]
    assert matrix[63][:64] == pytest.approx(bias[3, :64][::-1], abs=1e-5) and matrix[0][1] is None
    said = unescaped(page)
    assert "Shown instead: a small model trained with T5's bias" in said
    assert "32 buckets × 4 heads = 128 learned numbers" in said
    near = bias[:, :64]
    spread = near.max(1) - near.min(1)
    loud = int(spread.argmax())
    found = re.search(
        r"Between distance 0 and 63, head (\d) varies .* spans \*\*(\S+)\*\*, .* about (\S+) between", said
    )
    assert int(found[1]) == loud and float(found[2]) == pytest.approx(spread[loud], abs=6e-3)
    assert plain(found[3]) == pytest.approx(math.exp(spread[loud]), rel=0.06)
    told = re.findall(r"head (\d): distance (\d+), (\S\d\.\d{3})", said)
    for h, row in enumerate(near):
        slope = np.polyfit(np.arange(64), row, 1)[0]
        assert (int(told[h][0]), int(told[h][1])) == (h, row.argmax())
        assert plain(told[h][2].replace("+", "")) == pytest.approx(-slope, abs=6e-4)
    # within 64 positions, distances 0 to 63 meet buckets 0 to 26
    last = bucket(63)
    found = re.search(
        r"The (\d+) buckets from distance (\d+) on .* average (\S+), where distance 63 has (\S+)\. So", said
    )
    assert int(found[1]) == 31 - last and int(found[2]) == next(d for d in range(99) if bucket(d) > last)
    assert plain(found[3]) == pytest.approx(weight[last + 1 :].mean(), abs=6e-4)
    assert plain(found[4]) == pytest.approx(weight[last].mean(), abs=6e-4)


def alibi(topic: str, model: str = CLASSIC, **query: str):
    return positions("ALiBi", alibi_topic=topic, model=model, **query)


def test_eight_heads_have_the_paper_s_slopes(drawn):
    page = alibi("Slopes and reach", alibi_heads="8")
    slope = [2.0**-i for i in range(1, 9)]
    rows = page.dataframe[0].value
    assert [*rows["slope"]] == [f"1/{2**i}" for i in range(1, 9)]
    assert [*rows["1/e at distance"]] == [f"{1 / s:,.1f}" for s in slope]
    assert [*rows["1 percent at distance"]] == [f"{math.log(100) / s:,.1f}" for s in slope]
    assert [*rows["as a number"]] == [f"{s:.6g}" for s in slope]
    decay = drawn["alibi_decay"].traces
    assert [t["y"][10] for t in decay] == pytest.approx([math.exp(-10 * s) for s in slope], abs=1e-6)
    assert decay[0]["x"][-1] == shipped(CLASSIC).config.context - 1
    reach = {t["name"]: t["y"] for t in drawn["alibi_reach"].traces}
    assert reach["down to 1/e"] == pytest.approx([1 / s for s in slope])
    assert reach["down to 1 percent"] == pytest.approx([math.log(100) / s for s in slope])
    assert drawn["alibi_reach"].layout["shapes"][0]["y0"] == 128
    said = unescaped(page)
    assert f"10 tokens back, the steepest of 8 heads leaves **{math.exp(-5):.2%}** of a weight" in said
    assert f"the flattest **{math.exp(-10 / 256):.2%}**" in said
    assert drawn["alibi_decay"].layout["shapes"][-1]["x0"] == 10
    inside = sum(math.exp(-s * 128) < 0.01 for s in slope)
    assert "Slopes run from **0.5** to **0.003906**" in said and f"**{inside} of 8** heads come down" in said
    assert f"the flattest head is at {math.exp(-127 / 256):.1%} at its far end" in said
    assert "For 8 heads these are" in said and page.get_by_key("alibi_topic").value == "slopes"
    page.get_by_key("alibi_heads").set_value(12).run()
    assert [*page.dataframe[0].value["slope"]][8:] == ["2^(−0.5)", "2^(−1.5)", "2^(−2.5)", "2^(−3.5)"]
    assert "12 is not a power of two. The paper's rule for 8 heads" in unescaped(page)
    assert "The other 4 come from the rule for 16 heads" in unescaped(page)


def test_the_matrix_with_every_option(drawn):
    page = alibi("Bias matrix", alibi_heads="8", alibi_matrix_head="7")
    assert "**Head 7 of 8**: slope $m$ = 0.00390625" in unescaped(page)
    assert [*page.table[0].value.iloc[1]] == ["−0.003906", "0", "−∞"]
    bias = drawn["alibi_matrix"].traces[0]["z"]
    assert bias[31][:32] == pytest.approx([-(31 - j) / 256 for j in range(32)]) and bias[3][4] is None
    penalty = 31 / 256
    assert (
        f"pushed down by **{penalty:.4g}**: to e^(−{penalty:.4g}) = {math.exp(-penalty):.2g} of"
        in unescaped(page)
    )
    page.get_by_key("alibi_heads").set_value(4).run()
    assert "**Head 3 of 4**" in unescaped(page)
    page.get_by_key("alibi_mask").set_value("both ways").run()
    assert "both ways" in unescaped(page) and "−∞" not in page.table[0].value.to_string()
    assert drawn["alibi_matrix"].traces[0]["z"][0][5] == pytest.approx(-5 / 256)
    page.get_by_key("alibi_heads").set_value(1).run()
    assert "**Head 0 of 1**" in unescaped(page)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Of the visible scores of each query."""
    weights = np.tril(np.exp(scores - scores.max()))
    return weights / weights.sum(1, keepdims=True)


def check_effect(page, drawn, recording, layer: int, head: int, times: float) -> None:
    """The figures and the sentence against the recorded scores and a slope of 1/4, 1/16 ..."""
    count = recording.config.n_heads
    own = recording.config.position == "alibi"
    place = np.arange(len(recording.logits))
    apart = np.abs(place[:, None] - place)
    far = {"without": [], "with": []}
    for h in range(count):
        slope = 2.0 ** (-8 * (h + 1) / count)
        bare = recording[f"blocks.{layer}.scores"][h].astype(np.float64) + own * slope * apart
        before, after = softmax(bare), softmax(bare - times * slope * apart)
        far["without"].append((before * apart).sum(1).mean())
        far["with"].append((after * apart).sum(1).mean())
        if h == head:
            assert drawn["alibi_pattern_before"].traces[0]["z"] == pytest.approx(before, abs=1e-4)
            assert drawn["alibi_pattern_after"].traces[0]["z"] == pytest.approx(after, abs=1e-4)
            moved = np.maximum(after - before, 0).sum(1).mean()  # what is gained, which is what is lost
    bars = {t["name"]: t["y"] for t in drawn["alibi_distances"].traces}
    assert bars["without the bias"] == pytest.approx(far["without"], abs=1e-3)
    assert bars["with it"] == pytest.approx(far["with"], abs=1e-3)
    found = re.search(
        rf"Head {head} looks \*\*(\S+)\*\* tokens away without the bias and \*\*(\S+)\*\* with it; \*\*(\d+)%\*\*",
        unescaped(page),
    )
    assert [float(x) for x in found.groups()] == [
        pytest.approx(far["without"][head], abs=6e-3),
        pytest.approx(far["with"][head], abs=6e-3),
        pytest.approx(100 * moved, abs=0.51),
    ]


def test_the_effect_on_a_pattern(drawn):
    page = alibi("Effect on a pattern", alibi_layer="0", alibi_head="0")
    check_effect(page, drawn, recorded(CLASSIC), 0, 0, 1)
    assert "by hand" in unescaped(page) and "learned positions, which it keeps" in unescaped(page)
    page.get_by_key("alibi_times").set_value(4)
    page.get_by_key("alibi_layer").set_value(1)
    page.get_by_key("alibi_head").set_value(3).run()
    check_effect(page, drawn, recorded(CLASSIC), 1, 3, 4)
