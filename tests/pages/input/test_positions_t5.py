"""The T5 view."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from pages.input.positions import shared
from pages.input.positions.t5 import BUCKETS, FARTHEST
from tests.pages.helpers import unescaped
from tests.pages.input.positions import CLASSIC, plain, positions, shipped

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
